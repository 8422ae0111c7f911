package loop

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

func TestNames(t *testing.T) {
	p := New()
	a := open(t, p, provider.Manual)
	queue := func() provider.EndpointConfig { return provider.EndpointConfig{Send: a.cq, Recv: a.cq} }
	for name, want := range map[string]error{
		"a": nil, "a-b_c.d:5@x!": nil, strings.Repeat("x", maxName): nil,
		strings.Repeat("x", maxName+1): provider.ErrInvalid,
		"a b":                          provider.ErrInvalid, "a/b": provider.ErrInvalid, "a?b": provider.ErrInvalid, "a#": provider.ErrInvalid, "100%": provider.ErrInvalid,
		"\x00": provider.ErrInvalid, "ä": provider.ErrInvalid, "\xff": provider.ErrInvalid, "a\n": provider.ErrInvalid,
	} {
		c := queue()
		c.Name = name
		ep, err := a.d.OpenEndpoint(c)
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
		if _, insert := a.d.Insert(provider.Address(scheme + name)); !errors.Is(insert, want) {
			t.Errorf("insert %q: %v, want %v", name, insert, want)
		}
		if err != nil {
			continue
		}
		if ep.Address() != provider.Address(scheme+name) {
			t.Errorf("%q is reached at %s", name, ep.Address())
		}
		if _, err := a.d.OpenEndpoint(c); !errors.Is(err, provider.ErrBusy) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q twice: %v", name, err)
		}
		a.must(ep.Close())
		again, err := a.d.OpenEndpoint(c)
		if err != nil {
			t.Errorf("%q is not free again: %v", name, err)
			continue
		}
		a.must(again.Close())
	}
	for _, bad := range []provider.Address{"", "loop", "loop:", "loop://", "Loop://a", "shm://a", " loop://a", "loop:///a"} {
		if _, err := a.d.Insert(bad); !errors.Is(err, provider.ErrInvalid) {
			t.Errorf("insert %q: %v", bad, err)
		}
	}
	seen := map[provider.Address]bool{}
	for range 100 {
		ep, err := a.d.OpenEndpoint(queue())
		if err != nil {
			t.Fatal(err)
		}
		if seen[ep.Address()] {
			t.Errorf("%s twice", ep.Address())
		}
		seen[ep.Address()] = true
	}
	// What was refused is not attached: the queue can be closed when the endpoints are.
	for _, ep := range append([]*endpoint{}, a.d.(*domain).endpoints...) {
		a.must(ep.Close())
	}
	a.must(a.cq.Close())
}

// Networks do not see each other; the one in the list of providers is one of them.
func TestNetworksApart(t *testing.T) {
	p, q := New(), New()
	named := func(c *config) { c.ep.Name = "same" }
	a, b := open(t, p, provider.Auto, named), open(t, q, provider.Auto, named)
	c := open(t, p, provider.Auto)
	to := c.insert(a)
	if p.Kill("loop://other") || !q.Kill(b.addr) {
		t.Error("who was killed")
	}
	a.must(a.ep.Recv(provider.Op{Local: local(make([]byte, 8))}))
	c.must(c.ep.Send(provider.Op{Local: local([]byte("hi")), Peer: to}))
	if got := a.wait(); got.Err != nil || got.Len != 2 {
		t.Errorf("%+v", got)
	}
	if listed, ok := provider.Lookup(Name); !ok || listed.Name() != Name || listed == provider.Provider(p) {
		t.Error("the list of providers")
	}
}

// Both sides use each other for the first time at once: there is one pair, and every message arrives.
func TestJoinFromBothSides(t *testing.T) {
	for range 50 {
		p := New()
		a, b := open(t, p, provider.Auto), open(t, p, provider.Auto)
		toA, toB := b.insert(a), a.insert(b)
		var all sync.WaitGroup
		for _, s := range []struct {
			n  *node
			to provider.Peer
		}{{a, toB}, {b, toA}} {
			s.n.must(s.n.ep.Recv(provider.Op{Local: local(make([]byte, 8)), Context: 2}))
			all.Go(func() {
				if err := s.n.ep.Send(provider.Op{Local: local([]byte("hi")), Peer: s.to, Context: 1}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, n := range []*node{a, b} {
			for range 2 {
				if c := n.wait(); c.Err != nil {
					t.Fatalf("%+v", c)
				}
			}
			if s := n.d.Stats(); s.Peers != 1 || s.Sent != 1 || s.Received != 1 {
				t.Fatalf("%+v", s)
			}
		}
		p.net.mu.Lock()
		pairs := len(p.net.pairs)
		p.net.mu.Unlock()
		if pairs != 1 {
			t.Fatalf("%d pairs", pairs)
		}
		a.must(a.d.Close())
		b.must(b.d.Close())
		if len(p.net.pairs)+len(p.net.names) != 0 {
			t.Fatalf("%d pairs and %d names are left", len(p.net.pairs), len(p.net.names))
		}
	}
}

// The address of a dead peer, inserted before any poll has told of the death, is a new peer.
func TestInsertNoticesDeath(t *testing.T) {
	p := New()
	named := func(c *config) { c.ep.Name = "b" }
	a, b := open(t, p, provider.Manual), open(t, p, provider.Manual, named)
	old := a.insert(b)
	a.must(a.ep.Send(provider.Op{Local: local([]byte("x")), Peer: old, Context: 1, Flags: provider.DeliveryComplete}))
	b.must(b.d.Close())
	c := open(t, p, provider.Manual, named)
	fresh := a.insert(c)
	if fresh == old {
		t.Fatal("a new endpoint is the old peer")
	}
	wants(t, a.wait(), provider.ErrPeerGone, c.addr)
	if got, err := a.d.Address(old); err != nil || got != c.addr {
		t.Errorf("the dead peer was at %q, %v", got, err)
	}
	a.must(a.ep.Send(provider.Op{Local: local([]byte("x")), Peer: fresh, Context: 2}))
	if got := a.wait(); got.Err != nil || got.Context != 2 {
		t.Errorf("%+v", got)
	}
}

// A receiver's depth bounds what is on the way to it, for each sender by itself.
func TestLaneIsBounded(t *testing.T) {
	for _, depth := range []int{1, 2, 7} {
		p := New()
		b := open(t, p, provider.Manual, func(c *config) { c.ep.Depth = depth })
		for i := range 3 {
			a := open(t, p, provider.Manual)
			to := a.insert(b)
			for range depth + 5 {
				a.must(a.ep.Send(provider.Op{Local: local([]byte("x")), Peer: to}))
			}
			var c [20]provider.Completion
			n, err := a.cq.Read(c[:])
			if n != depth || err != nil {
				t.Errorf("depth %d, sender %d: %d messages are with a receiver that has not looked, %v", depth, i, n, err)
			}
		}
	}
}

// Many join, talk and leave at once, on one network.
func TestNetworkRace(t *testing.T) {
	p := New()
	hub := open(t, p, provider.Auto)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for round := range 20 {
				n := open(t, p, provider.Progress(round%2), func(c *config) { c.ep.Name = fmt.Sprintf("n%d", i) })
				to := n.insert(hub)
				n.must(n.ep.Send(provider.Op{Local: local([]byte("x")), Peer: to, Context: uint64(round)}))
				if c := n.wait(); c.Err != nil || c.Context != uint64(round) {
					t.Errorf("%+v", c)
				}
				n.must(n.d.Close())
			}
		})
	}
	for range 80 {
		hub.must(hub.ep.Recv(provider.Op{Local: local(make([]byte, 8))}))
		if c := hub.wait(); c.Err != nil || c.Len != 1 || c.Source == 0 {
			t.Fatalf("%+v", c)
		}
	}
	all.Wait()
	for _, s := range hub.d.Peers() {
		if s.Received != 1 || s.Sent != 0 {
			t.Errorf("%+v", s)
		}
	}
}
