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

// HeapStore is a [Store] on segments of a [HeapPool]: memory of the Go heap, or of
// another source ([NewMemoryPool]). It gives them back at Reset, so that a writer of
// equal steps soon allocates nothing, and writes to pages that are there already.
//
// The zero HeapStore works; it has a pool of its own in the Go heap, without a limit.
type HeapStore struct {
	pool      *HeapPool
	stretches []stretch
	size      uint64
	cur       *segment // the last stretch's; free from used on
	used      int
	next      int // size of the next segment
	expect    int // size that the store will probably have; 0 when that is seen to
}

// stretch is what of the range lies in one segment: bytes of the range from off on. It
// ends where the next one begins, and is not empty: who starts one fills it.
type stretch struct {
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
	want, whole := max(n+skip, s.next, minSegment), uint64(s.expect) > s.size
	if whole {
		want = max(want, s.expect-int(s.size)+skip)
	}
	seg, err := s.pool.get(n+skip, want, whole)
	if err != nil {
		return err
	}
	// A store that outgrows what was expected goes on in pieces that suit its size.
	s.next = min(2*max(s.next, minSegment, s.expect/8), maxSegment)
	s.expect = 0
	s.stretches = append(s.stretches, stretch{off: s.size, seg: seg, at: skip})
	s.cur, s.used = seg, skip
	return nil
}

// Expect says before the first Alloc how many bytes the store will probably have, such
// as those of the step before: the next segment has room for them, so that all lies in
// one. It is a hint. The store may become larger, and it consists of smaller segments
// where the pool's limit leaves no room for that one. What no machine has is not
// expected.
func (s *HeapStore) Expect(n uint64) {
	if s.expect = 0; n <= maxBlock {
		s.expect = int(n)
	}
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
	i := sort.Search(len(s.stretches), func(i int) bool { return s.stretches[i].off > off }) - 1
	var out [][]byte
	for ; n > 0; i++ {
		p := s.stretches[i]
		take := min(n, s.end(i)-off)
		at := p.at + int(off-p.off)
		out = append(out, p.seg.mem[at:at+int(take):at+int(take)])
		off, n = off+take, n-take
	}
	return out, nil
}

// end returns where stretch i ends in the range.
func (s *HeapStore) end(i int) uint64 {
	if i+1 < len(s.stretches) {
		return s.stretches[i+1].off
	}
	return s.size
}

// Extent says where bytes [Offset, Offset+Length) of a store lie: in Memory, from byte At
// of it on. Memory is nil in the Go heap, where At means nothing to others.
type Extent struct {
	Offset, Length uint64
	Memory         StoreMemory
	At             uint64
}

// Extents tells where all that was allocated lies: one extent for each segment, none
// empty, rising and without gaps from 0 to Size. The slice is the caller's; the memory is
// the store's until Reset. Like Slices, it is safe for concurrent use once nothing is
// allocated any more.
func (s *HeapStore) Extents() []Extent {
	if len(s.stretches) == 0 {
		return nil
	}
	out := make([]Extent, len(s.stretches))
	for i, p := range s.stretches {
		out[i] = Extent{Offset: p.off, Length: s.end(i) - p.off, Memory: p.seg.from, At: uint64(p.at)}
	}
	return out
}

// Reset implements [Store]: the segments go back to the pool.
func (s *HeapStore) Reset() { s.reset(false) }

// Discard is Reset for a store whose memory is lent to somebody who still looks at
// it, and must not see the steps to come. The pool gives the memory new pages
// ([NewLendingPool]), or has done with it ([NewMemoryPool]).
func (s *HeapStore) Discard() { s.reset(true) }

func (s *HeapStore) reset(discard bool) {
	for _, p := range s.stretches {
		s.pool.put(p.seg, discard)
	}
	if s.pool != nil {
		s.pool.endStep()
	}
	s.stretches = slices.Delete(s.stretches, 0, len(s.stretches))
	s.size, s.cur, s.used, s.next, s.expect = 0, nil, 0, 0, 0
}
