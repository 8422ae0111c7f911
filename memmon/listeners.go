package memmon

import (
	"slices"
	"sync"
	"sync/atomic"
)

// listeners are told of ranges. Who tells takes no lock.
type listeners struct {
	mu   sync.Mutex // of who changes the list
	list atomic.Pointer[[]*listener]
}

type listener struct{ told func(Range) }

// add has told called from now on, until remove; calls that have begun may still be running then.
func (l *listeners) add(told func(Range)) (remove func()) {
	x := &listener{told}
	l.change(func(list []*listener) []*listener { return append(list, x) })
	return func() {
		l.change(func(list []*listener) []*listener {
			return slices.DeleteFunc(list, func(o *listener) bool { return o == x })
		})
	}
}

func (l *listeners) change(f func([]*listener) []*listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := f(slices.Clone(l.all()))
	l.list.Store(&list)
}

func (l *listeners) all() []*listener {
	if list := l.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (l *listeners) tell(r Range) {
	for _, x := range l.all() {
		x.told(r)
	}
}
