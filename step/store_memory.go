package step

import (
	"errors"
	"fmt"
)

// StoreMemory is memory for block stores that comes from outside of the Go heap: what
// others can be shown, say.
type StoreMemory interface {
	// Bytes returns the memory: always the same slice, aligned to 64 bytes.
	Bytes() []byte

	// Free is called exactly once, when the pool has no use for the memory any more, by
	// whoever ends a step or needs room, with no lock of the pool held. Somebody may
	// still look at memory of a store that was discarded.
	Free()
}

// Makeshift is memory that the source gives because it has no better now: the pool frees it
// with the step, and asks again for the next.
type Makeshift interface {
	StoreMemory
	Makeshift()
}

// errShortMemory is about a source that does not keep its word.
var errShortMemory = errors.New("the source gave less memory than it was asked for")

// NewMemoryPool returns a pool whose segments come from alloc: n bytes, at least. The
// pool uses n of them, counts n, and owns the memory until it calls Free. limit is that of
// [NewHeapPool].
//
// alloc is called with no lock of the pool held, by several goroutines at once if the pool
// has several stores that are filled at once: it may be slow. Its error is wrapped by that of
// [HeapStore.Alloc], and nothing has changed.
//
// Memory of a store that was discarded is not used again: it is freed, as it is. The pool
// should be closed.
func NewMemoryPool(limit uint64, alloc func(n int) (StoreMemory, error)) *HeapPool {
	return &HeapPool{limit: limit, alloc: alloc}
}

// fromSource returns a segment of memory that alloc has made.
func (p *HeapPool) fromSource(size int) (*segment, error) {
	m, err := p.alloc(size)
	if err != nil {
		return nil, err
	}
	b := m.Bytes()
	if len(b) < size {
		m.Free()
		return nil, fmt.Errorf("%d bytes: %w", len(b), errShortMemory)
	}
	return &segment{mem: b[:size:size], from: m}, nil
}

// Close lets go of the memory that waits for another step, and of that in use when its
// store gives it back. Stores keep working: what they have stays theirs until Reset, and
// what they get from now on is not kept either. Close may be called more than once; the
// stores are not waited for.
func (p *HeapPool) Close() {
	p.mu.Lock()
	defer p.unlock()
	p.closed = true
	p.dropAll()
}

// Trim lets go of the memory that waits for another step, because there will be none for
// a while.
func (p *HeapPool) Trim() {
	p.mu.Lock()
	defer p.unlock()
	p.dropAll()
}

func (p *HeapPool) dropAll() {
	for len(p.free) > 0 {
		p.drop(len(p.free) - 1)
	}
}
