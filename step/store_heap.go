package step

import (
	"fmt"
	"slices"
	"sort"
)

const (
	// Segments from minSegment on are page-aligned by Go's allocator, which is
	// what makes the memory of [HeapStore.Alloc] aligned.
	minSegment = 64 << 10
	maxSegment = 64 << 20 // where doubling ends; larger blocks get a segment of their own
	maxBlock   = 1 << 40  // no machine has it; Go would panic on sizes not much above
	storeAlign = 64       // positions in a segment agree with offsets modulo this
)

// HeapStore is a [Store] in the Go heap. It consists of segments that it gets
// from a [HeapPool] and gives back at Reset, so that a writer of equal steps
// soon allocates nothing, and writes to pages that are there already.
//
// The zero HeapStore works; it has a pool of its own, without a limit.
type HeapStore struct {
	pool *HeapPool
	ext  []extent
	size uint64
	cur  *segment // the last extent's; free from used on
	used int
	next int // size of the next segment
}

// extent is a part of the range that lies in one segment: bytes of the range
// from off on. It ends where the next one begins.
type extent struct {
	off uint64
	seg *segment
	at  int // index in seg.mem
}

// Alloc implements [Store]. The error wraps [ErrStoreFull] if the pool has a
// limit.
func (s *HeapStore) Alloc(n, align int) (uint64, []byte, error) {
	if n < 0 || align < 1 {
		return 0, nil, fmt.Errorf("step: store: %d bytes aligned to %d asked for: %w", n, align, ErrSelection)
	}
	gap := 0
	if over := s.size % uint64(align); over != 0 {
		gap = align - int(over)
	}
	if n > maxBlock-gap {
		return 0, nil, fmt.Errorf("step: store: block of %d bytes: %w", n, ErrStoreFull)
	}
	if gap+n == 0 {
		return s.size, nil, nil
	}
	if s.cur == nil || gap+n > len(s.cur.mem)-s.used {
		if err := s.extend(gap + n); err != nil {
			return 0, nil, err
		}
	}
	mem := s.cur.mem[s.used:]
	clear(mem[:gap])
	b := mem[gap : gap+n : gap+n]
	s.used += gap + n
	s.size += uint64(gap + n)
	return s.size - uint64(n), b, nil
}

// extend starts a new segment with room for n bytes. What is free in the
// current one stays unused: the range goes on without a gap.
func (s *HeapStore) extend(n int) error {
	if s.pool == nil {
		s.pool = NewHeapPool(0)
	}
	// Offsets and addresses stay equal modulo storeAlign, so that aligning the one
	// aligns the other.
	skip := int(s.size % storeAlign)
	s.next = max(s.next, minSegment)
	seg, err := s.pool.get(n+skip, max(n+skip, s.next))
	if err != nil {
		return err
	}
	s.next = min(2*s.next, maxSegment)
	s.ext = append(s.ext, extent{off: s.size, seg: seg, at: skip})
	s.cur, s.used = seg, skip
	return nil
}

// Size implements [Store].
func (s *HeapStore) Size() uint64 { return s.size }

// Slices implements [Store].
func (s *HeapStore) Slices(off, n uint64) ([][]byte, error) {
	if off > s.size || n > s.size-off {
		return nil, fmt.Errorf("step: store: bytes %d..%d of %d: %w", off, off+n, s.size, ErrSelection)
	}
	if n == 0 {
		return nil, nil
	}
	i := sort.Search(len(s.ext), func(i int) bool { return s.ext[i].off > off }) - 1
	var out [][]byte
	for ; n > 0; i++ {
		e, end := s.ext[i], s.size
		if i+1 < len(s.ext) {
			end = s.ext[i+1].off
		}
		take := min(n, end-off)
		at := e.at + int(off-e.off)
		out = append(out, e.seg.mem[at:at+int(take):at+int(take)])
		off, n = off+take, n-take
	}
	return out, nil
}

// Reset implements [Store]: the segments go back to the pool.
func (s *HeapStore) Reset() { s.reset(false) }

// Discard is Reset for a store whose memory is lent to somebody who still looks at
// it, and must not see the steps to come: see [NewLendingPool].
func (s *HeapStore) Discard() { s.reset(true) }

func (s *HeapStore) reset(discard bool) {
	for _, e := range s.ext {
		s.pool.put(e.seg, discard)
	}
	if s.pool != nil {
		s.pool.endStep()
	}
	s.ext = slices.Delete(s.ext, 0, len(s.ext))
	s.size, s.cur, s.used, s.next = 0, nil, 0, 0
}
