package step

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/internal/invariants"
	"github.com/weft-fabric/weft/internal/shmem"
)

// idleSteps is how many steps a segment waits in a pool for another use. Then
// it is left to the garbage collector: one large step must not cost its memory
// for the life of the stream.
const idleSteps = 64

// HeapPool is where the [HeapStore] values of one stream, or of several, keep
// their segments between steps. It is safe for concurrent use.
type HeapPool struct {
	limit uint64
	lends bool

	mu    sync.Mutex
	free  []*segment // by ascending length
	held  uint64     // bytes of all segments, free and in use
	steps uint64     // that have ended
	stuck []*segment // memory that nobody can have
}

type segment struct {
	mem  []byte
	step uint64 // of the pool, when it was put back
}

// PoolStats tells what a pool holds, in bytes.
type PoolStats struct {
	Held  uint64 // all segments
	Free  uint64 // of these: waiting for the next step
	Limit uint64 // 0: none
}

// NewHeapPool returns a pool whose stores together hold at most limit bytes; 0
// means no limit.
func NewHeapPool(limit uint64) *HeapPool { return &HeapPool{limit: limit} }

// NewLendingPool returns a pool whose memory may be lent to the kernel, to be sent
// without a copy: a peer can read it after the step. So it does not go back to the
// heap as it is, nor, from stores that were discarded, to another step: it gets new
// pages first.
func NewLendingPool(limit uint64) *HeapPool { return &HeapPool{limit: limit, lends: shmem.CanRenew} }

// NewStore returns an empty store that shares the pool.
func (p *HeapPool) NewStore() *HeapStore { return &HeapStore{pool: p} }

// Stats returns what the pool holds now.
func (p *HeapPool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := PoolStats{Held: p.held, Limit: p.limit}
	for _, s := range p.free {
		st.Free += uint64(len(s.mem))
	}
	return st
}

// get returns a segment of at least need bytes; want is a good size for a new
// one. It prefers a free segment of the wanted size, then a smaller one that
// does, then new memory: equal steps find the very segments of the step before.
func (p *HeapPool) get(need, want int) (*segment, error) {
	want = (want + minSegment - 1) / minSegment * minSegment
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, size := range []int{want, need} {
		if i := p.search(size); i < len(p.free) {
			s := p.free[i]
			p.free = slices.Delete(p.free, i, i+1)
			return s, nil
		}
	}
	size, err := p.admit(need, want)
	if err != nil {
		return nil, err
	}
	p.held += uint64(size)
	return p.make(size), nil
}

// make returns a new segment. One that may be lent gets new pages when nobody has it
// any more, however that came: a stream that was forgotten with a step open, say.
func (p *HeapPool) make(size int) *segment {
	s := &segment{mem: shmem.MakeHuge(size)}
	if p.lends {
		runtime.AddCleanup(s, func(mem []byte) { _ = shmem.Renew(mem) }, s.mem)
	}
	return s
}

// admit decides how large a new segment may be. Free segments, all too small,
// give way to it.
func (p *HeapPool) admit(need, want int) (int, error) {
	if p.limit == 0 {
		return want, nil
	}
	// The largest first: few of them make much room.
	for len(p.free) > 0 && p.held+uint64(want) > p.limit {
		p.drop(len(p.free) - 1)
	}
	switch {
	case p.held+uint64(want) <= p.limit:
		return want, nil
	case p.held+uint64(max(need, minSegment)) <= p.limit:
		return max(need, minSegment), nil
	}
	return 0, fmt.Errorf("step: store: %d bytes on top of %d, limit %d: %w", need, p.held, p.limit, ErrStoreFull)
}

// search returns the index of the smallest free segment of at least size bytes.
func (p *HeapPool) search(size int) int {
	i, _ := slices.BinarySearchFunc(p.free, size, func(s *segment, size int) int { return len(s.mem) - size })
	return i
}

// put takes a segment back. Somebody may still read one that is discarded.
func (p *HeapPool) put(s *segment, discarded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if discarded && !p.renew(s) {
		return
	}
	invariants.Poison(s.mem)
	s.step = p.steps
	p.free = slices.Insert(p.free, p.search(len(s.mem)), s)
}

// renew gives a segment that may be lent new pages. One that cannot have them is
// kept from everybody.
func (p *HeapPool) renew(s *segment) bool {
	if !p.lends || shmem.Renew(s.mem) == nil {
		return true
	}
	p.stuck = append(p.stuck, s)
	return false
}

// endStep counts a step and lets go of what no step has used for long.
func (p *HeapPool) endStep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps++
	for i := len(p.free) - 1; i >= 0; i-- {
		if p.steps-p.free[i].step > idleSteps {
			p.drop(i)
		}
	}
}

// drop leaves a free segment to the garbage collector.
func (p *HeapPool) drop(i int) {
	p.held -= uint64(len(p.free[i].mem))
	p.free = slices.Delete(p.free, i, i+1)
}
