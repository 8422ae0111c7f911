package step

import (
	"fmt"
	"math"
	"slices"

	"github.com/weft-fabric/weft/internal/wire/bp5"
)

const noData = bp5.NoData

// layout is where the elements of one variable are in one step, in row-major
// terms whatever the writer's order. It is made from the records of the ranks
// when the variable is first used.
type layout struct {
	dims     int
	shape    []uint64 // nil for local arrays
	declared []uint64 // as put: with JoinedDim in it for joined arrays
	blocks   []blockInfo
	starts   []uint64 // dims numbers a block; nil for local arrays
	counts   []uint64
	one      [1]blockInfo
	stats    [][]byte // minimum and maximum of each block, an empty one without; nil if no block has any
}

type blockInfo struct {
	rank int32
	rec  int32  // index in Variable.recs
	op   bool   // stored through an operator
	loc  uint64 // offset in the rank's data block, or noData
	size uint64 // bytes as stored
}

// count returns the dimensions of block b. Read only: it is the layout's
// memory, capped so that an append cannot reach the next block.
func (l *layout) count(b int) []uint64 { return l.counts[b*l.dims : (b+1)*l.dims : (b+1)*l.dims] }

// start returns where block b begins, nil for local arrays.
func (l *layout) start(b int) []uint64 {
	if l.starts == nil {
		return nil
	}
	return l.starts[b*l.dims : (b+1)*l.dims : (b+1)*l.dims]
}

// rawSize returns the bytes of block b without an operator. That they fit an
// int was checked when the layout was made.
func (l *layout) rawSize(b, elemSize int) uint64 {
	n := uint64(elemSize)
	for _, c := range l.count(b) {
		n *= c
	}
	return n
}

// layout returns the variable's layout, made once.
func (v *Variable) layout() (*layout, error) {
	v.once.Do(func() {
		if v.err != nil {
			return
		}
		var l *layout
		var err error
		if v.def.kind.IsValue() {
			l = v.valueLayout()
		} else {
			l, err = v.arrayLayout()
		}
		if err != nil {
			v.err = fmt.Errorf("%w: %w", ErrMetadata, err)
			return
		}
		v.lay = l
	})
	return v.lay, v.err
}

// valueLayout presents values as arrays: a local value is one element a rank.
func (v *Variable) valueLayout() *layout {
	recs, dims := v.recs, 1
	if v.def.kind == GlobalValueKind {
		recs, dims = recs[:1], 0 // the first rank that has it counts
	}
	l := newLayout(dims, len(recs), dims == 1)
	if dims == 1 {
		l.shape = []uint64{uint64(len(v.step.metas))}
	}
	l.blocks = l.blocks[:len(recs)]
	for i, rec := range recs {
		l.blocks[i] = blockInfo{rank: rec.rank, rec: int32(i)}
		if l.dims == 1 {
			l.starts = append(l.starts, uint64(rec.rank))
			l.counts = append(l.counts, 1)
		}
	}
	return l
}

// arrayLayout reads the array records of all ranks.
func (v *Variable) arrayLayout() (*layout, error) {
	var one [1]bp5.ArrayMeta // most streams have one rank, or one that puts the variable
	metas := one[:]
	if len(v.recs) > 1 {
		metas = make([]bp5.ArrayMeta, len(v.recs))
	}
	total := 0
	for i, rec := range v.recs {
		m, err := v.step.metas[rec.rank].Array(int(rec.field))
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", rec.rank, err)
		}
		if m.Dims < 1 || m.Dims > MaxDims {
			return nil, fmt.Errorf("rank %d: %d dimensions, an array has 1 to %d", rec.rank, m.Dims, MaxDims)
		}
		if i > 0 && m.Dims != metas[0].Dims {
			return nil, fmt.Errorf("rank %d: %d dimensions, rank %d has %d", rec.rank, m.Dims, v.recs[0].rank, metas[0].Dims)
		}
		metas[i] = m
		total += m.Blocks
	}
	l := v.newLayout(metas, total)
	if err := l.setShape(v, metas); err != nil {
		return nil, err
	}
	for i := range metas {
		if err := l.addRank(v, i, &metas[i]); err != nil {
			return nil, fmt.Errorf("rank %d: %w", v.recs[i].rank, err)
		}
	}
	return l, nil
}

// newLayout returns a layout with room for the blocks of metas. One record's own
// lists become those of the layout: they are in its order.
func (v *Variable) newLayout(metas []bp5.ArrayMeta, blocks int) *layout {
	m := &metas[0]
	if len(metas) > 1 || v.def.kind == JoinedArrayKind {
		return newLayout(m.Dims, blocks, v.def.kind != LocalArrayKind)
	}
	l := &layout{dims: m.Dims}
	l.room(blocks)
	if l.counts = m.Count[:0]; v.def.kind == GlobalArrayKind {
		l.starts = m.Offset[:0]
	}
	return l
}

// newLayout returns a layout with room for blocks, in as few pieces of memory as
// can be: there is one for each variable that is read in a step.
func newLayout(dims, blocks int, starts bool) *layout {
	l := &layout{dims: dims}
	l.room(blocks)
	n := blocks * dims
	if !starts {
		l.counts = make([]uint64, 0, n)
		return l
	}
	numbers := make([]uint64, 2*n)
	l.counts, l.starts = numbers[:0:n], numbers[n:n:2*n]
	return l
}

// room makes room for blocks.
func (l *layout) room(blocks int) {
	if l.blocks = l.one[:0]; blocks > len(l.one) {
		l.blocks = make([]blockInfo, 0, blocks)
	}
}

// setShape takes the shape of the first rank that has one, as ADIOS2 does.
func (l *layout) setShape(v *Variable, metas []bp5.ArrayMeta) error {
	if v.def.kind == LocalArrayKind {
		l.declared = make([]uint64, l.dims)
		return nil
	}
	for i := range metas {
		if len(metas[i].Shape) == l.dims {
			l.declared = l.ordered(v, metas[i].Shape)
			break
		}
	}
	if l.declared == nil {
		return fmt.Errorf("no rank gives the shape of the %v", v.def.kind)
	}
	// The extent of the joined dimension grows with the blocks, see place.
	l.shape = l.declared
	if v.def.kind == JoinedArrayKind {
		if err := (Shape{Kind: JoinedArrayKind, Dims: l.declared}).Validate(); err != nil {
			return err
		}
		l.shape = slices.Clone(l.declared)
		l.shape[slices.Index(l.declared, JoinedDim)] = 0
	}
	return nil
}

// ordered returns dims in row-major order, in memory of its own if that is not
// the writer's.
func (l *layout) ordered(v *Variable, dims []uint64) []uint64 {
	if v.step.cfg.ColumnMajor && len(dims) > 1 {
		dims = slices.Clone(dims)
		slices.Reverse(dims)
	}
	return dims
}

// addRank adds the blocks of one rank.
func (l *layout) addRank(v *Variable, i int, m *bp5.ArrayMeta) error {
	rec := v.recs[i]
	desc := v.step.metas[rec.rank].Var(int(rec.field))
	dataSize := v.step.metas[rec.rank].DataSize()
	withStats := v.def.typ.Ordered() && desc.MinMax == v.def.elemSize && len(m.MinMax) > 0
	if v.def.kind == GlobalArrayKind && m.Blocks > 0 && m.Offset == nil {
		return fmt.Errorf("%d blocks without offsets", m.Blocks)
	}
	for b := range m.Blocks {
		count := l.appendOrdered(v, &l.counts, m.Count[b*l.dims:(b+1)*l.dims])
		blk := blockInfo{rank: rec.rank, rec: int32(i), op: desc.Operator, loc: m.Location[b]}
		raw, err := rawBytes(count, uint64(v.def.elemSize))
		if err != nil {
			return err
		}
		blk.size = raw
		if blk.op {
			blk.size = m.StoredSize[b]
		}
		// A block of no bytes has a location that may be anything.
		if blk.loc != noData && raw > 0 && (blk.loc > dataSize || blk.size > dataSize-blk.loc) {
			return fmt.Errorf("block %d: %d bytes at %d leave the rank's data of %d bytes", b, blk.size, blk.loc, dataSize)
		}
		if err := l.place(v, m, b, count); err != nil {
			return fmt.Errorf("block %d: %w", b, err)
		}
		if withStats {
			if l.stats == nil { // most streams have none
				l.stats = make([][]byte, cap(l.blocks))
			}
			n := 2 * v.def.elemSize
			l.stats[len(l.blocks)] = m.MinMax[b*n : (b+1)*n : (b+1)*n]
		}
		l.blocks = append(l.blocks, blk)
	}
	return nil
}

// appendOrdered appends one block's numbers to all and returns them there.
func (l *layout) appendOrdered(v *Variable, all *[]uint64, dims []uint64) []uint64 {
	at := len(*all)
	*all = append(*all, dims...)
	if v.step.cfg.ColumnMajor {
		slices.Reverse((*all)[at:])
	}
	return (*all)[at:]
}

// place sets where in the array block b of a rank is.
func (l *layout) place(v *Variable, m *bp5.ArrayMeta, b int, count []uint64) error {
	switch v.def.kind {
	case GlobalArrayKind:
		start := l.appendOrdered(v, &l.starts, m.Offset[b*l.dims:(b+1)*l.dims])
		for d := range start {
			if count[d] > math.MaxUint64-start[d] {
				return fmt.Errorf("%s from %s on: beyond 64 bits", DimString(count), DimString(start))
			}
		}
	case JoinedArrayKind:
		j := slices.Index(l.declared, JoinedDim)
		at := len(l.starts)
		l.starts = append(l.starts, make([]uint64, l.dims)...)
		l.starts[at+j] = l.shape[j]
		if count[j] > math.MaxUint64-l.shape[j] {
			return fmt.Errorf("joined extent %d and %d more: beyond 64 bits", l.shape[j], count[j])
		}
		l.shape[j] += count[j]
	}
	return nil
}

// rawBytes returns the size of a block, which must fit an int.
func rawBytes(count []uint64, elemSize uint64) (uint64, error) {
	if slices.Contains(count, 0) {
		return 0, nil
	}
	n, ok := elemSize, true
	for _, c := range count {
		if n, ok = mulFits(n, c); !ok {
			return 0, fmt.Errorf("block of %s elements is larger than this machine can address", DimString(count))
		}
	}
	return n, nil
}
