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

// explainer is explain for waits that come with every step: it uses its timers
// again. It is safe for concurrent use.
type explainer struct {
	log *slog.Logger

	mu   sync.Mutex
	free []*longWait
}

// longWait is a wait that may have to be explained.
type longWait struct {
	of    *explainer
	timer *time.Timer

	mu   sync.Mutex
	ctx  context.Context
	text func() (string, []any) // nil: over
}

// maxFreeWaits bounds the timers that are kept.
const maxFreeWaits = 16

// begin begins a wait, which the caller ends.
func (e *explainer) begin(ctx context.Context, text func() (string, []any)) *longWait {
	e.mu.Lock()
	var w *longWait
	if n := len(e.free); n > 0 {
		w, e.free = e.free[n-1], e.free[:n-1]
	}
	e.mu.Unlock()
	if w == nil {
		w = &longWait{of: e, ctx: ctx, text: text}
		w.timer = time.AfterFunc(explainAfter, w.explain)
		return w
	}
	w.mu.Lock()
	w.ctx, w.text = ctx, text
	w.mu.Unlock()
	w.timer.Reset(explainAfter)
	return w
}

func (w *longWait) explain() {
	w.mu.Lock()
	ctx, text := w.ctx, w.text
	w.mu.Unlock()
	if text != nil {
		explanation(ctx, w.of.log, text)
	}
}

// end ends the wait. A timer that has gone off may still be at its explanation, so
// it is not used again.
func (w *longWait) end() {
	waiting := w.timer.Stop()
	w.mu.Lock()
	w.ctx, w.text = nil, nil
	w.mu.Unlock()
	if !waiting {
		return
	}
	e := w.of
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.free) < maxFreeWaits {
		e.free = append(e.free, w)
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
