package native

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// detached calls a handler from a goroutine of its own, which exists while there is something to say. The provider speaks where it gives its
// lock back, also within a release, around which a reader's lock may be held; and a program's logger may be slow, or ask for something
// that needs that lock.
type detached struct {
	inner slog.Handler
	say   *sayer // shared by all that descend of one
}

func detach(log *slog.Logger) detached { return detached{log.Handler(), &sayer{}} }

// Enabled is asked later, with the record.
func (detached) Enabled(context.Context, slog.Level) bool { return true }

// Handle hands the record over.
func (d detached) Handle(ctx context.Context, r slog.Record) error {
	ctx, r = context.WithoutCancel(ctx), r.Clone()
	d.say.add(func() {
		if d.inner.Enabled(ctx, r.Level) {
			_ = d.inner.Handle(ctx, r) // as a slog.Logger does
		}
	})
	return nil
}

// WithAttrs is the inner handler's.
func (d detached) WithAttrs(attrs []slog.Attr) slog.Handler {
	return detached{d.inner.WithAttrs(slices.Clone(attrs)), d.say}
}

// WithGroup is the inner handler's.
func (d detached) WithGroup(name string) slog.Handler {
	return detached{d.inner.WithGroup(name), d.say}
}

// sayer runs what it is given, in order.
type sayer struct {
	mu   sync.Mutex
	todo []func()
	busy chan struct{} // closed when nothing is left; nil if nobody runs
}

func (s *sayer) add(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.todo = append(s.todo, f)
	if s.busy == nil {
		s.busy = make(chan struct{})
		go s.run()
	}
}

func (s *sayer) run() {
	for {
		s.mu.Lock()
		if len(s.todo) == 0 {
			close(s.busy)
			s.busy = nil
			s.mu.Unlock()
			return
		}
		next := s.todo[0]
		s.todo = s.todo[1:]
		s.mu.Unlock()
		next()
	}
}

// wait returns when all that was given before has run.
func (s *sayer) wait() {
	s.mu.Lock()
	busy := s.busy
	s.mu.Unlock()
	if busy != nil {
		<-busy
	}
}
