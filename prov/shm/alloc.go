package shm

import (
	"math/bits"
	"slices"
)

const (
	pageSize  = 4096
	blockUnit = 64       // every block's alignment
	smallMax  = 32 << 10 // longer blocks are whole pages
	spanSize  = 64 << 10 // what blocks of one small size are cut from
	sizeSteps = 4        // small sizes for each doubling

	minSegment = 1 << 20
	maxSegment = 64 << 20 // but for a block that is larger
)

// extent is a piece of a segment.
type extent struct {
	seg uint32
	off uint64
	len uint64
}

// allocator cuts blocks out of segments. It deals in numbers only and touches no memory. Small blocks
// have a size of a class and come from spans of equal blocks; others are runs of pages. The caller locks.
type allocator struct {
	segs  []*space
	spans map[spanKey]*span
	open  map[uint64][]*span // by size: spans that have a free block
	idle  []*space           // segments of which no block is out, the one that has been so for longest first
	total uint64             // bytes of all segments
	empty uint64             // of these, bytes of the idle ones
	used  uint64             // bytes of blocks that are out
}

// space is a segment's free runs of pages, by offset; no two touch.
type space struct {
	seg  uint32
	size uint64
	free []extent
}

type spanKey struct {
	seg uint32
	off uint64
}

// span is a piece that is cut into blocks of one size.
type span struct {
	at   extent
	size uint64
	free []uint32 // indices of blocks
	used int
}

func newAllocator() *allocator {
	return &allocator{spans: make(map[spanKey]*span), open: make(map[uint64][]*span)}
}

// blockSize is what a block of n bytes really takes. Small sizes grow in quarters of a doubling, so at
// most a fifth of a block is lost.
func blockSize(n uint64) uint64 {
	switch {
	case n <= blockUnit:
		return blockUnit
	case n > smallMax:
		return roundUp(n, pageSize)
	}
	step := max(blockUnit, uint64(1)<<(bits.Len64(n-1)-1)/sizeSteps)
	return roundUp(n, step)
}

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }

// segmentSize is how large the next segment should be so that a block of n bytes finds room.
func (a *allocator) segmentSize(n uint64) uint64 {
	want := min(max(minSegment, uint64(1)<<bits.Len64(a.total/2)), maxSegment)
	return max(want, roundUp(n, pageSize))
}

// add makes a segment of whole pages known.
func (a *allocator) add(seg uint32, size uint64) {
	s := &space{seg: seg, size: size, free: []extent{{seg, 0, size}}}
	a.segs = append(a.segs, s)
	a.total += size
	a.idles(s)
}

// idles notes that no block of a segment is out any more.
func (a *allocator) idles(s *space) {
	a.idle = append(a.idle, s)
	a.empty += s.size
}

// wakes is the end of idles.
func (a *allocator) wakes(s *space) {
	i := slices.Index(a.idle, s)
	a.idle = slices.Delete(a.idle, i, i+1)
	a.empty -= s.size
}

// whole says whether no block of the segment is out.
func (s *space) whole() bool { return len(s.free) == 1 && s.free[0].len == s.size }

// take gets a block of at least n bytes; false if no segment has room.
func (a *allocator) take(n uint64) (extent, bool) {
	size := blockSize(n)
	var e extent
	ok := false
	if size > smallMax {
		e, ok = a.pages(size, pageSize)
	} else {
		e, ok = a.small(size)
	}
	if ok {
		a.used += size
	}
	return e, ok
}

// pages gets a run of pages: the first that fits.
func (a *allocator) pages(size, align uint64) (extent, bool) {
	for _, s := range a.segs {
		for i, f := range s.free {
			off := roundUp(f.off, align)
			if off+size > f.off+f.len {
				continue
			}
			if s.whole() {
				a.wakes(s)
			}
			rest := make([]extent, 0, 2)
			if off > f.off {
				rest = append(rest, extent{s.seg, f.off, off - f.off})
			}
			if end := off + size; end < f.off+f.len {
				rest = append(rest, extent{s.seg, end, f.off + f.len - end})
			}
			s.free = slices.Replace(s.free, i, i+1, rest...)
			return extent{s.seg, off, size}, true
		}
	}
	return extent{}, false
}

// small gets a block from a span, a new one if no open span has a block of the size.
func (a *allocator) small(size uint64) (extent, bool) {
	open := a.open[size]
	if len(open) == 0 {
		at, ok := a.pages(spanSize, spanSize)
		if !ok {
			return extent{}, false
		}
		sp := &span{at: at, size: size}
		for i := uint32(spanSize / size); i > 0; i-- {
			sp.free = append(sp.free, i-1)
		}
		a.spans[spanKey{at.seg, at.off}] = sp
		open = append(open, sp)
	}
	sp := open[len(open)-1]
	i := sp.free[len(sp.free)-1]
	sp.free = sp.free[:len(sp.free)-1]
	sp.used++
	if len(sp.free) == 0 {
		open = open[:len(open)-1]
	}
	a.open[size] = open
	return extent{sp.at.seg, sp.at.off + uint64(i)*size, size}, true
}

// put gives a block back. The extent must be one that take returned.
func (a *allocator) put(e extent) {
	a.used -= e.len
	if e.len > smallMax {
		a.freePages(e)
		return
	}
	key := spanKey{e.seg, e.off / spanSize * spanSize}
	sp := a.spans[key]
	if len(sp.free) == 0 {
		a.open[sp.size] = append(a.open[sp.size], sp)
	}
	sp.free = append(sp.free, uint32((e.off-sp.at.off)/sp.size))
	sp.used--
	if sp.used > 0 {
		return
	}
	open := a.open[sp.size]
	i := slices.Index(open, sp)
	a.open[sp.size] = slices.Delete(open, i, i+1)
	delete(a.spans, key)
	a.freePages(sp.at)
}

// freePages puts a run back and joins it with its neighbours.
func (a *allocator) freePages(e extent) {
	s := a.space(e.seg)
	i, _ := slices.BinarySearchFunc(s.free, e.off, func(f extent, off uint64) int {
		if f.off < off {
			return -1
		}
		return 1
	})
	s.free = slices.Insert(s.free, i, e)
	if i+1 < len(s.free) && s.free[i].off+s.free[i].len == s.free[i+1].off {
		s.free[i].len += s.free[i+1].len
		s.free = slices.Delete(s.free, i+1, i+2)
	}
	if i > 0 && s.free[i-1].off+s.free[i-1].len == s.free[i].off {
		s.free[i-1].len += s.free[i].len
		s.free = slices.Delete(s.free, i, i+1)
	}
	if s.whole() {
		a.idles(s)
	}
}

func (a *allocator) space(seg uint32) *space {
	for _, s := range a.segs {
		if s.seg == seg {
			return s
		}
	}
	return nil
}

// shed forgets the idle segment that is missed least where so many bytes are kept: one that is larger than that, else the one
// that has been idle for longest. There must be one.
func (a *allocator) shed(keep uint64) uint32 {
	s := a.idle[max(0, slices.IndexFunc(a.idle, func(s *space) bool { return s.size > keep }))]
	a.wakes(s)
	a.total -= s.size
	a.segs = without(a.segs, s)
	return s.seg
}
