package memmon

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/sys"
)

// userfault is the monitor that asks the kernel: userfaultfd(2). A hit looks at what its thread has heard, asks the kernel whether the addresses still
// are those that were watched, and looks again.
type userfault struct {
	wake    sys.Eventfd // of the arbiter
	fd      atomic.Pointer[sys.Userfault]
	heard   heard
	drained uint64

	mu      sync.Mutex // of watches; held during calls of the kernel that unmapping threads wait for nothing of
	watches nearby
}

var errNotNow = errors.New("it is not started")

func newUserfault(e *events) (Monitor, error) {
	if err := sys.CanUserfault(); err != nil {
		return nil, fmt.Errorf("%w (the kernel needs 5.11, on arm64 6.10, and no filter of system calls on it)", err)
	}
	return &userfault{wake: e.wake, watches: nearby{}}, nil
}

func (*userfault) Name() string { return "userfaultfd" }

func (*userfault) Coverage() Coverage {
	return Coverage{
		Events:  []Event{Unmap, MapOver, MoveAway, DontNeed, Free, Remove, Break},
		Callers: []Caller{Library, Raw},
		Classes: []Memory{Private, Data},
		Note:    "a hit asks the kernel: about 1 µs for small ranges, 20 µs for 1 MiB; it is not told of madvise(GUARD_INSTALL), of kernels from 6.13 on",
	}
}

// Start ignores gone: the arbiter drains what is heard.
func (u *userfault) Start(func(Range)) error {
	fd, err := sys.NewUserfault(u.heard.words(u.wake))
	if err != nil {
		return err
	}
	u.fd.Store(fd)
	return nil
}

// drain gives what was heard to f. One goroutine calls it.
func (u *userfault) drain(f func(Range)) { u.drained = u.heard.drain(u.drained, f) }

func (u *userfault) Stop() error {
	if fd := u.fd.Swap(nil); fd != nil {
		return fd.Close()
	}
	return nil
}

func (u *userfault) Err() error {
	if fd := u.fd.Load(); fd != nil {
		return fd.Err()
	}
	return errNotNow
}

// userfaultWatch is a range that is watched.
type userfaultWatch struct {
	u    *userfault
	fd   *sys.Userfault
	r    Range
	seen atomic.Uint64 // of what was heard
	dead atomic.Uint32 // the answer that stays: the addresses were found to be others, or nobody could say
}

// Watch is of memory that is not of the Go heap: who has the bytes has asked (proveWatched). By addresses alone nobody can, whose question would
// hold what is no object.
func (u *userfault) Watch(r Range) (Watch, error) {
	fd := u.fd.Load()
	if fd == nil {
		return nil, errNotNow
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.outdate(fd, r)
	w := &userfaultWatch{u: u, fd: fd, r: r}
	w.seen.Store(u.heard.now())
	if err := fd.Watch(r.Addr, r.Len); err != nil {
		return nil, cmp.Or(fd.Err(), err) // the reader's, if it is that which has ended
	}
	u.watches.add(w)
	return w, nil
}

// outdate has those who watched what lay in a range before not take it for that once it is watched again. Mostly it is what lay there: then one
// question is enough, however many watch it. The caller has mu.
func (u *userfault) outdate(fd *sys.Userfault, r Range) {
	var live []*userfaultWatch
	rest := []Range{r}
	u.watches.overlapping(r, func(o *userfaultWatch) {
		if o.dead.Load() == uint32(same) {
			live, rest = append(live, o), without(rest, o.r)
		}
	})
	shared := []Range{r}
	for _, o := range rest {
		shared = without(shared, o)
	}
	if !slices.ContainsFunc(shared, func(r Range) bool { return watchedBy(fd, r) != same }) {
		return
	}
	for _, o := range live {
		o.dead.Store(uint32(o.watched()))
	}
}

func (w *userfaultWatch) Valid() bool { return w.ask() == same }

func (w *userfaultWatch) ask() answer {
	if a := answer(w.dead.Load()); a != same {
		return a
	}
	if w.fd.Err() != nil {
		return unsure
	}
	if a := w.told(); a != same {
		return a
	}
	if a := w.watched(); a != same {
		return a
	}
	return w.told()
}

// told is what the thread has heard.
func (w *userfaultWatch) told() answer {
	seen := w.seen.Load()
	now, a := w.u.heard.look(seen, w.r)
	if a == same && now != seen {
		w.seen.CompareAndSwap(seen, now)
	}
	return a
}

// kernelBusy is how often the kernel is asked again, which says nothing while somebody is changing any mapping of the process.
const kernelBusy = 32

func (w *userfaultWatch) watched() answer { return watchedBy(w.fd, w.r) }

// watchedBy is what the kernel says of a range.
func watchedBy(fd *sys.Userfault, r Range) answer {
	for range kernelBusy {
		is, busy := fd.Watched(r.Addr, r.Len)
		switch {
		case is:
			return same
		case !busy && fd.Err() != nil: // it was asked of what the reader has put in the place of the userfaultfd when it ended
			return unsure
		case !busy:
			return changed
		}
		runtime.Gosched()
	}
	return unsure
}

// Close stops to watch the parts of the range that nobody else watches.
func (w *userfaultWatch) Close() {
	u := w.u
	u.mu.Lock()
	defer u.mu.Unlock()
	u.watches.remove(w)
	rest := []Range{w.r}
	u.watches.overlapping(w.r, func(o *userfaultWatch) { rest = without(rest, o.r) })
	for _, r := range rest {
		_ = w.fd.Unwatch(r.Addr, r.Len) // it may be unmapped, or other memory
	}
}

// without is what is left of ranges without another one.
func without(list []Range, o Range) (rest []Range) {
	for _, r := range list {
		if !r.Overlaps(o) {
			rest = append(rest, r)
			continue
		}
		if r.Addr < o.Addr {
			rest = append(rest, Range{r.Addr, o.Addr - r.Addr})
		}
		if o.End() < r.End() {
			rest = append(rest, Range{o.End(), r.End() - o.End()})
		}
	}
	return rest
}
