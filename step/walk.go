package step

// level is one loop of a copy between two arrays: count iterations, and how
// many bytes each moves on in the source and in the destination.
type level struct{ count, src, dst uint64 }

// walk describes the copy of a box from one row-major array to another as
// nested loops, outermost first, around runs of bytes that are contiguous in
// both. Dimensions that need no loop of their own are folded away, so a copy
// of whole rows, or of a whole array, is one run.
type walk struct {
	levels []level
	run    uint64
}

// newWalk plans the copy of count elements of elem bytes out of an array of
// srcShape into one of dstShape. No count may be 0, and the bytes of both
// arrays must fit a uint64. The levels are made in buf.
func newWalk(buf *[MaxDims]level, count, srcShape, dstShape []uint64, elem uint64) walk {
	w := walk{run: elem}
	n := 0 // levels so far, innermost first
	src, dst := elem, elem
	for d := len(count) - 1; d >= 0; d-- {
		c := count[d]
		switch {
		case c == 1: // no loop
		case n == 0 && src == w.run && dst == w.run: // contiguous in both: a longer run
			w.run *= c
		case n > 0 && buf[n-1].src*buf[n-1].count == src && buf[n-1].dst*buf[n-1].count == dst:
			buf[n-1].count *= c
		default:
			buf[n] = level{count: c, src: src, dst: dst}
			n++
		}
		src *= srcShape[d]
		dst *= dstShape[d]
	}
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		buf[i], buf[j] = buf[j], buf[i]
	}
	w.levels = buf[:n]
	return w
}

// need returns the bytes that the loops from level on copy.
func (w walk) need(from int) uint64 {
	n := w.run
	for _, l := range w.levels[from:] {
		n *= l.count
	}
	return n
}

// span returns the bytes of the source from the first to the last that the
// loops from level on copy.
func (w walk) span(from int) uint64 {
	n := w.run
	for _, l := range w.levels[from:] {
		n += (l.count - 1) * l.src
	}
	return n
}

// copy runs the loops from level from on, outer times the first of them.
func (w walk) copy(from int, outer uint64, dst, src []byte) {
	if from == len(w.levels) {
		copy(dst[:w.run], src[:w.run])
		return
	}
	l := w.levels[from]
	if from == len(w.levels)-1 {
		for i := range outer {
			copy(dst[i*l.dst:][:w.run], src[i*l.src:][:w.run])
		}
		return
	}
	for i := range outer {
		w.copy(from+1, w.levels[from+1].count, dst[i*l.dst:], src[i*l.src:])
	}
}

// outer returns the iterations of level from, 1 behind the last.
func (w walk) outer(from int) uint64 {
	if from == len(w.levels) {
		return 1
	}
	return w.levels[from].count
}

// linear returns the byte offset of the element at start in a row-major array.
func linear(start, shape []uint64, elem uint64) uint64 {
	off := uint64(0)
	for d := range shape {
		off = off*shape[d] + start[d]
	}
	return off * elem
}
