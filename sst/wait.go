package sst

import (
	"context"
	"log/slog"
	"time"
)

// explainAfter is how long a wait may be silent (promise P7).
const explainAfter = 3 * time.Second

// explain logs text() once if the wait that it is called for is not over after
// explainAfter. The returned function ends the wait.
func explain(ctx context.Context, log *slog.Logger, text func() (string, []any)) (done func() bool) {
	t := time.AfterFunc(explainAfter, func() {
		msg, args := text()
		log.WarnContext(ctx, msg, args...)
	})
	return t.Stop
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
type signal struct{ ch chan struct{} }

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
}
