package memmon

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/sys"
)

// Arena is memory that this package maps and takes back itself, in whole pages, zeroed, private to the process: the best memory for
// communication where nothing but a registration is wanted. It needs no monitor. As a [Kind] it is all of its memory.
//
// All methods are safe for concurrent use; Generation and Bytes take no lock. The memory must not be touched after Close, nor be written
// during Discard.
type Arena struct {
	gen     atomic.Uint64
	bytes   atomic.Pointer[[]byte]
	mu      sync.Mutex // of the memory
	memory  *sys.Anonymous
	arbiter *Arbiter
}

// NewArena maps n bytes, at least one, rounded up to pages.
func NewArena(n int) (*Arena, error) { return Process().NewArena(n) }

// NewArena is [NewArena] for caches of this arbiter.
func (a *Arbiter) NewArena(n int) (*Arena, error) {
	if n <= 0 {
		return nil, fmt.Errorf("memmon: an arena of %d bytes: it has at least one", n)
	}
	page := pageSize
	m, err := sys.MapAnonymous((n-1)/page*page + page)
	if err != nil {
		return nil, fmt.Errorf("memmon: arena: %w", err)
	}
	arena := &Arena{memory: m, arbiter: a}
	b := m.Bytes()
	arena.bytes.Store(&b)
	return arena, nil
}

// Bytes is the memory; nil after Close.
func (a *Arena) Bytes() []byte {
	if b := a.bytes.Load(); b != nil {
		return *b
	}
	return nil
}

// Generation changes with Discard and Close, and after Close with each call: nothing that lies there then can be registered any more.
func (a *Arena) Generation() uint64 {
	if g := a.gen.Load(); g&arenaClosed == 0 {
		return g
	}
	return a.gen.Add(1)
}

// arenaClosed is a bit of the generation.
const arenaClosed = 1 << 63

func (a *Arena) source() any { return a }

// Discard gives the pages of a part back to the kernel; the part is zero afterwards. offset and n are multiples of the page
// size. Registrations of the arena, all of it, are dead.
func (a *Arena) Discard(offset, n int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.memory.Bytes()
	if b == nil {
		return errors.New("memmon: discard: the arena is closed")
	}
	page := pageSize
	if offset < 0 || n < 0 || offset > len(b) || n > len(b)-offset || offset%page != 0 || n%page != 0 {
		return fmt.Errorf("memmon: discard %d bytes from %d of an arena of %d with pages of %d", n, offset, len(b), page)
	}
	if n == 0 {
		return nil
	}
	a.dies(b)
	defer a.gen.Add(1)
	return sys.NewPages(b[offset : offset+n])
}

// Close unmaps the memory; more than once is harmless.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b := a.memory.Bytes(); b != nil {
		a.bytes.Store(nil)
		a.gen.Or(arenaClosed)
		a.dies(b)
	}
	return a.memory.Close()
}

// dies makes registrations invalid, and then tells whoever wants to know, all before the memory goes. Who registers until it has gone is
// given the old pages under the new number, so the number changes again after that.
func (a *Arena) dies(b []byte) {
	a.gen.Add(1)
	a.arbiter.Notify(RangeOf(b))
}
