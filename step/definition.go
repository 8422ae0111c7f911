package step

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// Definition is a variable on the writing side: what [Encoder.Define] made. Its
// name, element type, kind and number of dimensions are those of the variable
// for the life of the writer; the dimensions of a global or joined array may
// change. It belongs to the encoder's goroutine.
type Definition struct {
	enc      *Encoder
	name     string
	typ      Type
	shape    Shape
	st       *StructType
	elemSize int
	format   *FormatBlock // of the struct elements
	desc     bp5.VarDesc
	field    int // in the metadata record, -1 before the first Put

	// The open step.
	written bool
	blocks  bp5.ArrayMeta
	spans   []openSpan
}

// openSpan is a block whose bytes are the caller's until the step ends.
type openSpan struct {
	block int
	mem   []byte
}

// Name returns the variable's name.
func (d *Definition) Name() string { return d.name }

// Type returns the element type.
func (d *Definition) Type() Type { return d.typ }

// Struct returns the element description of a Struct variable, else nil. It
// must not be changed.
func (d *Definition) Struct() *StructType { return d.st }

// Kind returns the kind of the shape.
func (d *Definition) Kind() Kind { return d.shape.Kind }

// Shape returns a copy of the shape as it is now.
func (d *Definition) Shape() Shape {
	return Shape{Kind: d.shape.Kind, Dims: slices.Clone(d.shape.Dims)}
}

// SetShape changes the dimensions of a global or joined array; their number
// stays. Readers see one shape a step: the one that holds at End. In an open
// step the blocks put so far must fit into the new shape. On an error, which
// wraps [ErrDefinition] or [ErrSelection], the shape stays.
func (d *Definition) SetShape(dims ...uint64) error {
	if d.shape.Kind != GlobalArrayKind && d.shape.Kind != JoinedArrayKind {
		return fmt.Errorf("step: shape of %q: a %v has none to set: %w", d.name, d.shape.Kind, ErrDefinition)
	}
	if len(dims) != len(d.shape.Dims) {
		return fmt.Errorf("step: shape of %q: %s after %s, the number of dimensions cannot change: %w", d.name, DimString(dims), DimString(d.shape.Dims), ErrDefinition)
	}
	next := Shape{Kind: d.shape.Kind, Dims: dims}
	if err := next.Validate(); err != nil {
		return fmt.Errorf("step: shape of %q: %w: %w", d.name, err, ErrDefinition)
	}
	if d.written {
		if err := d.checkBlocks(next); err != nil {
			return fmt.Errorf("step: shape of %q: already put in this step: %w", d.name, err)
		}
	}
	copy(d.shape.Dims, dims)
	return nil
}

// checkBlocks reports whether the blocks put so far fit into another shape.
func (d *Definition) checkBlocks(shape Shape) error {
	n := d.blocks.Dims
	for b := range d.blocks.Blocks {
		box := Box{Count: d.blocks.Count[b*n : (b+1)*n]}
		if len(d.blocks.Offset) > 0 {
			box.Start = d.blocks.Offset[b*n : (b+1)*n]
		}
		if err := shape.checkBlock(box); err != nil {
			return err
		}
	}
	return nil
}

// block turns the box of a Put into a whole one, and returns the bytes it has.
func (d *Definition) block(box Box) (Box, int, error) {
	if d.shape.Kind == GlobalArrayKind && box.IsAll() {
		box.Count = d.shape.Dims
	}
	if err := d.shape.checkBlock(box); err != nil {
		return box, 0, err
	}
	elems, err := box.Elements()
	if err != nil {
		return box, 0, err
	}
	hi, size := bits.Mul64(uint64(elems), uint64(d.elemSize))
	if hi != 0 || size > maxBlock {
		return box, 0, fmt.Errorf("block %v of %d bytes an element is too large: %w", box, d.elemSize, ErrSelection)
	}
	return box, int(size), nil
}

// checkBlock reports whether a writer may put box into an array of this shape.
func (s Shape) checkBlock(box Box) error {
	if s.Kind == GlobalArrayKind {
		return box.Within(s.Dims)
	}
	if len(box.Count) != len(s.Dims) {
		return fmt.Errorf("block %v has %d dimensions, the %v has %d: %w", box, len(box.Count), s.Kind, len(s.Dims), ErrSelection)
	}
	if slices.ContainsFunc(box.Start, func(v uint64) bool { return v != 0 }) || box.Start != nil && len(box.Start) != len(s.Dims) {
		return fmt.Errorf("block %v: blocks of a %v have no start: %w", box, s.Kind, ErrSelection)
	}
	for i, n := range box.Count {
		if s.Kind == JoinedArrayKind && s.Dims[i] != JoinedDim && s.Dims[i] != n {
			return fmt.Errorf("block %v does not fit the joined array %s in dimension %d: %w", box, DimString(s.Dims), i, ErrSelection)
		}
	}
	return nil
}

// align returns what a block of n bytes is aligned to in the data: what BP5
// asks for, and a cache line if it is large.
func (d *Definition) align(n int) int {
	if d.typ == Struct || n < largeBlock {
		return d.elemSize
	}
	return max(d.elemSize, storeAlign)
}

// add records a block.
func (d *Definition) add(box Box, loc uint64) {
	m := &d.blocks
	m.Dims = len(d.shape.Dims)
	m.Blocks++
	m.Count = append(m.Count, box.Count...)
	if d.shape.Kind == GlobalArrayKind {
		m.Offset = append(m.Offset, box.Start...)
		if box.Start == nil {
			m.Offset = append(m.Offset, make([]uint64, m.Dims)...)
		}
	}
	m.Location = append(m.Location, loc)
}

// clear forgets the open step, but keeps the memory of its lists.
func (d *Definition) clear() {
	m := &d.blocks
	d.blocks = bp5.ArrayMeta{Shape: m.Shape[:0], Count: m.Count[:0], Offset: m.Offset[:0], Location: m.Location[:0], MinMax: m.MinMax[:0]}
	clear(d.spans)
	d.spans, d.written = d.spans[:0], false
}

// newDefinition checks everything that does not depend on other variables.
func newDefinition(name string, t Type, shape Shape, st *StructType, stats bool) (*Definition, error) {
	if err := shape.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrDefinition)
	}
	if shape.Kind == UnknownKind {
		shape.Kind = GlobalValueKind
	}
	d := &Definition{name: name, typ: t, st: st, field: -1, elemSize: t.Size()}
	d.shape = Shape{Kind: shape.Kind, Dims: slices.Clone(shape.Dims)}
	d.desc = bp5.VarDesc{Name: name, Kind: wireKind(shape.Kind), Type: bp5.Type(t)}
	if st != nil {
		if err := d.describeStruct(); err != nil {
			return nil, err
		}
	}
	d.desc.ElemSize = d.elemSize
	if stats && !shape.Kind.IsValue() {
		d.desc.MinMax = bp5.StatsSize(d.elemSize)
	}
	if err := d.desc.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrDefinition)
	}
	return d, nil
}

// describeStruct makes the format that tells readers what an element looks
// like. It copies the description: the caller may change its own.
func (d *Definition) describeStruct() error {
	st := &StructType{Name: d.st.Name, Size: d.st.Size, Fields: slices.Clone(d.st.Fields)}
	if err := st.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrDefinition)
	}
	// Members stay where the caller's compiler put them.
	def := bp5.StructDef{Name: st.Name, Size: st.Size, Fields: make([]bp5.StructMember, len(st.Fields))}
	for i, f := range st.Fields {
		def.Fields[i] = bp5.StructMember{Name: f.Name, Type: bp5.Type(f.Type), Offset: f.Offset, Count: f.Count}
	}
	f, err := bp5.NewStructFormat(def)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrDefinition)
	}
	d.st, d.elemSize = st, st.Size
	d.format = &FormatBlock{ID: f.ID(), Body: f.Body()}
	d.desc.StructID = f.ID()
	return nil
}

// wireKind returns the letter of a checked kind; UnknownKind was made a
// global value before.
func wireKind(k Kind) bp5.Kind {
	switch k {
	case LocalValueKind:
		return bp5.LocalValue
	case GlobalArrayKind:
		return bp5.GlobalArray
	case LocalArrayKind:
		return bp5.LocalArray
	case JoinedArrayKind:
		return bp5.JoinedArray
	}
	return bp5.GlobalValue
}

// checkText refuses what would be cut in a record: strings end in NUL there.
func checkText(s string) error {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return fmt.Errorf("string holds a NUL byte at %d: %w", i, ErrDefinition)
	}
	return nil
}
