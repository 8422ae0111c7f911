package ping

import (
	"context"
	"errors"
	"fmt"
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
	return &wrongDomain{d, w, make(map[uint64][]byte)}, err
}

type wrongDomain struct {
	provider.Domain
	*wrong
	posted map[uint64][]byte // by context; one goroutine uses the domain
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

type wrongEndpoint struct {
	provider.Endpoint
	d *wrongDomain
}

func (e *wrongEndpoint) note(op provider.Op) { e.d.posted[op.Context] = op.Local.Bytes }

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
			if c.Context >= q.d.transfer && c.Context != controlContext && c.Err == nil && len(b) > 0 {
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
			w := &wrong{loop, fmt.Sprintf("wrong-%s-%d-%d", place, transfer, runs.Add(1)), transfer, at}
			provider.Register(w)
			good, bad := Config{Provider: "loop"}, Config{Provider: w.name}
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
