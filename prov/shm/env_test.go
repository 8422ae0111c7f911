package shm

import (
	"context"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

var roles []testutil.Role

// side is a domain with one endpoint, as most tests need it.
type side struct {
	t  testing.TB
	d  *domain
	cq provider.CompletionQueue
	ep provider.Endpoint
}

var bothModes = []provider.Progress{provider.Auto, provider.Manual}

func newSide(t testing.TB, c provider.DomainConfig, e provider.EndpointConfig) *side {
	t.Helper()
	d, err := open(provider.Info{}, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	cq, err := d.OpenCompletionQueue(provider.CQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	e.Send, e.Recv = cq, cq
	ep, err := d.OpenEndpoint(e)
	if err != nil {
		t.Fatal(err)
	}
	return &side{t: t, d: d, cq: cq, ep: ep}
}

// twoSides are in two domains, and know each other.
func twoSides(t testing.TB, c provider.DomainConfig) (a, b *side, ab, ba provider.Peer) {
	t.Helper()
	a, b = newSide(t, c, provider.EndpointConfig{}), newSide(t, c, provider.EndpointConfig{})
	return a, b, a.insert(b.ep.Address()), b.insert(a.ep.Address())
}

func (s *side) insert(a provider.Address) provider.Peer {
	s.t.Helper()
	p, err := s.d.Insert(a)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// wait gets the next completion. others are driven meanwhile, as their processes would drive themselves in manual mode.
func (s *side) wait(others ...*side) provider.Completion {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	var c [1]provider.Completion
	if len(others) == 0 {
		if n, err := s.cq.Wait(ctx, c[:]); n != 1 || err != nil {
			s.t.Fatalf("no completion: %d, %v", n, err)
		}
		return c[0]
	}
	for ctx.Err() == nil {
		n, err := s.cq.Read(c[:])
		if err != nil {
			s.t.Fatal(err)
		}
		if n == 1 {
			return c[0]
		}
		for _, o := range others {
			o.d.core.Lock()
			o.d.core.Progress()
			o.d.core.Unlock()
		}
	}
	s.t.Fatal("no completion")
	return c[0]
}

// must fails the test if an operation was not accepted.
func (s *side) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *side) good(c provider.Completion, kind provider.Kind, context uint64) provider.Completion {
	s.t.Helper()
	if c.Err != nil || c.Kind != kind || c.Context != context {
		s.t.Fatalf("completion %+v, want %v with context %d", c, kind, context)
	}
	return c
}

func mk(b []byte, p provider.Peer, context uint64) provider.Op {
	return provider.Op{Local: provider.Segment{Bytes: b}, Peer: p, Context: context}
}

func recvOp(b []byte, context uint64) provider.Op { return mk(b, 0, context) }

func heapBytes(n int) memmon.Kind { return memmon.HeapBytes(make([]byte, n)) }
