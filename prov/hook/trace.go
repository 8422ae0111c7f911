package hook

import (
	"context"
	"log/slog"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Log makes a tracer that writes every event at level Debug, peers that come and go at level Info. As a tracer is called with the
// domain's lock held, so is the logger: one that is slow holds the domain up, and its handler must not call the domain.
func Log(l *slog.Logger) *provider.Tracer {
	return &provider.Tracer{
		Post: func(kind provider.Kind, op *provider.Op, err error) {
			if !l.Enabled(context.Background(), slog.LevelDebug) {
				return
			}
			args := []any{"op", kind.String(), "context", op.Context, "peer", op.Peer, "bytes", op.Len(), "flags", op.Flags.String()}
			if err != nil {
				args = append(args, "refused", err)
			}
			l.Debug("post", args...)
		},
		Complete: func(c *provider.Completion) {
			if !l.Enabled(context.Background(), slog.LevelDebug) {
				return
			}
			args := []any{"op", c.Kind.String(), "context", c.Context, "peer", c.Source, "bytes", c.Len}
			if c.Err != nil {
				args = append(args, "error", c.Err)
			}
			l.Debug("complete", args...)
		},
		PeerUp: func(p provider.Peer, a provider.Address) { l.Info("peer is connected", "peer", p, "address", a) },
		PeerGone: func(p provider.Peer, a provider.Address, why error) {
			l.Info("peer is gone", "peer", p, "address", a, "why", why)
		},
		Sleep: func() { l.Debug("progress sleeps") },
		Wake:  func() { l.Debug("progress wakes") },
	}
}

// Tee makes one tracer of several, which hear of everything in turn. Nil ones are left out; if none is left, it is nil.
func Tee(tracers ...*provider.Tracer) *provider.Tracer {
	var list []*provider.Tracer
	for _, t := range tracers {
		if t != nil {
			list = append(list, t)
		}
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return &provider.Tracer{
		Post: func(kind provider.Kind, op *provider.Op, err error) {
			for _, t := range list {
				if t.Post != nil {
					t.Post(kind, op, err)
				}
			}
		},
		Complete: func(c *provider.Completion) {
			for _, t := range list {
				if t.Complete != nil {
					t.Complete(c)
				}
			}
		},
		PeerUp: func(p provider.Peer, a provider.Address) {
			for _, t := range list {
				if t.PeerUp != nil {
					t.PeerUp(p, a)
				}
			}
		},
		PeerGone: func(p provider.Peer, a provider.Address, why error) {
			for _, t := range list {
				if t.PeerGone != nil {
					t.PeerGone(p, a, why)
				}
			}
		},
		Sleep: func() { each(list, func(t *provider.Tracer) func() { return t.Sleep }) },
		Wake:  func() { each(list, func(t *provider.Tracer) func() { return t.Wake }) },
	}
}

func each(list []*provider.Tracer, event func(*provider.Tracer) func()) {
	for _, t := range list {
		if f := event(t); f != nil {
			f()
		}
	}
}
