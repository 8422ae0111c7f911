package step

// strip is what most selections are: elements of one block, one after the other there and in
// the destination. It takes no memory to find out, while a reading does: thousands of variables are
// read in a step.
type strip struct {
	v        *Variable // nil: it is none
	rank     int
	off      uint64 // of the first, in the rank's data block
	elements int    // not 0
}

// bytes returns the size of the elements.
func (s *strip) bytes() int { return s.elements * s.v.def.elemSize }

// fewBlocks is how many blocks are looked through for the one that has all of a selection. Of more,
// a selection mostly needs several.
const fewBlocks = 8

// strip returns sel as a strip; ok is false if it is none, or not right. Then resolve knows more.
func (v *Variable) strip(sel Selector) (s strip, ok bool) {
	block, box := -1, All
	switch sel := sel.(type) {
	case nil:
	case Box:
		box = sel
	case BlockIndex:
		if block = int(sel); block < 0 {
			return strip{}, false
		}
	default:
		return strip{}, false
	}
	lay, err := v.layout()
	if err != nil || v.readable() != nil || v.def.kind.IsValue() || block >= len(lay.blocks) {
		return strip{}, false
	}
	var at, n uint64
	if block >= 0 {
		at, n, ok = lay.run(block, All, nil)
	} else {
		block, at, n, ok = lay.only(box)
	}
	if !ok || n == 0 {
		return strip{}, false
	}
	blk := &lay.blocks[block]
	if blk.op || blk.loc == noData {
		return strip{}, false
	}
	return strip{v, int(blk.rank), blk.loc + at*uint64(v.def.elemSize), int(n)}, true
}

// only returns the block that has all elements of a box in the array, one after the other from at
// on, if no other block has any.
func (l *layout) only(box Box) (block int, at, n uint64, ok bool) {
	if l.shape == nil || len(l.blocks) > fewBlocks {
		return 0, 0, 0, false
	}
	if box.IsAll() {
		box.Count = l.shape
	}
	if len(box.Count) != l.dims || box.Start != nil && len(box.Start) != l.dims {
		return 0, 0, 0, false
	}
	for d, c := range box.Count {
		if from := box.from(d); from > l.shape[d] || c > l.shape[d]-from {
			return 0, 0, 0, false
		}
	}
	for b := range l.blocks {
		if !l.meets(b, box) {
			continue
		}
		if ok {
			return 0, 0, 0, false
		}
		if at, n, ok = l.run(b, box, l.start(b)); !ok {
			return 0, 0, 0, false
		}
		block = b
	}
	return block, at, n, ok
}

// meets reports whether block b shares an element with a box that lies in the array.
func (l *layout) meets(b int, box Box) bool {
	start, count := l.start(b), l.count(b)
	for d, c := range box.Count {
		if from := box.from(d); start[d] >= from+c || from >= start[d]+count[d] || count[d] == 0 {
			return false
		}
	}
	return true
}

// run returns where in block b the n elements of a box are that has its place beside origin, nil for
// the block's own; [All] is the whole block. ok is false if they are not all in the block, or not one
// after the other.
func (l *layout) run(b int, box Box, origin []uint64) (at, n uint64, ok bool) {
	n = 1
	for d, size := range l.count(b) {
		from, c := uint64(0), size
		if !box.IsAll() {
			from, c = box.from(d), box.Count[d]
		}
		if origin != nil {
			if from < origin[d] {
				return 0, 0, false
			}
			from -= origin[d]
		}
		if from > size || c > size-from || n > 1 && c != size {
			return 0, 0, false
		}
		at, n = at*size+from, n*c
	}
	return at, n, true
}

// from returns where the box begins in dimension d.
func (b *Box) from(d int) uint64 {
	if b.Start == nil {
		return 0
	}
	return b.Start[d]
}
