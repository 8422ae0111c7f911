package provutil

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/memmon"
)

// LocalsConfig says how local buffers are registered.
type LocalsConfig[H any] struct {
	Registrar mrcache.Registrar[H]
	// Own gives the registration of memory of the domain, and where the bytes lie in it. It is called without locks.
	Own func(m provider.Memory, b []byte) (h H, offset uint64, err error)
	// Small is the length in bytes up to which raw bytes are copied through a buffer that is registered once; 0: none are. The size from which on registering
	// is cheaper is the provider's to measure.
	Small int
	// Bounces is how many such buffers there are; when all are in use bytes are registered for the operation. 0 means 64.
	Bounces int
	Arbiter *memmon.Arbiter // nil: the process's
	Logger  *slog.Logger    // nil discards
}

// Locals registers the local buffers of operations, for providers whose Info says MemoryMode.Local: memory of the domain has its registration,
// memory of which a Kind is told is found in a cache, and raw bytes are copied, or registered for the one operation.
//
// All methods are safe for concurrent use, and may block as long as the registrar does. It starts the cache's goroutine; Close ends it.
type Locals[H any] struct {
	c     LocalsConfig[H]
	cache *mrcache.Cache[H]
	arena *memmon.Arena
	whole H // the registration of the arena

	mu     sync.Mutex
	free   [][]byte // of the arena
	closed bool
}

const defaultBounces = 64

// NewLocals makes one.
func NewLocals[H any](c LocalsConfig[H]) (*Locals[H], error) {
	if c.Arbiter == nil {
		c.Arbiter = memmon.Process()
	}
	if c.Bounces == 0 {
		c.Bounces = defaultBounces
	}
	cache, err := mrcache.New(c.Registrar, mrcache.Config{Arbiter: c.Arbiter, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	l := &Locals[H]{c: c, cache: cache}
	if c.Small > 0 {
		if err := l.makeBounces(); err != nil {
			return nil, errors.Join(err, cache.Close())
		}
	}
	return l, nil
}

func (l *Locals[H]) makeBounces() (err error) {
	if l.arena, err = l.c.Arbiter.NewArena(l.c.Small * l.c.Bounces); err != nil {
		return err
	}
	if l.whole, err = l.cache.Register(l.arena.Bytes()); err != nil {
		return errors.Join(err, l.arena.Close())
	}
	for b := l.arena.Bytes(); len(l.free) < l.c.Bounces; b = b[l.c.Small:] {
		l.free = append(l.free, b[:l.c.Small:l.c.Small])
	}
	return nil
}

// Stats are those of the cache.
func (l *Locals[H]) Stats() mrcache.Stats { return l.cache.Stats() }

// Close ends it; operations that have begun may end later, and the last one of those that are copied through gives the buffers back. More than once
// is harmless.
func (l *Locals[H]) Close() error {
	err := l.cache.Close()
	l.mu.Lock()
	last := !l.closed && len(l.free) == l.bounces()
	l.closed = true
	l.mu.Unlock()
	if last {
		err = errors.Join(err, l.endBounces())
	}
	return err
}

// bounces is how many buffers there are.
func (l *Locals[H]) bounces() int {
	if l.arena == nil {
		return 0
	}
	return l.c.Bounces
}

// endBounces gives the buffers back, which nobody uses any more.
func (l *Locals[H]) endBounces() error {
	if l.arena == nil {
		return nil
	}
	return errors.Join(l.c.Registrar.Deregister(l.whole), l.arena.Close())
}

// putBack ends the use of a buffer.
func (l *Locals[H]) putBack(b []byte) error {
	l.mu.Lock()
	l.free = append(l.free, b)
	last := l.closed && len(l.free) == l.bounces()
	l.mu.Unlock()
	if last {
		return l.endBounces()
	}
	return nil
}

// Local is a segment that is registered, from Begin to End. Until then it also holds the memory, which the collector does not see a device use.
type Local[H any] struct {
	Handle H
	Offset uint64 // of the segment in what Handle registers, in bytes

	of     *Locals[H]
	kept   mrcache.Registration[H]
	once   bool   // Handle is for this operation
	bounce []byte // what is copied through
	bytes  []byte // the segment, if it is written when the operation has ended, or is registered for it; or a copy that is
}

// Use is what an operation does with a local buffer.
type Use uint8

// The uses.
const (
	ReadLocal  Use = iota // it is sent
	WriteLocal            // what arrives is put there
)

// Begin registers a segment. The caller holds no lock that a registrar takes, of whatever domain: for want of memory those of the others are called, too.
func (l *Locals[H]) Begin(s *provider.Segment, u Use) (Local[H], error) {
	x := Local[H]{of: l}
	var err error
	switch {
	case len(s.Bytes) == 0:
		x.of = nil
	case s.Memory != nil:
		x.Handle, x.Offset, err = l.c.Own(s.Memory, s.Bytes)
	case s.Kind != nil:
		err = x.fromCache(s)
	case len(s.Bytes) <= l.c.Small && x.take():
		if u == WriteLocal {
			x.bytes = s.Bytes
		} else {
			copy(x.bounce, s.Bytes)
		}
	default:
		x.once, x.bytes = true, s.Bytes
		x.Handle, err = l.cache.Register(s.Bytes)
	}
	if u == ReadLocal && s.Memory == nil && errors.Is(err, syscall.EFAULT) && readOnly(s.Bytes) {
		err = x.copied(s)
	}
	if err != nil {
		return Local[H]{}, fmt.Errorf("registering %d bytes of local memory: %w", len(s.Bytes), asFabric(err))
	}
	return x, nil
}

func (x *Local[H]) fromCache(s *provider.Segment) (err error) {
	if x.kept, err = x.of.cache.AcquirePart(s.Kind, s.Bytes); err != nil {
		return err
	}
	x.Handle, x.Offset = x.kept.Handle(), memmon.RangeOf(s.Bytes).Addr-x.kept.Range().Addr
	return nil
}

// take takes a bounce buffer, if there is one.
func (x *Local[H]) take() bool {
	l := x.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.free) == 0 {
		return false
	}
	x.bounce = l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	x.Handle, x.Offset = l.whole, memmon.RangeOf(x.bounce).Addr-memmon.RangeOf(l.arena.Bytes()).Addr
	return true
}

// End ends the use of the segment, of which n bytes have arrived if it was to be written; again, it does nothing. An ErrRemapped is to be in the operation's completion: the memory
// changed under it.
func (x *Local[H]) End(n int) error {
	l := x.of
	if l == nil {
		return nil
	}
	x.of = nil
	switch {
	case x.bounce != nil:
		copy(x.bytes, x.bounce[:min(n, len(x.bounce))])
		return asFabric(l.putBack(x.bounce))
	case x.once:
		return asFabric(l.c.Registrar.Deregister(x.Handle))
	}
	return asFabric(x.kept.Release())
}

// asFabric is what a program hears of an error of the cache.
func asFabric(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mrcache.ErrRemapped):
		return fmt.Errorf("%w: %w", provider.ErrRemapped, err)
	case errors.Is(err, memmon.ErrNotHeap), errors.Is(err, memmon.ErrDevice), errors.Is(err, mrcache.ErrEmpty):
		return fmt.Errorf("%w: %w", provider.ErrInvalid, err)
	case errors.Is(err, mrcache.ErrClosed):
		return fmt.Errorf("%w: %w", provider.ErrClosed, err)
	case mrcache.IsShortage(err):
		return fmt.Errorf("%w: %w", provider.ErrNoMemory, err)
	}
	return err
}
