package step

import (
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/internal/invariants"
	"github.com/weft-fabric/weft/internal/shmem"
)

// idleSteps is how many steps a segment waits in a pool for another use. Then
// the pool lets go of it: one large step must not cost its memory for the life of
// the stream.
const idleSteps = 64

// HeapPool is where the [HeapStore] values of one stream, or of several, keep
// their segments between steps. It is safe for concurrent use.
type HeapPool struct {
	limit uint64
	lends bool
	alloc func(n int) (StoreMemory, error) // nil: the Go heap

	mu     sync.Mutex // given back by unlock where segments may be dropped
	free   []*segment // by ascending length
	held   uint64     // bytes of all segments: free, in use, and being made
	steps  uint64     // that have ended
	stuck  []*segment // memory that nobody can have
	closed bool       // nothing is kept any more
	gone   []StoreMemory
}

type segment struct {
	mem  []byte
	from StoreMemory // nil: the Go heap
	step uint64      // of the pool, when it was put back
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
	return PoolStats{Held: p.held, Free: p.idle(), Limit: p.limit}
}

// idle returns the bytes of the free segments.
func (p *HeapPool) idle() uint64 {
	n := uint64(0)
	for _, s := range p.free {
		n += uint64(len(s.mem))
	}
	return n
}

// unlock gives the lock back, and then the memory that the pool let go of: its source
// may take long for it, and have locks of its own.
func (p *HeapPool) unlock() {
	gone := p.gone
	p.gone = nil
	p.mu.Unlock()
	for _, m := range gone {
		m.Free()
	}
}

// get returns a segment of at least need bytes; want is a good size for it. whole says
// that only the limit is a reason for less: the step is to lie in one.
func (p *HeapPool) get(need, want int, whole bool) (*segment, error) {
	s, size, err := p.reserve(need, sizeClass(want), whole)
	if s != nil || err != nil {
		return s, err
	}
	return p.make(size)
}

// reserve takes a free segment, or else counts a new one of the size that it returns. It
// prefers a free segment of the wanted size, then a smaller one that does, then new
// memory: equal steps find the very segments of the step before.
func (p *HeapPool) reserve(need, want int, whole bool) (*segment, int, error) {
	p.mu.Lock()
	defer p.unlock()
	// A segment that is much too large is left alone, so that it becomes idle: steps that
	// have shrunk must not keep it.
	most := 2 * want
	used := p.held - p.idle()
	if p.limit != 0 && used+uint64(want) > p.limit {
		want, whole = max(need, minSegment), false
	}
	s := p.take(want, most)
	if s == nil && !whole {
		s = p.take(need, most)
	}
	if s != nil {
		return s, 0, nil
	}
	if p.limit != 0 && used+uint64(want) > p.limit {
		return nil, 0, fmt.Errorf("step: store: %d bytes on top of %d, limit %d: %w", need, p.held, p.limit, ErrStoreFull)
	}
	p.makeRoom(want, whole)
	p.held += uint64(want)
	return nil, want, nil
}

// take returns the smallest free segment of at least that many bytes, nil if there is
// none of at most most.
func (p *HeapPool) take(least, most int) *segment {
	i := p.search(least)
	if i == len(p.free) || len(p.free[i].mem) > most {
		return nil
	}
	s := p.free[i]
	p.free = slices.Delete(p.free, i, i+1)
	return s
}

// makeRoom lets free segments give way to a new one: those that the limit demands, the
// largest first, because few of them make much room; and the one that a whole step has
// outgrown, because a step that grows each time would leave behind idleSteps of them.
func (p *HeapPool) makeRoom(size int, whole bool) {
	for p.limit != 0 && len(p.free) > 0 && p.held+uint64(size) > p.limit {
		p.drop(len(p.free) - 1)
	}
	if i := p.search(size) - 1; whole && i >= 0 && len(p.free[i].mem) >= size/2 {
		p.drop(i)
	}
}

// sizeClass rounds a size up, by an eighth at most or else to a multiple of minSegment:
// steps of about the same size share segments, and one that grows slowly rarely needs a
// new one.
func sizeClass(n int) int {
	unit := max(minSegment, 1<<bits.Len(uint(n))>>4)
	return (n + unit - 1) / unit * unit
}

// make returns a new segment, which is counted already.
func (p *HeapPool) make(size int) (*segment, error) {
	if p.alloc == nil {
		return p.fromHeap(size), nil
	}
	s, err := p.fromSource(size)
	if err == nil {
		return s, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= uint64(size)
	return nil, fmt.Errorf("step: store: memory of %d bytes, on top of %d, limit %d: %w", size, p.held, p.limit, err)
}

// fromHeap returns a segment in the Go heap. One that may be lent gets new pages when
// nobody has it any more, however that came: a stream that was forgotten with a step
// open, say.
func (p *HeapPool) fromHeap(size int) *segment {
	s := &segment{mem: shmem.MakeHuge(size)}
	if p.lends {
		runtime.AddCleanup(s, func(mem []byte) { _ = shmem.Renew(mem) }, s.mem)
	}
	return s
}

// search returns the index of the smallest free segment of at least size bytes.
func (p *HeapPool) search(size int) int {
	i, _ := slices.BinarySearchFunc(p.free, size, func(s *segment, size int) int { return len(s.mem) - size })
	return i
}

// put takes a segment back. Somebody may still read one that is discarded.
func (p *HeapPool) put(s *segment, discarded bool) {
	p.mu.Lock()
	defer p.unlock()
	switch {
	case discarded && s.from != nil:
		p.letGo(s) // as it is
		return
	case discarded && !p.renew(s):
		return
	}
	invariants.Poison(s.mem)
	if _, brief := s.from.(Makeshift); brief || p.closed {
		p.letGo(s)
		return
	}
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
	defer p.unlock()
	p.steps++
	for i := len(p.free) - 1; i >= 0; i-- {
		if p.steps-p.free[i].step > idleSteps {
			p.drop(i)
		}
	}
}

// drop lets go of a free segment.
func (p *HeapPool) drop(i int) {
	p.letGo(p.free[i])
	p.free = slices.Delete(p.free, i, i+1)
}

// letGo leaves a segment to the garbage collector, or to its source when the lock is
// given back.
func (p *HeapPool) letGo(s *segment) {
	p.held -= uint64(len(s.mem))
	if s.from != nil {
		p.gone = append(p.gone, s.from)
	}
}
