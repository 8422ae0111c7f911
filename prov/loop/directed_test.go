package loop

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// The death of a peer ends the receives that wait for it alone at each endpoint of the domain, also at one that has never had
// to do with it, before and after.
func TestDirectedOfOtherEndpoint(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		other, err := a.d.OpenEndpoint(provider.EndpointConfig{Send: a.cq, Recv: a.cq})
		if err != nil {
			t.Fatal(err)
		}
		to := a.insert(b)
		a.must(a.ep.Send(provider.Op{Peer: to, Flags: provider.Quiet}))
		a.must(other.Recv(provider.Op{Peer: to, Context: 1, Flags: provider.Directed}))
		a.must(other.RecvTagged(provider.Op{Context: 9}))
		b.must(b.ep.Close())
		if c := a.wait(); c.Context != 1 {
			t.Errorf("%+v", c)
		} else {
			wants(t, c, provider.ErrPeerGone, b.addr)
		}
		a.must(other.Recv(provider.Op{Peer: to, Context: 2, Flags: provider.Directed}))
		if c := a.wait(); c.Context != 2 {
			t.Errorf("%+v", c)
		} else {
			wants(t, c, provider.ErrPeerGone, b.addr)
		}
		if !other.Cancel(9) {
			t.Error("a receive of anybody's has ended")
		}
		a.wait()
	})
}

// Who removes a peer takes back what it has not completed for it. A message that waits is dropped, one that was claimed, or
// is being copied, ends: for the receiver the peer has gone, as when the connection of a real provider ends.
func TestTakenBack(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Manual), open(t, p, provider.Manual)
	toB := a.insert(b)
	const n = 3 * pieceBytes
	buf := make([]byte, n)
	for tag := range uint64(3) {
		a.must(a.ep.SendTagged(provider.Op{Peer: toB, Local: local(buf), Tag: tag, Flags: provider.Quiet}))
	}
	b.must(b.ep.RecvTagged(provider.Op{Tag: 1, Context: 1, Flags: provider.Peek | provider.Claim}))
	if c := b.wait(); c.Flags&provider.Claimed == 0 || c.Err != nil {
		t.Fatalf("%+v", c)
	}
	b.must(b.ep.RecvTagged(provider.Op{Tag: 2, Context: 2, Local: local(make([]byte, n))})) // begins
	a.must(a.d.Remove(toB))
	b.must(b.ep.RecvTagged(provider.Op{Tag: 1, Context: 1, Local: local(make([]byte, n)), Flags: provider.Claim}))
	for range 2 {
		c := b.wait()
		if c.Len == n {
			t.Errorf("%+v", c)
		}
		wants(t, c, provider.ErrPeerGone, a.addr)
	}
	b.must(b.ep.RecvTagged(provider.Op{Tag: 0, Context: 3, Flags: provider.Peek}))
	wants(t, b.wait(), provider.ErrNoMessage, "")
	// It lives, and can come again.
	a.must(a.ep.SendTagged(provider.Op{Peer: a.insert(b), Tag: 5, Flags: provider.Quiet}))
	b.must(b.ep.RecvTagged(provider.Op{Tag: 5, Context: 5}))
	if c := b.wait(); c.Err != nil {
		t.Errorf("%+v", c)
	}
}

// A message that was claimed and is still with its sender when that dies is not forgotten: who receives it is told.
func TestClaimedOfDead(t *testing.T) {
	modes(t, func(t *testing.T, p *Provider, mode provider.Progress) {
		a, b := open(t, p, mode), open(t, p, mode)
		a.must(a.ep.SendTagged(provider.Op{Peer: a.insert(b), Local: local(make([]byte, 100_000)), Flags: provider.Quiet}))
		b.must(b.ep.RecvTagged(provider.Op{Context: 1, Flags: provider.Peek | provider.Claim}))
		if c := b.wait(); c.Flags&provider.Claimed == 0 || c.Err != nil {
			t.Fatalf("%+v", c)
		}
		a.must(a.ep.Close())
		b.none()
		b.must(b.ep.RecvTagged(provider.Op{Context: 1, Local: local(make([]byte, 100_000)), Flags: provider.Claim}))
		wants(t, b.wait(), provider.ErrPeerGone, a.addr)
	})
}
