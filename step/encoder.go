package step

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// What writing a step can fail with, apart from [ErrSelection], [ErrType] and
// [ErrStoreFull]. All are wrapped with the variable or attribute in question.
var (
	// ErrDefinition says that a variable or attribute is not possible as
	// declared, or not another time.
	ErrDefinition = errors.New("impossible definition")
	// ErrDefined says that a variable of that name is defined already. It comes
	// with ErrDefinition.
	ErrDefined = fmt.Errorf("already defined: %w", ErrDefinition)
	// ErrNoStep says that no step is open: Put, Span or End without Begin.
	ErrNoStep = errors.New("no step is open")
	// ErrStepOpen says that a step is open: Begin after Begin.
	ErrStepOpen = errors.New("a step is open")
)

// dataPadding is what the length of a data block is a multiple of
// (docs/wire/bp5.md §3).
const dataPadding = 16

// largeBlock is the number of bytes from which a block is worth a cache line's
// alignment.
const largeBlock = 4 << 10

// EncoderConfig configures an [Encoder]. The zero value writes row-major arrays
// without statistics, and attributes of every type.
type EncoderConfig struct {
	// ColumnMajor says that the caller's dimensions are in column-major order,
	// fastest first, as Fortran's are. They are recorded as given; the carrier
	// must announce the order to readers.
	ColumnMajor bool

	// Stats records minimum and maximum of each block of an array. It reads
	// all data once more.
	Stats bool

	// OldAttributes writes attributes in the old style, which SST of ADIOS2
	// sends by default: [Encoder.SetAttribute] then refuses string arrays and
	// some names, and char arrays arrive as int8. ADIOS2's development branch
	// after 2.12.1 misread old-style complex attributes of other layouts than
	// this one. The default, the generic style, has none of these limits and is
	// understood since 2.9.
	OldAttributes bool

	// MaxBytes limits the data of one step; 0 means no limit.
	MaxBytes uint64
}

// FormatBlock is an FFS format: what readers need to understand records that
// begin with ID. It is immutable.
type FormatBlock struct {
	ID   [ffs.IDLen]byte
	Body []byte
}

// Output is one writer rank's step as it travels, apart from the data, which is
// in the [Store]. The caller owns Metadata; Attributes and the bodies of the
// formats are shared and must not be changed.
type Output struct {
	Formats    []FormatBlock // new since the last step
	Metadata   []byte        // one record, also for a step without variables
	Attributes []byte        // one record of all attributes; empty: nothing changed
	DataSize   uint64        // bytes in the store, padding included
}

// Encoder makes the steps of one writer rank of one stream or file: what is put
// becomes BP5 records and a data block. It belongs to one goroutine at a time.
//
// A step begins with [Encoder.Begin] and ends with [Encoder.End] or
// [Encoder.Abort]. Variables and attributes can be declared in and between
// steps.
type Encoder struct {
	cfg  EncoderConfig
	meta *bp5.MetadataEncoder
	defs map[string]*Definition

	formats []FormatBlock // all that were ever sent
	sent    map[[ffs.IDLen]byte]bool
	pending []FormatBlock // of struct elements, for the next End

	attrs attributeSet

	store   Store // nil: no step is open
	touched []*Definition
}

// NewEncoder returns an encoder without variables. The configuration is copied.
func NewEncoder(cfg EncoderConfig) *Encoder {
	return &Encoder{
		cfg:   cfg,
		meta:  bp5.NewMetadataEncoder(),
		defs:  map[string]*Definition{},
		sent:  map[[ffs.IDLen]byte]bool{},
		attrs: newAttributeSet(cfg.OldAttributes),
	}
}

// Config returns the configuration.
func (e *Encoder) Config() EncoderConfig { return e.cfg }

// Define declares a variable: t is not Struct, and String only with a value
// shape. The shape is copied. Readers see the variable in the steps in which it
// is put. A name cannot be used twice; it may hold any text without NUL bytes
// (ADIOS2 up to 2.10 cuts a name at an opening parenthesis). Errors wrap
// [ErrDefinition], and [ErrDefined] for a name in use.
func (e *Encoder) Define(name string, t Type, shape Shape) (*Definition, error) {
	if !t.Valid() || t == Struct {
		return nil, fmt.Errorf("step: define %q of type %v: %w", name, t, ErrDefinition)
	}
	return e.define(name, t, shape, nil)
}

// DefineStruct is [Encoder.Define] for an array of structs; BP5 has no single
// struct values. st is copied.
func (e *Encoder) DefineStruct(name string, st *StructType, shape Shape) (*Definition, error) {
	if st == nil || shape.Kind.IsValue() || shape.Kind == UnknownKind {
		return nil, fmt.Errorf("step: define %q: needs a struct type and an array: %w", name, ErrDefinition)
	}
	return e.define(name, Struct, shape, st)
}

// define checks and adds a variable. It takes no field in the format yet:
// readers should not see variables that are never put.
func (e *Encoder) define(name string, t Type, shape Shape, st *StructType) (*Definition, error) {
	if old := e.defs[name]; old != nil {
		return nil, fmt.Errorf("step: define %q: %w", name, ErrDefined)
	}
	d, err := newDefinition(name, t, shape, st, e.cfg.Stats)
	if err != nil {
		return nil, fmt.Errorf("step: define %q: %w", name, err)
	}
	d.enc = e
	e.defs[name] = d
	return d, nil
}

// Definition returns the variable of that name, or nil.
func (e *Encoder) Definition(name string) *Definition { return e.defs[name] }

// SetAttribute adds an attribute or changes its value; readers see it from the
// step on that ends next. A value equal to the one before is no change. The
// element type, and whether it is an array, cannot change. Arrays may be empty.
//
// Whenever an attribute is new or changed, End sends a record of all
// attributes: ADIOS2's SST readers forget what is not in the newest record.
// Of several ranks' attributes, SST delivers those of rank 0 only.
//
// The error wraps [ErrDefinition], and nothing has changed.
func (e *Encoder) SetAttribute(a AttributeDef) error {
	if err := e.attrs.set(a); err != nil {
		return fmt.Errorf("step: set %w", err)
	}
	return nil
}

// Begin opens a step that stores its data in store, which must be empty. The
// store remains the caller's, who resets it when no reader needs the step any
// more; until End or Abort nobody else may use it.
func (e *Encoder) Begin(store Store) error {
	switch {
	case e.store != nil:
		return fmt.Errorf("step: begin: %w", ErrStepOpen)
	case store == nil:
		return fmt.Errorf("step: begin: no store: %w", ErrNoStep)
	case store.Size() != 0:
		return fmt.Errorf("step: begin: the store holds %d bytes of another step: %w", store.Size(), ErrStepOpen)
	}
	e.store = store
	e.meta.Begin()
	return nil
}

// Abort ends the open step, if any, without output. Variables and attributes
// stay declared; attributes that changed go into the next step that ends. The
// caller resets the store; spans are no longer valid.
func (e *Encoder) Abort() {
	for _, d := range e.touched {
		d.clear()
	}
	clear(e.touched)
	e.touched, e.store = e.touched[:0], nil
}

// Formats returns all formats that were ever sent, in order: what a reader
// needs that joins late. Each step in which variables are put for the first
// time adds one of the size of all variables, so declare and put them early.
// The slice must not be changed.
func (e *Encoder) Formats() []FormatBlock { return e.formats[:len(e.formats):len(e.formats)] }

// AttributesNow returns the record of all attributes as of the last step that
// ended, nil if it had none: what a reader needs that joins late. It must not be
// changed.
func (e *Encoder) AttributesNow() []byte { return e.attrs.record }
