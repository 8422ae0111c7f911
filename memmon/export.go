package memmon

import (
	"slices"
	"sync"
	"sync/atomic"
)

// exports are those who have registrations of their own, and cannot see what Go does.
type exports struct {
	mu   sync.Mutex // of who changes the list
	list atomic.Pointer[[]*export]
}

type export struct{ gone func(Range) }

// Export has gone called with each range that Go takes away: an [Arena]'s, and what [Arbiter.Notify] says; before it goes, by the goroutine
// that takes it. It is for other libraries in the process that keep registrations, whose hooks in the C library do not see Go's system
// calls: gone calls ucm_vm_munmap of UCX, say, or the notify that libfabric's import gives. It must not call the arbiter, nor the arena that goes, and is not nil.
// What hooks in C post is not told here: who wants that subscribes in C (weft_events_subscribe). stop ends it; calls that have begun may
// still be running then.
func (a *Arbiter) Export(gone func(Range)) (stop func()) {
	x := &export{gone}
	a.exports.change(func(l []*export) []*export { return append(l, x) })
	return func() {
		a.exports.change(func(l []*export) []*export {
			return slices.DeleteFunc(l, func(o *export) bool { return o == x })
		})
	}
}

func (e *exports) change(f func([]*export) []*export) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := f(slices.Clone(e.all()))
	e.list.Store(&l)
}

func (e *exports) all() []*export {
	if l := e.list.Load(); l != nil {
		return *l
	}
	return nil
}

func (e *exports) tell(r Range) {
	for _, x := range e.all() {
		x.gone(r)
	}
}
