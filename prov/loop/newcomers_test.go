package loop

import (
	"errors"
	"runtime"
	"testing"
	"weak"

	"github.com/weft-fabric/weft/fabric/provider"
)

// comer is a domain that comes to somebody, sends, and goes. What it was is watched by a weak pointer.
func comer(t *testing.T, p *Provider, to *node, send func(n *node, to provider.Peer)) weak.Pointer[domain] {
	t.Helper()
	n := &node{t: t}
	d, err := p.OpenDomain(provider.Info{}, provider.DomainConfig{Progress: provider.Manual})
	if err != nil {
		t.Fatal(err)
	}
	n.d = d
	if n.cq, err = d.OpenCompletionQueue(provider.CQConfig{Size: 8}); err != nil {
		t.Fatal(err)
	}
	if n.ep, err = d.OpenEndpoint(provider.EndpointConfig{Send: n.cq, Recv: n.cq}); err != nil {
		t.Fatal(err)
	}
	send(n, n.insert(to))
	n.must(d.Close())
	return weak.Make(d.(*domain))
}

// Peers that come by themselves and die do not add up: who was not heard of is forgotten at once, of the others the last are
// remembered, and nothing of their domains stays.
func TestNewcomersAreForgotten(t *testing.T) {
	p := New()
	a := open(t, p, provider.Manual)
	buf := make([]byte, 8)
	var last weak.Pointer[domain]
	var first, source provider.Peer
	const n = maxGhosts + 20
	for i := range n {
		last = comer(t, p, a, func(n *node, to provider.Peer) {
			n.must(n.ep.Send(provider.Op{Peer: to, Local: local(buf), Flags: provider.Quiet}))
		})
		a.must(a.ep.Recv(provider.Op{Local: local(buf)}))
		c := a.wait()
		if c.Err != nil {
			t.Fatal(c.Err)
		}
		source = c.Source
		if i == 0 {
			first = source
		}
		a.none() // hears of its end
	}
	if known := len(a.d.Peers()); known != maxGhosts {
		t.Errorf("%d peers are known, %d have come", known, n)
	}
	a.must(a.ep.Send(provider.Op{Peer: source, Local: local(buf)}))
	if c := a.wait(); !errors.Is(c.Err, provider.ErrPeerGone) {
		t.Errorf("a post to the last: %v", c.Err)
	}
	refused(t, "a post to the first", a.ep.Send(provider.Op{Peer: first}), provider.ErrInvalid)
	for range n {
		comer(t, p, a, func(n *node, to provider.Peer) {
			if _, err := n.d.View(t.Context(), to, 1, 0, 1); !errors.Is(err, provider.ErrKey) {
				t.Fatal(err)
			}
		})
		a.none()
	}
	if known := len(a.d.Peers()); known != maxGhosts {
		t.Errorf("%d peers are known", known)
	}
	runtime.GC()
	if last.Value() != nil {
		t.Error("the domain of a dead peer is held")
	}
	runtime.KeepAlive(a)
}

// A dead peer is known as long as a message of it waits, and one that was inserted until it is removed.
func TestNewcomersAreKnown(t *testing.T) {
	p := New()
	a := open(t, p, provider.Manual)
	say := func(n *node, to provider.Peer) {
		n.must(n.ep.Send(provider.Op{Peer: to, Local: local([]byte("x")), Flags: provider.Quiet}))
	}
	waits := comer(t, p, a, say)
	a.none()
	comer(t, p, a, func(n *node, to provider.Peer) {
		if _, err := a.d.Insert(n.ep.Address()); err != nil {
			t.Fatal(err)
		}
		if _, err := n.d.View(t.Context(), to, 1, 0, 1); !errors.Is(err, provider.ErrKey) {
			t.Fatal(err)
		}
	})
	a.none()
	if known := a.d.Peers(); len(known) != 2 || known[0].State != "gone" || known[1].State != "gone" {
		t.Errorf("%+v", known)
	}
	runtime.GC()
	if waits.Value() != nil {
		t.Error("the domain of a dead peer is held by its message")
	}
	a.must(a.ep.Recv(provider.Op{Local: local(make([]byte, 1)), Peer: a.d.Peers()[0].Peer, Flags: provider.Directed}))
	if c := a.wait(); c.Err != nil || c.Len != 1 {
		t.Errorf("%+v", c)
	}
	if n := len(a.d.(*domain).ghosts); n != 1 {
		t.Errorf("%d peers are to be forgotten, want the one whose message was received", n)
	}
	runtime.KeepAlive(a)
}

// Endpoints that close let go of the dead, too.
func TestNewcomersOfClosedEndpoint(t *testing.T) {
	p := New()
	a := open(t, p, provider.Manual, func(c *config) { c.ep.Unexpected = 1 })
	comer(t, p, a, func(n *node, to provider.Peer) {
		for range 2 { // the second one stays in the lane
			n.must(n.ep.Send(provider.Op{Peer: to, Local: local([]byte("x")), Flags: provider.Quiet}))
		}
	})
	a.none()
	if n := len(a.d.Peers()); n != 1 {
		t.Errorf("%d peers are known", n)
	}
	a.must(a.ep.Close())
	if n := len(a.d.Peers()); n != 0 {
		t.Errorf("%d peers are known", n)
	}
}

// A peer for which there is no room is told, also one that was removed and comes again.
func TestNewcomerRefused(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b, c := open(t, p, provider.Manual), open(t, p, mode), open(t, p, mode)
		toB, toA := a.insert(b), b.insert(a)
		long := make([]byte, 100_000)
		b.must(b.ep.Send(provider.Op{Peer: toA, Flags: provider.Quiet}))
		a.must(a.ep.Recv(provider.Op{}))
		a.wait()
		a.must(a.d.Remove(toB))
		d := a.d.(*domain)
		d.core.Lock()
		d.av.Max = 1
		d.core.Unlock()
		if _, err := a.d.Insert("loop://somebody"); err != nil {
			t.Fatal(err)
		}
		b.must(b.ep.Send(provider.Op{Local: local(long), Peer: toA, Context: 1}))
		c.must(c.ep.Send(provider.Op{Local: local(long), Peer: c.insert(a), Context: 2}))
		a.none()
		wants(t, b.wait(), provider.ErrPeerGone, a.addr)
		wants(t, c.wait(), provider.ErrPeerGone, a.addr)
		// When there is room again, whoever inserts it anew is let in.
		for _, s := range a.d.Peers() {
			a.must(a.d.Remove(s.Peer))
		}
		b.must(b.ep.Send(provider.Op{Local: local(long), Peer: b.insert(a), Context: 3}))
		a.must(a.ep.Recv(provider.Op{Local: local(make([]byte, len(long)))}))
		if c := a.wait(); c.Err != nil || c.Len != uint64(len(long)) {
			t.Errorf("%+v", c)
		}
	})
}
