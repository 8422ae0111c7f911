package memmon

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/sys"
)

// userfault is the monitor that asks the kernel: userfaultfd(2). What it hears its thread posts like any other poster of events; so a hit
// sees it there, and here only asks whether the addresses still are those that were watched.
type userfault struct {
	e    *events
	fd   atomic.Pointer[sys.Userfault]
	mu   sync.Mutex // of watches; held during calls of the kernel that unmapping threads wait for nothing of
	list []*userfaultWatch
}

var errNotNow = errors.New("it is not started")

func newUserfault(e *events) (Monitor, error) {
	if err := sys.CanUserfault(); err != nil {
		return nil, fmt.Errorf("%w (the kernel needs 5.11, and vm.unprivileged_userfaultfd or none of seccomp's filters on it)", err)
	}
	return &userfault{e: e}, nil
}

func (*userfault) Name() string { return "userfaultfd" }

func (*userfault) Coverage() Coverage {
	return Coverage{
		Events:  []Event{Unmap, MapOver, MoveAway, DontNeed, Free, Remove, Break},
		Callers: []Caller{Library, Raw},
		Classes: []Memory{Private},
		Note:    "a hit asks the kernel: about 1 µs for small ranges, 20 µs for 1 MiB",
	}
}

// Start ignores gone: the arbiter hears of events as of those of any poster.
func (u *userfault) Start(func(Range)) error {
	fd, err := sys.NewUserfault(sys.EventWords{
		Begun: &u.e.w[wordBegun], Done: &u.e.w[wordDone], Slots: u.e.w[wordFirst : wordFirst+2*numSlots], Wake: u.e.wake,
	})
	if err != nil {
		return err
	}
	u.fd.Store(fd)
	return nil
}

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
	dead atomic.Bool
	busy atomic.Bool // the kernel could not say
}

func (u *userfault) Watch(r Range) (Watch, error) {
	fd := u.fd.Load()
	if fd == nil {
		return nil, errNotNow
	}
	if heap, err := sys.OfGoHeap(sys.BytesAt(r.Addr, 1)); err != nil || heap {
		return nil, fmt.Errorf("it is memory of the Go heap, which must not be watched: %w", errors.Join(ErrMonitor, err))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	// Memory that was mapped again at these addresses is watched from now on: who watched what was there before must not take it for that.
	for _, o := range u.list {
		if o.r.Overlaps(r) && !o.watched() {
			o.dead.Store(true)
		}
	}
	if err := fd.Watch(r.Addr, r.Len); err != nil {
		return nil, err
	}
	w := &userfaultWatch{u: u, fd: fd, r: r}
	u.list = append(u.list, w)
	return w, nil
}

func (w *userfaultWatch) Valid() bool { return !w.dead.Load() && w.fd.Err() == nil && w.watched() }

// kernelBusy is how often the kernel is asked again, which says nothing while somebody is changing any mapping of the process.
const kernelBusy = 32

// unsure says that the last false Valid was for want of an answer.
func (w *userfaultWatch) unsure() bool { return !w.dead.Load() && (w.busy.Load() || w.fd.Err() != nil) }

func (w *userfaultWatch) watched() bool {
	for range kernelBusy {
		is, busy := w.fd.Watched(w.r.Addr, w.r.Len)
		if !busy {
			w.busy.Store(false)
			return is
		}
		runtime.Gosched()
	}
	w.busy.Store(true)
	return false
}

// Close stops to watch the parts of the range that nobody else watches.
func (w *userfaultWatch) Close() {
	u := w.u
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = slices.DeleteFunc(u.list, func(o *userfaultWatch) bool { return o == w })
	rest := []Range{w.r}
	for _, o := range u.list {
		if o.r.Overlaps(w.r) {
			rest = without(rest, o.r)
		}
	}
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
