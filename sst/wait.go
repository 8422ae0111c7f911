package sst

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// explainAfter is how long a wait may be silent (promise P7).
const explainAfter = 3 * time.Second

// explain logs text(), unless that is empty, once if the wait that it is called for is not over after
// explainAfter. The returned function ends the wait.
func explain(ctx context.Context, log *slog.Logger, text func() (string, []any)) (done func() bool) {
	t := time.AfterFunc(explainAfter, func() { explanation(ctx, log, text) })
	return t.Stop
}

func explanation(ctx context.Context, log *slog.Logger, text func() (string, []any)) {
	msg, args := text()
	if msg == "" {
		return // another rank says it
	}
	log.WarnContext(ctx, msg, args...)
}

// explainer is explain for waits that come with every step. They share one timer, so that
// a wait that is over at once costs no more than a place in a list. It is safe for concurrent
// use.
type explainer struct {
	log *slog.Logger

	mu sync.Mutex
	// tidy stops the timer with the last wait. Else it goes off once more, for nobody:
	// nothing may happen by itself in a session with ManualProgress, or in one that is
	// closed.
	tidy  bool
	first *longWait // the oldest, and so the first to be explained
	last  *longWait
	free  *longWait
	spare int // waits in free
	timer *time.Timer
	armed bool
}

// longWait is a wait that may have to be explained.
type longWait struct {
	of         *explainer
	ctx        context.Context
	text       func() (string, []any)
	due        time.Time
	prev, next *longWait // those that began before and after it, and were not explained; next of a free one: another
	listed     bool
}

// maxFreeWaits bounds the memory that is kept.
const maxFreeWaits = 16

// begin begins a wait, which the caller ends.
func (e *explainer) begin(ctx context.Context, text func() (string, []any)) *longWait {
	due := time.Now().Add(explainAfter)
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.free
	if w != nil {
		e.free, e.spare = w.next, e.spare-1
	} else {
		w = &longWait{of: e}
	}
	w.ctx, w.text, w.due = ctx, text, due
	w.prev, w.next, w.listed = e.last, nil, true
	if e.last != nil {
		e.last.next = w
	} else {
		e.first = w
	}
	e.last = w
	e.arm()
	return w
}

// arm sets the timer, if it is needed and not set. The caller holds mu.
func (e *explainer) arm() {
	if e.armed || e.first == nil {
		return
	}
	e.armed = true
	if wait := time.Until(e.first.due); e.timer == nil {
		e.timer = time.AfterFunc(wait, e.explain)
	} else {
		e.timer.Reset(wait)
	}
}

// explain explains the oldest wait, if it is due.
func (e *explainer) explain() {
	e.mu.Lock()
	e.armed = false
	w := e.first
	if w == nil || time.Until(w.due) > 0 {
		e.arm()
		e.mu.Unlock()
		return
	}
	ctx, text := w.ctx, w.text
	e.unlist(w)
	e.arm() // for the next one: this one's logger may take its time
	e.mu.Unlock()
	explanation(ctx, e.log, text)
}

// unlist takes a wait off the list. The caller holds mu.
func (e *explainer) unlist(w *longWait) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		e.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		e.last = w.prev
	}
	w.prev, w.next, w.listed = nil, nil, false
}

// end ends the wait. Its explanation may still be on the way to the log.
func (w *longWait) end() {
	e := w.of
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.listed {
		e.unlist(w)
	}
	w.ctx, w.text = nil, nil
	if e.spare < maxFreeWaits {
		w.next, e.free, e.spare = e.free, w, e.spare+1
	}
	e.rest()
}

// close says that the session is closed: those that still wait are explained as before.
func (e *explainer) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tidy = true
	e.rest()
}

// rest stops the timer of a tidy explainer, if nobody waits. The caller holds mu.
func (e *explainer) rest() {
	if e.tidy && e.first == nil && e.armed {
		e.armed = !e.timer.Stop()
	}
}

// until says how long a wait will go on: until what, or for how long.
func until(ctx context.Context) []any {
	if deadline, ok := ctx.Deadline(); ok {
		return []any{"for another", time.Until(deadline).Round(time.Second)}
	}
	return []any{"for", "as long as the connection stands, or until the caller cancels"}
}

// signal is a broadcast: Wait channels taken before a Notify are closed by it.
// Its owner's lock guards it.
type signal struct {
	ch   chan struct{}
	also func() // called by notify; nil: nothing
}

// wait returns the channel that the next notify closes.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) notify() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
	if s.also != nil {
		s.also()
	}
}
