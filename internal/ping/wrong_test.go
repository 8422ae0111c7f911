package ping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// wrong is loop with a fault: of one transfer, the byte at a place in it is another one when it has arrived.
type wrong struct {
	provider.Provider
	name     string
	transfer uint64 // the first that is concerned; all later ones are too
	place    func(n int) int
	viewing  func(context.Context) error // in the place of every view; nil: none
}

func (w *wrong) Name() string { return w.name }

func (w *wrong) Discover(ctx context.Context) ([]provider.Info, error) {
	list, err := w.Provider.Discover(ctx)
	for i := range list {
		list[i].Provider = w.name
	}
	return list, err
}

func (w *wrong) OpenDomain(info provider.Info, c provider.DomainConfig) (provider.Domain, error) {
	info.Provider = w.Provider.Name()
	d, err := w.Provider.OpenDomain(info, c)
	return &wrongDomain{Domain: d, wrong: w, posted: make(map[uint64][]byte)}, err
}

type wrongDomain struct {
	provider.Domain
	*wrong
	posted map[uint64][]byte // by context; one goroutine uses the domain
	views  uint64
}

func (d *wrongDomain) OpenCompletionQueue(c provider.CQConfig) (provider.CompletionQueue, error) {
	q, err := d.Domain.OpenCompletionQueue(c)
	return &wrongQueue{q, d}, err
}

func (d *wrongDomain) OpenEndpoint(c provider.EndpointConfig) (provider.Endpoint, error) {
	c.Send, c.Recv = c.Send.(*wrongQueue).CompletionQueue, c.Recv.(*wrongQueue).CompletionQueue
	ep, err := d.Domain.OpenEndpoint(c)
	return &wrongEndpoint{ep, d}, err
}

func (d *wrongDomain) View(ctx context.Context, p provider.Peer, k provider.Key, offset uint64, n int) (provider.View, error) {
	if d.viewing != nil {
		return nil, d.viewing(ctx)
	}
	v, err := d.Domain.View(ctx, p, k, offset, n)
	d.views++
	if err != nil || d.views <= d.transfer {
		return v, err
	}
	return &wrongView{v, d.spoiled(v.Bytes())}, nil
}

type wrongView struct {
	provider.View
	b []byte
}

func (v *wrongView) Bytes() []byte { return v.b }

// spoiled is a copy with a byte that is wrong.
func (w *wrong) spoiled(b []byte) []byte {
	b = slices.Clone(b)
	b[w.place(len(b))] ^= 1
	return b
}

type wrongEndpoint struct {
	provider.Endpoint
	d *wrongDomain
}

func (e *wrongEndpoint) note(op provider.Op) { e.d.posted[op.Context] = op.Local.Bytes }

// Write spoils what it sends: whoever is written to has no part in it.
func (e *wrongEndpoint) Write(op provider.Op) error {
	if op.Context >= e.d.transfer {
		op.Local = provider.Segment{Bytes: e.d.spoiled(op.Local.Bytes)}
	}
	return e.Endpoint.Write(op)
}

func (e *wrongEndpoint) Recv(op provider.Op) error { e.note(op); return e.Endpoint.Recv(op) }
func (e *wrongEndpoint) RecvTagged(op provider.Op) error {
	e.note(op)
	return e.Endpoint.RecvTagged(op)
}
func (e *wrongEndpoint) Read(op provider.Op) error { e.note(op); return e.Endpoint.Read(op) }

type wrongQueue struct {
	provider.CompletionQueue
	d *wrongDomain
}

func (q *wrongQueue) Read(c []provider.Completion) (int, error) {
	n, err := q.CompletionQueue.Read(c)
	return q.spoil(c[:n], err)
}

func (q *wrongQueue) Wait(ctx context.Context, c []provider.Completion) (int, error) {
	n, err := q.CompletionQueue.Wait(ctx, c)
	return q.spoil(c[:n], err)
}

func (q *wrongQueue) spoil(list []provider.Completion, err error) (int, error) {
	for _, c := range list {
		switch c.Kind {
		case provider.RecvDone, provider.TRecvDone, provider.ReadDone:
			b := q.d.posted[c.Context]
			if c.Context >= q.d.transfer && c.Context < controlContext && c.Err == nil && len(b) > 0 {
				b[q.d.place(len(b))] ^= 1
			}
		}
	}
	return len(list), err
}

// runs makes the names of providers that are registered once for all.
var runs atomic.Int32

// A provider that brings wrong bytes, early or late, at the ends or in the middle, is noticed by the side that gets them, and
// both sides end with an error.
func TestWrongProvider(t *testing.T) {
	loop, ok := provider.Lookup("loop")
	if !ok {
		t.Fatal("no loop")
	}
	places := map[string]func(int) int{
		"first": func(int) int { return 0 }, "last": func(n int) int { return n - 1 }, "middle": func(n int) int { return n / 2 },
	}
	const iters = 20
	for place, at := range places {
		for _, transfer := range []uint64{0, iters} {
			w := &wrong{Provider: loop, name: fmt.Sprintf("wrong-%s-%d-%d", place, transfer, runs.Add(1)), transfer: transfer, place: at}
			provider.Register(w)
			good, bad := Config{Provider: "loop"}, Config{Provider: w.name}
			for _, phase := range []Phase{Latency, Rate} {
				// A latency looks at the ends of views alone.
				work := Work{Op: View, Sizes: []int{1000}, Iters: iters, Only: phase}
				if phase == Rate || place != "middle" {
					_, measured, served := pair(t.Context(), bad, good, work)
					if !errors.Is(measured, ErrData) || !errors.Is(served, errNo) {
						t.Errorf("%s, view, %s: measured: %v; served: %v", w.name, phase, measured, served)
					}
				}
				work.Op = Write
				_, measured, served := pair(t.Context(), bad, good, work)
				if !errors.Is(served, ErrData) || !errors.Is(measured, errNo) {
					t.Errorf("%s, write, %s: measured: %v; served: %v", w.name, phase, measured, served)
				}
				if phase == Latency {
					_, measured, served := pair(t.Context(), good, bad, work)
					if !errors.Is(measured, ErrData) || !errors.Is(served, errNo) {
						t.Errorf("%s, write to and fro: measured: %v; served: %v", w.name, measured, served)
					}
				}
			}
			for _, op := range []Op{Message, Tagged, Read} {
				for _, phase := range []Phase{Latency, Rate} {
					work := Work{Op: op, Sizes: []int{1000}, Iters: iters, Only: phase}
					if phase == Latency || op == Read {
						_, measured, served := pair(t.Context(), bad, good, work)
						if !errors.Is(measured, ErrData) || !errors.Is(served, errNo) {
							t.Errorf("%s, %s, %s: measured: %v; served: %v", w.name, op, phase, measured, served)
						}
					}
					if op != Read {
						_, measured, served := pair(t.Context(), good, bad, work)
						if !errors.Is(served, ErrData) || !errors.Is(measured, errNo) {
							t.Errorf("%s, %s, %s: measured: %v; served: %v", w.name, op, phase, measured, served)
						}
					}
				}
			}
		}
	}
}

// What ends a view is told as the reason why the context has ended, not as an interruption.
func TestViewCancelled(t *testing.T) {
	loop, _ := provider.Lookup("loop")
	ctx, cancel := context.WithCancelCause(t.Context())
	died := errors.New("the peer process died")
	w := &wrong{Provider: loop, name: fmt.Sprintf("wrong-view-%d", runs.Add(1)), viewing: func(ctx context.Context) error {
		cancel(died)
		return fmt.Errorf("view: %w", ctx.Err())
	}}
	provider.Register(w)
	for _, phase := range []Phase{Latency, Rate} {
		_, measured, _ := pair(ctx, Config{Provider: w.name}, Config{Provider: "loop"}, Work{Op: View, Sizes: []int{8}, Iters: 5, Only: phase})
		if !errors.Is(measured, died) || errors.Is(measured, context.Canceled) {
			t.Errorf("%s: %v", phase, measured)
		}
		ctx, cancel = context.WithCancelCause(t.Context())
	}
	cancel(nil)
}
