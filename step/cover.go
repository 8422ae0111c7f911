package step

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// overlap is the part of a block that lies in the selected box: lo and hi per
// dimension, in the coordinates of the box.
type overlap struct {
	block  int
	lo, hi []uint64
}

// elements returns the number of elements of the part. It cannot overflow:
// the part lies in a box whose elements fit an int.
func (o overlap) elements() uint64 {
	n := uint64(1)
	for d := range o.lo {
		n *= o.hi[d] - o.lo[d]
	}
	return n
}

// disjoint reports whether no two parts share an element. It may say false for
// disjoint parts in an arrangement that no straight cuts separate; covered
// then tells the truth at a higher price. It reorders parts.
func disjoint(parts []overlap) bool {
	if len(parts) < 2 {
		return true
	}
	// The sum over all cuts is about n log n for grids and for what adaptive
	// meshes make; the bound is for records made to be slow.
	work := 64 * len(parts)
	return cut(parts, 0, 0, &work)
}

// cut separates parts along dimension d into groups that share no coordinate,
// and each group along the next dimension, until all groups are single parts.
// tried counts the dimensions in vain.
func cut(parts []overlap, d, tried int, work *int) bool {
	dims := len(parts[0].lo)
	if len(parts) == 1 {
		return true
	}
	if *work -= len(parts); tried == dims || *work < 0 {
		return false
	}
	// A cut is possible wherever no part reaches from one side to the other.
	byLow := func(a, b overlap) int { return cmp.Compare(a.lo[d], b.lo[d]) }
	if !slices.IsSortedFunc(parts, byLow) {
		slices.SortFunc(parts, byLow)
	}
	next, first, end := (d+1)%dims, 0, parts[0].hi[d]
	for i := 1; i <= len(parts); i++ {
		if i < len(parts) && parts[i].lo[d] < end {
			end = max(end, parts[i].hi[d])
			continue
		}
		// One group of all means that this dimension gave nothing; after all
		// dimensions in a row did so, no straight cut separates the parts.
		t := 0
		if first == 0 && i == len(parts) {
			t = tried + 1
		}
		if !cut(parts[first:i], next, t, work) {
			return false
		}
		if i < len(parts) {
			first, end = i, parts[i].hi[d]
		}
	}
	return true
}

// sortParts restores the order of the blocks, in which later ones win.
func sortParts(parts []overlap) {
	slices.SortFunc(parts, func(a, b overlap) int { return cmp.Compare(a.block, b.block) })
}

// covered returns the number of elements of a box of the given counts that lie
// in at least one part. It takes one bit an element, and work in proportion to
// the elements of the parts, as copying them does. It ends early, with its
// error, when ctx is done.
func covered(ctx context.Context, parts []overlap, count []uint64, elements int) (uint64, error) {
	set := make([]uint64, (elements+63)/64)
	var levels [MaxDims]level
	var size [MaxDims]uint64
	for _, p := range parts {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		for d := range count {
			size[d] = p.hi[d] - p.lo[d]
		}
		w := newWalk(&levels, size[:len(count)], count, count, 1)
		w.mark(0, linear(p.lo, count, 1), set)
	}
	n := uint64(0)
	for _, w := range set {
		n += uint64(bits.OnesCount64(w))
	}
	return n, nil
}

// mark sets the bits that the loops from level on go through.
func (w walk) mark(from int, at uint64, set []uint64) {
	if from == len(w.levels) {
		markRun(set, at, at+w.run)
		return
	}
	for i := range w.levels[from].count {
		w.mark(from+1, at+i*w.levels[from].src, set)
	}
}

// markRun sets the bits [lo, hi).
func markRun(set []uint64, lo, hi uint64) {
	for lo < hi {
		n := min(hi-lo, 64-lo%64)
		set[lo/64] |= (^uint64(0) >> (64 - n)) << (lo % 64)
		lo += n
	}
}
