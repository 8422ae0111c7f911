package step

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// Variable is one variable in one step. What it says of shapes and blocks is in
// row-major order. It is immutable and safe for concurrent use; the slices that
// its methods return are not to be changed.
//
// If the records of the ranks contradict each other, Err says so, the methods
// that describe the array return nothing, and reading fails.
type Variable struct {
	step *Step
	*entry
}

// varDef is what does not change from step to step. It is shared by all steps
// whose records have the same format.
type varDef struct {
	name       string
	kind       Kind
	typ        Type
	elemSize   int
	operator   bool
	expression string // base64
	structID   ffs.ID
	structType atomic.Pointer[StructType]
	id         int32 // of the name in the decoder
	err        error // why it cannot be read, whatever the step
}

// varRec is one rank's record of a variable.
type varRec struct{ rank, field int32 }

// Name returns the variable's name.
func (v *Variable) Name() string { return v.def.name }

// Type returns the element type. A single value that was put as a char is Int8:
// the format does not tell.
func (v *Variable) Type() Type { return v.def.typ }

// Kind returns the shape kind.
func (v *Variable) Kind() Kind { return v.def.kind }

// ElemSize returns the bytes of one element, 0 for strings.
func (v *Variable) ElemSize() int { return v.def.elemSize }

// StructType describes the elements of a Struct variable, nil for others or if
// the writer did not describe them.
func (v *Variable) StructType() *StructType { return v.def.structType.Load() }

// OperatorPresent reports whether blocks are stored through an operator, for
// example compressed. Which one is in the blocks.
func (v *Variable) OperatorPresent() bool { return v.def.operator }

// Expression returns the expression of a derived variable, else "". It is not
// evaluated here.
func (v *Variable) Expression() string {
	text, err := base64.StdEncoding.DecodeString(v.def.expression)
	if err != nil {
		return v.def.expression
	}
	return strings.TrimRight(string(text), "\x00")
}

// Err returns what is wrong with the variable, if it cannot be read.
func (v *Variable) Err() error {
	if err := v.readable(); err != nil {
		return fmt.Errorf("step %d: variable %q: %w", v.step.number, v.def.name, err)
	}
	if _, err := v.layout(); err != nil {
		return fmt.Errorf("step %d: variable %q: %w", v.step.number, v.def.name, err)
	}
	return nil
}

// readable reports what is wrong with the definition, whatever the step.
func (v *Variable) readable() error { return v.def.err }

// Dims returns the number of dimensions: 0 for global values, 1 for local ones.
func (v *Variable) Dims() int {
	if l, err := v.layout(); err == nil {
		return l.dims
	}
	return 0
}

// Shape returns the dimensions of the whole array, slowest first. That of a
// joined array is computed from its blocks, that of a local value is the number
// of ranks. It is nil for global values and local arrays.
func (v *Variable) Shape() []uint64 {
	if l, err := v.layout(); err == nil {
		return l.shape
	}
	return nil
}

// DeclaredShape returns the shape as a writer would declare it to put the same
// variable: with JoinedDim for joined arrays, and row-major.
func (v *Variable) DeclaredShape() Shape {
	s := Shape{Kind: v.def.kind}
	if l, err := v.layout(); err == nil {
		s.Dims = l.declared
	}
	return s
}

// Ranks returns the ranks that put the variable, in ascending order.
func (v *Variable) Ranks() []int {
	ranks := make([]int, len(v.recs))
	for i, r := range v.recs {
		ranks[i] = int(r.rank)
	}
	return ranks
}

// Block describes what one Put of one rank wrote.
type Block struct {
	Index  int    // in Blocks: ranks in order, then in the order of the Puts
	Rank   int    // of the writer
	Box    Box    // in the array; Start is nil for local arrays, both are for global values
	Stored bool   // false: the block has no data, only a description
	Size   uint64 // bytes as stored, 0 for values
	Stats  Stats
}

// NumBlocks returns the number of blocks.
func (v *Variable) NumBlocks() int {
	if l, err := v.layout(); err == nil {
		return len(l.blocks)
	}
	return 0
}

// Block returns block i, the zero Block if there is none.
func (v *Variable) Block(i int) Block {
	l, err := v.layout()
	if err != nil || i < 0 || i >= len(l.blocks) {
		return Block{}
	}
	return v.block(l, i)
}

// Blocks returns all blocks. A global value has one, of the first rank that put
// it; a local value has one for each rank that did.
func (v *Variable) Blocks() []Block {
	l, err := v.layout()
	if err != nil {
		return nil
	}
	list := make([]Block, len(l.blocks))
	for i := range list {
		list[i] = v.block(l, i)
	}
	return list
}

// block describes one block of the layout. Its dimensions are the layout's
// memory: copying them for a million blocks would cost more than all the
// rest.
func (v *Variable) block(l *layout, i int) Block {
	blk := &l.blocks[i]
	b := Block{Index: i, Rank: int(blk.rank), Stored: blk.loc != noData, Size: blk.size}
	if l.dims > 0 {
		b.Box = Box{Start: l.start(i), Count: l.count(i)}
	}
	b.Stats = v.stats(l, i)
	return b
}

// Read reads the elements that sel selects into dst, in native bytes: row-major
// without gaps, unless the selection names memory. dst must hold them; more is
// left alone, and so is what no block holds. It is not for strings.
func (v *Variable) Read(ctx context.Context, sel Selector, dst []byte) error {
	return v.step.Fetch(ctx, v.IntoBytes(sel, dst))
}

// IntoBytes prepares what Read does, for [Step.Fetch].
func (v *Variable) IntoBytes(sel Selector, dst []byte) Get {
	if s, ok := v.strip(sel); ok && len(dst) >= s.bytes() {
		return Get{s: s, dst: dst[:s.bytes()]}
	}
	r, err := v.resolve(sel)
	if err != nil {
		return Get{err: err}
	}
	if v.def.typ == String {
		return Get{err: fmt.Errorf("step %d: variable %q: strings cannot be read as bytes: %w", v.step.number, v.def.name, ErrType)}
	}
	if r.elements > 0 && len(dst) < r.bytes() {
		return Get{err: r.short(len(dst), r.bytes(), "bytes")}
	}
	r.dst = dst
	return Get{r: r}
}

// short is the error for a destination that is too small.
func (r *reading) short(have, need int, unit string) error {
	return fmt.Errorf("step %d: variable %q: destination has %d %s, %d are needed: %w", r.v.step.number, r.v.def.name, have, unit, need, ErrShortBuffer)
}

// ReadBlockRaw reads block i as it is stored: with an operator that is what the
// operator made, see package operator. Values are read from the metadata.
func (v *Variable) ReadBlockRaw(ctx context.Context, i int) ([]byte, error) {
	n := i
	r, err := v.resolve(Selection{Block: &n})
	if err != nil {
		return nil, err
	}
	if v.def.kind.IsValue() {
		b := make([]byte, v.def.elemSize)
		return b, v.Read(ctx, BlockIndex(i), b)
	}
	blk := r.lay.blocks[i]
	if r.elements == 0 {
		return []byte{}, nil
	}
	if err := v.step.cfg.allowed(blk.size, "to read a block"); err != nil {
		return nil, fmt.Errorf("step %d: variable %q: %w", v.step.number, v.def.name, err)
	}
	b := make([]byte, blk.size)
	return b, v.step.readRaw(ctx, v, blk, b)
}

// readRaw reads one stored block.
func (s *Step) readRaw(ctx context.Context, v *Variable, blk blockInfo, dst []byte) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	f := fetch{batch: batch{ctx: ctx, src: s.src}}
	if f.src == nil {
		f.src = noSource{}
	}
	if err := f.batch.add(read{rank: int(blk.rank), off: blk.loc, n: blk.size, dst: dst, what: v}); err != nil {
		return err
	}
	return f.flush()
}
