package bp5

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

const (
	leadingFields = 3 // BitFieldCount, BitField, DataBlockSize (docs/wire/bp5.md §2)
	leadingLen    = leadingFields * slotSize
)

// MetadataEncoder makes the metadata records of one writer rank. The format
// grows: each variable takes a field when it is added, and keeps it for good.
// A step is [MetadataEncoder.Begin], any number of Set calls, then
// [MetadataEncoder.Append]. Steps of the same variables allocate nothing here.
type MetadataEncoder struct {
	place  func(end int, f *encField) int // where a field goes, behind what ends at end
	vars   []encVar
	fields []ffs.Field           // of the top struct, the leading ones included
	subs   map[string]ffs.Struct // the sub-structs in use
	end    int                   // record length
	align  int
	format *ffs.Format // nil: stale

	base   []byte       // the open step's base record
	bits   []uint64     // which variables the step has, by index
	arrays []*ArrayMeta // by index, nil for values; written at Append
	texts  []string     // by index; written at Append
}

type encVar struct {
	desc   VarDesc
	offset int // in the base record
	width  int // bytes there
}

// NewMetadataEncoder returns an encoder without variables.
func NewMetadataEncoder() *MetadataEncoder { return newMetadataEncoder(naturalOffset) }

// newMetadataEncoder takes the rule for offsets as an argument: the tests
// make ADIOS2's own records with it, gaps and all.
func newMetadataEncoder(place func(end int, f *encField) int) *MetadataEncoder {
	m := &MetadataEncoder{place: place, subs: map[string]ffs.Struct{}, end: leadingLen, align: slotSize}
	m.fields = []ffs.Field{
		{Name: fieldBitCount, Type: "integer", Size: slotSize, Offset: 0},
		{Name: fieldBits, Type: "integer[" + fieldBitCount + "]", Size: slotSize, Offset: slotSize},
		{Name: fieldDataSize, Type: "integer", Size: slotSize, Offset: 2 * slotSize},
	}
	m.base = make([]byte, leadingLen)
	return m
}

// Len returns the number of variables.
func (m *MetadataEncoder) Len() int { return len(m.vars) }

// Add gives v a field and returns its index, by which the Set calls name it.
// The caller keeps names unique. The error wraps [ErrEncode].
func (m *MetadataEncoder) Add(v VarDesc) (int, error) {
	f, err := v.field()
	if err != nil {
		return 0, err
	}
	switch {
	case v.Kind.IsArray():
		m.subs[f.typ] = v.metaArrayStruct()
	case f.typ == complex4Name || f.typ == complex8Name:
		m.subs[f.typ] = complexStruct(f.typ)
	}
	off := m.place(m.end, &f)
	m.vars = append(m.vars, encVar{desc: v, offset: off, width: f.width})
	m.fields = append(m.fields, ffs.Field{Name: f.name, Type: f.typ, Size: f.size, Offset: off})
	m.end, m.align, m.format = off+f.width, max(m.align, f.align), nil
	m.grow()
	return len(m.vars) - 1, nil
}

// grow makes room for one more variable in everything that is indexed by
// variable.
func (m *MetadataEncoder) grow() {
	m.base = append(m.base, make([]byte, m.end-len(m.base))...)
	m.arrays = append(m.arrays, nil)
	m.texts = append(m.texts, "")
	if need := (len(m.vars) + 63) / 64; need > len(m.bits) {
		m.bits = append(m.bits, 0)
	}
}

// Format returns the format of all variables so far. It is the same value until
// the next Add.
func (m *MetadataEncoder) Format() (*ffs.Format, error) {
	if m.format != nil {
		return m.format, nil
	}
	structs := []ffs.Struct{{Name: metaDataName, RecordLen: m.end, Align: m.align, Fields: m.fields}}
	f, err := ffs.New(append(structs, descending(m.subs)...)...)
	if err != nil {
		return nil, fmt.Errorf("bp5: metadata format of %d variables: %w", len(m.vars), err)
	}
	m.format = f
	return f, nil
}

// descending sorts sub-structs as ADIOS2 does: by descending name
// (docs/wire/bp5.md §1.1). Equal variable lists then get equal format ids.
func descending(subs map[string]ffs.Struct) []ffs.Struct {
	var out []ffs.Struct
	for _, s := range subs {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b ffs.Struct) int { return strings.Compare(b.Name, a.Name) })
	return out
}

// Begin starts a step: no variable is written yet, and the whole record is
// zero.
func (m *MetadataEncoder) Begin() {
	clear(m.base)
	clear(m.bits)
	clear(m.arrays)
	clear(m.texts)
}

// SetValue records a single value, in native bytes. The last one wins.
func (m *MetadataEncoder) SetValue(i int, native []byte) error {
	v, err := m.variable(i, false)
	if err != nil {
		return err
	}
	if v.desc.Type == String || len(native) != v.width {
		return fmt.Errorf("value %q of type %d: given %d bytes: %w", v.desc.Name, v.desc.Type, len(native), ErrEncode)
	}
	copy(m.base[v.offset:], native)
	m.mark(i)
	return nil
}

// SetText records a single string. It may not hold a NUL byte, which ends
// strings in a record. The last one wins.
func (m *MetadataEncoder) SetText(i int, s string) error {
	v, err := m.variable(i, false)
	if err != nil {
		return err
	}
	if v.desc.Type != String || strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("string for value %q of type %d: wrong type, or a NUL byte in the string: %w", v.desc.Name, v.desc.Type, ErrEncode)
	}
	m.texts[i] = s
	m.mark(i)
	return nil
}

// SetArray records the blocks of an array. The encoder keeps a until Append or
// Begin; the caller must not change it meanwhile.
func (m *MetadataEncoder) SetArray(i int, a *ArrayMeta) error {
	v, err := m.variable(i, true)
	if err != nil {
		return err
	}
	if err := v.desc.checkArray(a); err != nil {
		return err
	}
	m.arrays[i] = a
	m.mark(i)
	return nil
}

// variable returns variable i, which must be an array or a value as the
// caller says.
func (m *MetadataEncoder) variable(i int, array bool) (*encVar, error) {
	if i < 0 || i >= len(m.vars) {
		return nil, fmt.Errorf("variable %d of %d: %w", i, len(m.vars), ErrEncode)
	}
	v := &m.vars[i]
	if v.desc.Kind.IsArray() != array {
		return nil, fmt.Errorf("variable %q of kind %q set as something else: %w", v.desc.Name, v.desc.Kind, ErrEncode)
	}
	return v, nil
}

// mark sets the bit that says: written in this step (docs/wire/bp5.md §2).
func (m *MetadataEncoder) mark(i int) { m.bits[i/64] |= 1 << (i % 64) }

// checkArray compares the lengths of a's slices with what the format announces.
func (v VarDesc) checkArray(a *ArrayMeta) error {
	n := a.Dims * a.Blocks
	ok := a.Dims > 0 && a.Blocks >= 0 && len(a.Count) == n && len(a.Location) == a.Blocks &&
		(len(a.Shape) == 0 || len(a.Shape) == a.Dims) && (len(a.Offset) == 0 || len(a.Offset) == n) &&
		(len(a.MinMax) == 0 || len(a.MinMax) == 2*v.MinMax*a.Blocks)
	if v.Operator {
		ok = ok && len(a.StoredSize) == a.Blocks
	} else {
		ok = ok && len(a.StoredSize) == 0
	}
	if !ok {
		return fmt.Errorf("array %q: lists of %d blocks in %d dimensions have wrong lengths: %w", v.Name, a.Blocks, a.Dims, ErrEncode)
	}
	return nil
}

// Append appends the step's record to dst. dataSize is the length of the
// writer's data block, padding included.
//
// wire: format id 12 | length u64 | 0 u32 | base record | zeros to 8 | bit field
// | what strings and arrays point to, in field order (docs/wire/bp5.md §1.4, §2)
func (m *MetadataEncoder) Append(dst []byte, dataSize uint64) ([]byte, error) {
	// The id in front of the record is that of the newest format.
	f, err := m.Format()
	if err != nil {
		return dst, err
	}
	r := newRecord(slices.Grow(dst, m.sizeBound()), f.ID(), 0)
	r.b = append(r.b, m.base...)
	r.pad()
	r.putWord(0, uint64(len(m.bits)))
	r.words(slotSize, m.bits)
	r.putWord(2*slotSize, dataSize)
	for i := range m.vars {
		if m.bits[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		v := &m.vars[i]
		switch {
		case m.arrays[i] != nil:
			r.metaArray(v, m.arrays[i])
		case v.desc.Type == String:
			r.text(v.offset, m.texts[i])
		}
	}
	return r.finish(), nil
}

// sizeBound returns a length that the record does not exceed.
func (m *MetadataEncoder) sizeBound() int {
	n := recordHeader + len(m.base) + 8*len(m.bits) + 8
	for i, a := range m.arrays {
		n += len(m.texts[i]) + 1
		if a != nil {
			n += 8*(len(a.Shape)+len(a.Count)+len(a.Offset)+len(a.Location)+len(a.StoredSize)) + len(a.MinMax) + 8
		}
	}
	return n
}
