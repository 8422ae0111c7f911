package step

import (
	"fmt"
	"math"

	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// DecoderConfig says how to understand the records of a stream or file. The
// zero value is right for a row-major writer.
type DecoderConfig struct {
	// ColumnMajor says that the writer's dimensions are in column-major order,
	// as Fortran's are. They are reversed then; data is never rearranged.
	ColumnMajor bool
	// MaxAlloc bounds each slice, in bytes, that is made on behalf of what the
	// records claim: results without a destination, and decompressed blocks. 0
	// means DefaultMaxAlloc, and more than 1 TiB means that.
	MaxAlloc uint64
}

// Decoder makes steps from BP5 records. It holds what lasts from step to step:
// formats and attributes. It belongs to one goroutine at a time; the steps it
// made do not depend on it.
type Decoder struct {
	cfg     DecoderConfig
	formats map[ffs.ID]*format
	attrs   attrSet
	names   names

	last  *catalog        // of the last step
	metas []*bp5.Metadata // of the last step, by rank; nil if there is none

	slots []slot  // by name id; scratch of Step
	met   []int32 // name ids of the variables of a step; scratch of Step
}

// format is one format and what was made of it when it was first used.
type format struct {
	ffs       *ffs.Format
	schema    *bp5.Schema
	defs      []varDef // by variable of the schema
	schemaErr error
}

// slot is what Step knows of one variable while it goes through the ranks.
type slot struct {
	n   int32 // ranks that put it
	e   *entry
	def *varDef
}

// NewDecoder returns a decoder that knows no formats and no attributes.
func NewDecoder(cfg DecoderConfig) *Decoder {
	return &Decoder{cfg: cfg, formats: make(map[ffs.ID]*format), names: names{ids: make(map[string]int32)}, last: &catalog{order: &order{}}}
}

// AddFormat adds a format: a block of meta-metadata. All formats that a record
// needs must be known before it, those of struct elements too. A format that is
// known already is ignored. body must not change afterwards.
func (d *Decoder) AddFormat(id [12]byte, body []byte) error {
	if d.formats[ffs.ID(id)] != nil {
		return nil
	}
	f, _, err := ffs.Parse(body)
	if err != nil {
		return fmt.Errorf("step: format %v: %w", ffs.ID(id), err)
	}
	if f.ID() != ffs.ID(id) {
		return fmt.Errorf("step: format %v: its description has the id %v: %w", ffs.ID(id), f.ID(), ErrMetadata)
	}
	d.formats[f.ID()] = &format{ffs: f}
	return nil
}

// AddAttributes takes the attribute record of a step, before that step is made.
// Attributes last, so the records of steps that are skipped must be given too,
// in order. A record in the old style has all attributes, one in the generic
// style those that are new or changed. rec must not change afterwards. On an
// error the attributes stay as they were.
func (d *Decoder) AddAttributes(rec []byte) error {
	f, err := d.format(rec)
	if err != nil {
		return fmt.Errorf("step: attribute record: %w", err)
	}
	list, all, err := bp5.ParseAttributes(f.ffs, rec)
	if err != nil {
		return fmt.Errorf("step: %w", err)
	}
	attrs := make([]*Attribute, len(list))
	for i := range list {
		attrs[i] = &Attribute{list[i]}
	}
	if all {
		d.attrs = attrSet{}
	}
	d.attrs = d.attrs.with(attrs)
	return nil
}

// format returns the format that rec begins with.
func (d *Decoder) format(rec []byte) (*format, error) {
	id, ok := ffs.RecordID(rec)
	if !ok {
		return nil, fmt.Errorf("%d bytes are no record: %w", len(rec), ErrMetadata)
	}
	f := d.formats[id]
	if f == nil {
		return nil, fmt.Errorf("format %v was not announced: %w", id, ErrMetadata)
	}
	return f, nil
}

// Step makes a step of the metadata records of all ranks; an empty one means
// that the rank has none. src gives access to the data and end is called once
// when the step ends; both may be nil. The records must not change afterwards.
//
// An error means that a record is damaged or its format unknown. What is wrong
// with single variables shows when they are used.
func (d *Decoder) Step(number uint64, metadata [][]byte, src Source, end func() error) (*Step, error) {
	if len(metadata) > math.MaxInt32 {
		return nil, fmt.Errorf("step %d: %d ranks: %w", number, len(metadata), ErrMetadata)
	}
	s := &Step{number: number, cfg: d.cfg, attrs: d.attrs, src: src, end: end}
	for _, rec := range metadata {
		s.metaBytes += len(rec)
	}
	if s.metas = d.repeat(metadata); s.metas != nil {
		s.catalog = d.repeated()
	} else if err := d.decode(s, metadata); err != nil {
		return nil, err
	}
	d.last, d.metas = s.catalog, s.metas
	s.variables = make([]Variable, len(s.catalog.entries))
	for i := range s.variables {
		s.variables[i] = Variable{s, &s.catalog.entries[i]}
	}
	return s, nil
}

// repeat returns the records if they say the same as those of the last step, but for values; else
// nil.
func (d *Decoder) repeat(metadata [][]byte) []*bp5.Metadata {
	if d.metas == nil || len(metadata) != len(d.metas) {
		return nil
	}
	metas := make([]*bp5.Metadata, len(metadata))
	for rank, rec := range metadata {
		last, ok := d.metas[rank], len(rec) == 0
		if last != nil {
			metas[rank], ok = last.Repeat(rec)
		}
		if !ok {
			return nil
		}
	}
	return metas
}

// decode checks the records of all ranks, here and now: a step that was handed out must not turn
// out to be half a step.
func (d *Decoder) decode(s *Step, metadata [][]byte) error {
	s.metas = make([]*bp5.Metadata, len(metadata))
	formats := make([]*format, len(metadata))
	for rank, rec := range metadata {
		if len(rec) == 0 {
			continue
		}
		f, err := d.metadataFormat(rec)
		if err == nil {
			s.metas[rank], err = f.schema.Metadata(rec)
		}
		if err != nil {
			return fmt.Errorf("step %d: rank %d: %w", s.number, rank, err)
		}
		formats[rank] = f
	}
	s.catalog = d.catalog(s, formats)
	return nil
}

// metadataFormat returns the format of a metadata record with its schema.
func (d *Decoder) metadataFormat(rec []byte) (*format, error) {
	f, err := d.format(rec)
	if err != nil {
		return nil, err
	}
	// When first used, not when added: a late reader gets all formats that ever
	// were, and needs few of them.
	if f.schema == nil && f.schemaErr == nil {
		if f.schema, f.schemaErr = bp5.ParseSchema(f.ffs); f.schemaErr == nil {
			f.defs = d.define(f.schema.Vars())
		}
	}
	return f, f.schemaErr
}

// structType returns the description of struct elements, nil if it is not
// known or not understood.
func (d *Decoder) structType(id ffs.ID) *StructType {
	f := d.formats[id]
	if f == nil {
		return nil
	}
	def, err := bp5.ParseStruct(f.ffs)
	if err != nil {
		return nil
	}
	st := &StructType{Name: def.Name, Size: def.Size, Fields: make([]StructField, len(def.Fields))}
	for i, m := range def.Fields {
		st.Fields[i] = StructField{Name: m.Name, Type: Type(m.Type), Offset: m.Offset, Count: m.Count}
	}
	return st
}
