package carrier

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/invariants"
	"github.com/weft-fabric/weft/internal/shmem"
)

// minPooled is the size, in bytes, from which on record memory is kept for
// reuse: below it, allocating costs less than looking.
const minPooled = 64 << 10

// pool keeps the memory of freed records, so that a stream of large ones does
// not fault in fresh pages for each. It is bounded in bytes; the longest unused
// piece goes first.
type pool struct {
	mu    sync.Mutex
	free  [][]byte // oldest first; len 0, cap is what counts
	bytes int      // sum of their capacities
	limit int
}

// get returns n bytes of unspecified content.
func (p *pool) get(n int) []byte {
	if n < minPooled {
		return make([]byte, n)
	}
	if b := p.reuse(n); b != nil {
		return b[:n]
	}
	return shmem.MakeHuge(roundUp(n))[:n]
}

// reuse takes the smallest kept piece that holds n bytes and wastes no more than
// it gives.
func (p *pool) reuse(n int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i, b := range p.free {
		if c := cap(b); c >= n && c <= 2*n && (best < 0 || c < cap(p.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return p.remove(best)
}

// remove takes out piece i. The caller holds mu.
func (p *pool) remove(i int) []byte {
	b := p.free[i]
	copy(p.free[i:], p.free[i+1:])
	p.free[len(p.free)-1] = nil
	p.free = p.free[:len(p.free)-1]
	p.bytes -= cap(b)
	return b
}

// put takes back a slice of get.
func (p *pool) put(b []byte) {
	if cap(b) < minPooled || cap(b) > p.limit {
		return
	}
	invariants.Poison(b[:cap(b)])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, b[:0])
	p.bytes += cap(b)
	for p.bytes > p.limit {
		p.remove(0)
	}
}

// releaser returns the Free function of a record: one that puts b back once.
func (p *pool) releaser(b []byte) func() {
	if cap(b) < minPooled {
		return nothing
	}
	var freed atomic.Bool
	return func() {
		if freed.CompareAndSwap(false, true) {
			p.put(b)
		}
	}
}

func nothing() {}

// roundUp rounds n up by at most an eighth, so that records of nearly the same
// size can use each other's memory.
func roundUp(n int) int {
	step := minPooled / 8
	for step*16 <= n {
		step *= 2
	}
	return (n + step - 1) / step * step
}
