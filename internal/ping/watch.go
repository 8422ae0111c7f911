package ping

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// A wait that nobody is told of may last so many looks.
const (
	patience = 3
	interval = time.Second
)

// watch tells of waits in which nothing happens. It takes no time of what is measured: it looks now and then whether a
// number has changed. It is for one goroutine; nil does nothing.
type watch struct {
	log   *slog.Logger
	steps atomic.Uint64
	doing atomic.Pointer[func() string] // what is being waited for

	mu    sync.Mutex
	timer *time.Timer // nil: closed
	seen  uint64      // steps, when the timer ran last
	still int         // looks that have found the same
}

// newWatch begins to watch.
func newWatch(log *slog.Logger) *watch {
	if log == nil {
		return nil
	}
	w := &watch{log: log}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(interval, w.look)
	return w
}

// wait says what is waited for from now on.
func (w *watch) wait(what func() string) {
	if w != nil {
		w.doing.Store(&what)
		w.steps.Add(1)
	}
}

// moved says that something has happened.
func (w *watch) moved() {
	if w != nil {
		w.steps.Add(1)
	}
}

// look tells of a wait that has lasted, once.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	w.timer.Reset(interval)
	steps := w.steps.Load()
	doing := w.doing.Load()
	switch {
	case steps != w.seen || doing == nil:
		w.seen, w.still = steps, 0
	default:
		if w.still++; w.still != patience {
			return
		}
		w.log.Warn("waiting for " + (*doing)() + ", until it goes on or ends, or Ctrl-C")
	}
}

// close ends it.
func (w *watch) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.timer = nil
}

// tick says that operation i has been done: seldom of small ones, whose time it would be seen in, but always if they are seldom.
func (r *run) tick(i int) {
	const seldom, large = 64, 64 << 10
	if i%seldom == 0 || r.Size >= large || r.Pause > 0 {
		r.watch.moved()
	}
}
