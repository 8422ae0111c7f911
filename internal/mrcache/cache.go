package mrcache

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// Registrar registers memory with a device. Its methods are called from any goroutine, Deregister also by who finds no memory to pin for another
// cache, and without any lock of the cache; they may block, map and unmap, but not use the cache, whose Close may be waiting for them, nor panic.
type Registrar[H any] interface {
	// Register registers all of b, and does not keep b. It is whole pages of mapped memory, or bytes of one object of the Go heap, in whose pages
	// are others; what is for one operation is any bytes.
	Register(b []byte) (H, error)
	// Deregister ends it. It is called once, when nobody uses the registration; the memory may have gone before.
	Deregister(h H) error
}

// Cache keeps registrations.
type Cache[H any] struct {
	registrar Registrar[H]
	cfg       Config
	index     index[H]
	grave     atomic.Pointer[entry[H]] // dead and idle, to be deregistered
	live      atomic.Int64             // registrations there are, and one for the cache until Close
	closed    atomic.Bool              // set under mu
	detach    func()
	lonely    func()       // no other cache's shortage is heard of any more
	sparing   sync.RWMutex // read: what is idle is being given back for a shortage; written once, by Close
	reclaimer reclaimer

	mu    sync.Mutex  // of what is kept; it is taken after no other lock, and nothing is called with it but Valid and Hold of proofs
	ring  []*entry[H] // what is kept, for the clock's hand; nil where free says
	free  []int
	hand  int
	count int    // of registrations that are kept, being made, or dead and not yet given back
	bytes uint64 // of their pages
	stats Stats
	close struct {
		once sync.Once
		err  error
	}
}

// New makes a cache, and starts its goroutine; Close ends it.
func New[H any](r Registrar[H], cfg Config) (*Cache[H], error) {
	return newCache(r, cfg, sys.LockableMemory)
}

func newCache[H any](r Registrar[H], cfg Config, lockable func() (uint64, error)) (*Cache[H], error) {
	if r == nil {
		return nil, fmt.Errorf("%w: no registrar", ErrConfig)
	}
	cfg = cfg.resolve(lockable)
	c := &Cache[H]{registrar: r, cfg: cfg, reclaimer: newReclaimer()}
	c.live.Store(1)
	c.detach = cfg.Arbiter.Attach(c.reclaimer.gone, cfg.Logger)
	c.lonely = cfg.Arbiter.OnShortage(c.spare)
	go c.reclaim()
	return c, nil
}

// Acquire returns a registration that covers all bytes of the memory, which is held until Release. It may be one that is kept, or a new
// one, which is kept if somebody answers for the memory and the limits allow; else it is for this one operation.
//
// It fails with ErrEmpty, ErrClosed, memmon.ErrNotHeap, what the registrar says, and ErrRemapped if the memory does not stay the same for as
// long as it takes to register it.
func (c *Cache[H]) Acquire(k memmon.Kind) (Registration[H], error) {
	var b []byte
	if k != nil {
		b = k.Bytes()
	}
	if len(b) == 0 {
		return Registration[H]{}, ErrEmpty
	}
	r, found := c.find(k, memmon.RangeOf(b), c.cfg.Arbiter.Epoch()) // as AcquirePart; a call more is a tenth of a hit
	if found == nil && r.entry != nil {
		return r, nil
	}
	return c.missed(k, b, found)
}

// AcquirePart is Acquire of a part of the memory. All of it is registered, if that is to be kept and can be; else the part. It fails with ErrEmpty also
// if it is no part of the memory and would have to be registered: a registration that is kept is found by the part and by who answers for it alone.
func (c *Cache[H]) AcquirePart(k memmon.Kind, b []byte) (Registration[H], error) {
	if len(b) == 0 {
		return Registration[H]{}, ErrEmpty
	}
	r, found := c.find(k, memmon.RangeOf(b), c.cfg.Arbiter.Epoch())
	if found == nil && r.entry != nil {
		return r, nil
	}
	return c.missed(k, b, found)
}

// find is the hit. Whether the memory is still the same is asked when the entry is in use: from then on the handle stays, and what changes later
// the release will tell. Else it returns an entry that is not valid any more, in use, which the caller drops, or nothing.
//
// An entry of an object of the Go heap is of its very bytes, and while it lives these are of no other object: so for all kinds it is
// enough that the wanted bytes lie within, and that the same one answers.
func (c *Cache[H]) find(k memmon.Kind, want memmon.Range, epoch uint64) (Registration[H], *entry[H]) {
	source := memmon.Source(k)
	for used := c.index.used.Load() &^ (1<<sizeClass(want.Len) - 1); used != 0; used &= used - 1 {
		class := bits.TrailingZeros64(used)
		t := c.index.tables[class].Load()
		if t == nil {
			continue
		}
		number := want.Addr>>class + 1
		for i := t.home(number); ; i = t.after(i) {
			s := &t.slots[i]
			n := s.number.Load()
			if n == 0 {
				break
			}
			if n != number {
				continue
			}
			e := s.entry.Load()
			if e == nil || !e.span.Contains(want) || e.source != source || !e.hit() {
				continue
			}
			if e.epoch >= epoch { // a newer one was registered since the caller asked
				if held, ok := e.proof.Hold(); ok {
					return Registration[H]{c, e, held, true}, nil
				}
			}
			return Registration[H]{}, e
		}
	}
	return Registration[H]{}, nil
}
