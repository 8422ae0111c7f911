package step

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Selector says which elements to read: a [Box] of the array, a whole block by
// its [BlockIndex], or a [Selection] for everything else.
type Selector interface{ selection() Selection }

// BlockIndex selects block i of [Variable.Blocks], all of it.
type BlockIndex int

// Selection is the long form of a [Selector]. The zero Selection selects the
// whole array.
type Selection struct {
	Box     Box     // relative to the block if Block is set, else to the array; the zero Box selects all of it
	Block   *int    // index of a block, nil for the array as a whole
	Memory  *Memory // where in the destination; nil: it holds the box and nothing else
	Missing *uint64 // if not nil, set on success to the number of selected elements that no block holds
}

// Memory describes a destination that is larger than the box that is read, for
// example one with ghost cells. It is a row-major array of Shape, and the box
// goes to Start in it. The other elements stay as they are.
type Memory struct {
	Shape, Start []uint64
}

func (b Box) selection() Selection { return Selection{Box: b} }

func (i BlockIndex) selection() Selection {
	n := int(i)
	return Selection{Block: &n}
}

func (s Selection) selection() Selection { return s }

// reading is a selection of one variable that was checked against the layout.
type reading struct {
	v           *Variable
	lay         *layout
	block       int      // -1: the array as a whole
	start       []uint64 // in the array, or in the block
	count       []uint64
	elements    int // product of count
	memShape    []uint64
	memStart    []uint64
	dstElements int // product of memShape: the length of the destination
	parts       []overlap
	staged      bool // parts overlap each other: their order matters
	missing     uint64
	missingOut  *uint64

	dst   []byte   // where the elements go
	texts []string // where they go if they are strings

	// Memory for the slices above, in one allocation with the reading: thousands
	// of variables are read in a step.
	numbers [5 * fewDims]uint64
	free    []uint64 // what is left of it
	one     [1]overlap
}

// fewDims is up to how many dimensions a reading of one block needs no memory
// beside its own.
const fewDims = 3

// take returns n zeros.
func (r *reading) take(n int) []uint64 {
	if n > len(r.free) {
		return make([]uint64, n)
	}
	out := r.free[:n:n]
	r.free = r.free[n:]
	return out
}

// resolve checks sel against the variable and finds the blocks it needs. The
// work is that of going through the blocks, whatever size the selection claims.
func (v *Variable) resolve(sel Selector) (*reading, error) {
	r, err := v.resolveSelection(sel)
	if err != nil {
		return nil, fmt.Errorf("step %d: variable %q: %w", v.step.number, v.def.name, err)
	}
	return r, nil
}

// resolveSelection checks everything that does not need the data: what is
// wrong must show before anything is transferred.
func (v *Variable) resolveSelection(sel Selector) (*reading, error) {
	var s Selection // of everything
	if sel != nil {
		s = sel.selection()
	}
	if err := v.readable(); err != nil {
		return nil, err
	}
	lay, err := v.layout()
	if err != nil {
		return nil, err
	}
	r := &reading{v: v, lay: lay, block: -1, missingOut: s.Missing}
	r.free, r.parts = r.numbers[:], r.one[:0]
	within, err := r.frame(s.Block)
	if err != nil {
		return nil, err
	}
	if err := r.setBox(s.Box, within); err != nil {
		return nil, err
	}
	if err := r.setMemory(s.Memory); err != nil {
		return nil, err
	}
	if r.elements == 0 {
		return r, nil
	}
	return r, r.findParts()
}

// frame returns the shape that the box is in.
func (r *reading) frame(block *int) ([]uint64, error) {
	if block == nil {
		if r.v.def.kind == LocalArrayKind {
			return nil, fmt.Errorf("a local array has no shape; select one of its %d blocks: %w", len(r.lay.blocks), ErrSelection)
		}
		return r.lay.shape, nil
	}
	if *block < 0 || *block >= len(r.lay.blocks) {
		return nil, fmt.Errorf("block %d does not exist, there are %d: %w", *block, len(r.lay.blocks), ErrSelection)
	}
	r.block = *block
	return r.lay.count(*block), nil
}

// setBox takes the box, which must lie inside the given shape.
func (r *reading) setBox(b Box, within []uint64) (err error) {
	if b.IsAll() {
		b.Count = within
	}
	if err := b.Within(within); err != nil {
		return err
	}
	// Copies: the caller may change the box before Fetch, and a box that was
	// checked must be the one that is read.
	r.start, r.count = r.take(len(within)), r.take(len(within))
	copy(r.start, b.Start)
	copy(r.count, b.Count)
	r.elements, err = Elements(r.count)
	return err
}

// setMemory takes the place in the destination. Without a Memory the
// destination holds the box and nothing else.
func (r *reading) setMemory(m *Memory) (err error) {
	r.memShape, r.memStart, r.dstElements = r.count, r.take(len(r.count)), r.elements
	if m != nil {
		if err := (Box{Start: m.Start, Count: r.count}).Within(m.Shape); err != nil {
			return fmt.Errorf("memory of the destination: %w", err)
		}
		r.memShape = slices.Clone(m.Shape)
		copy(r.memStart, m.Start)
		if r.dstElements, err = Elements(m.Shape); err != nil {
			return err
		}
	}
	// Later arithmetic is in bytes and must not wrap.
	if size := r.v.def.elemSize; size > 0 && r.dstElements > math.MaxInt/size {
		return fmt.Errorf("%s elements of %d bytes are more than this machine can address: %w", DimString(r.memShape), size, ErrSelection)
	}
	return nil
}

// bytes returns the size of the destination.
func (r *reading) bytes() int { return r.dstElements * r.v.def.elemSize }

// findParts finds what each block has of the box.
func (r *reading) findParts() error {
	if r.v.def.kind.IsValue() {
		return r.findValues()
	}
	if r.block >= 0 {
		p := overlap{block: r.block, lo: r.take(len(r.count)), hi: r.take(len(r.count))}
		copy(p.hi, r.count)
		r.parts = append(r.parts, p)
		return r.stored(r.block)
	}
	return r.intersect()
}

// settle finds out how the parts cover the selection. The work may be that of
// going through its elements once for each part, so it is done when there is
// memory for them, and ends with ctx.
func (r *reading) settle(ctx context.Context) error {
	if r.v.def.kind.IsValue() || r.block >= 0 || r.elements == 0 {
		return nil
	}
	if disjoint(r.parts) {
		sum := uint64(0)
		for _, p := range r.parts {
			sum += p.elements()
		}
		r.missing, r.staged = uint64(r.elements)-sum, false
		return nil
	}
	sortParts(r.parts)
	r.dropHidden()
	n, err := covered(ctx, r.parts, r.count, r.elements)
	r.missing, r.staged = uint64(r.elements)-n, len(r.parts) > 1
	return err
}

// dropHidden forgets the parts below one that covers the whole selection:
// nothing of them would be left. Programs that put a whole array several times
// in a step make such parts, and the reader would move all of them.
func (r *reading) dropHidden() {
	for i := len(r.parts) - 1; i > 0; i-- {
		if r.parts[i].elements() == uint64(r.elements) {
			r.parts = slices.Clone(r.parts[i:])
			return
		}
	}
}

// intersect collects the blocks that have a part of the box, in order.
func (r *reading) intersect() error {
	dims := len(r.count)
	var slab []uint64
	for b := range r.lay.blocks {
		if !r.touches(b) {
			continue
		}
		if err := r.stored(b); err != nil {
			return err
		}
		switch {
		case len(r.parts) == 0:
			slab = r.take(2 * dims)
		case len(slab) < 2*dims: // the corners of many parts come in one piece
			slab = make([]uint64, 2*dims*min(max(8, len(r.parts)), 4096))
		}
		p := overlap{block: b, lo: slab[:dims:dims], hi: slab[dims : 2*dims : 2*dims]}
		slab = slab[2*dims:]
		start, count := r.lay.start(b), r.lay.count(b)
		for d := range p.lo {
			lo, hi := max(start[d], r.start[d]), min(start[d]+count[d], r.start[d]+r.count[d])
			p.lo[d], p.hi[d] = lo-r.start[d], hi-r.start[d]
		}
		r.parts = append(r.parts, p)
	}
	return nil
}

// touches reports whether block b shares an element with the box.
func (r *reading) touches(b int) bool {
	start, count := r.lay.start(b), r.lay.count(b)
	for d := range start {
		if start[d] >= r.start[d]+r.count[d] || r.start[d] >= start[d]+count[d] || count[d] == 0 {
			return false
		}
	}
	return true
}

// stored checks that the data of block b can be had at all.
func (r *reading) stored(b int) error {
	blk := &r.lay.blocks[b]
	if blk.loc == noData {
		if r.v.def.expression != "" {
			return fmt.Errorf("derived by the expression %q, which is not evaluated here: %w", r.v.Expression(), ErrNotStored)
		}
		return fmt.Errorf("block %d of rank %d: %w", b, blk.rank, ErrNotStored)
	}
	if blk.op {
		return r.v.step.cfg.allowed(max(blk.size, r.lay.rawSize(b, r.v.def.elemSize)), "to decompress a block")
	}
	return nil
}

// findValues counts the ranks of the box that put a value.
func (r *reading) findValues() error {
	if r.v.def.kind == GlobalValueKind || r.block >= 0 {
		return nil
	}
	n := uint64(0)
	for b := range r.lay.blocks {
		if rank := uint64(r.lay.blocks[b].rank); rank >= r.start[0] && rank-r.start[0] < r.count[0] {
			n++
		}
	}
	r.missing = uint64(r.elements) - n
	return nil
}

// mulFits returns the product if it fits an int.
func mulFits(a, b uint64) (uint64, bool) {
	hi, lo := bits.Mul64(a, b)
	return lo, hi == 0 && lo <= math.MaxInt
}
