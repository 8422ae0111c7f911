package shm

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// visitor is a process that comes by itself.
func visitor(t *testing.T, to *side) (v *side, at provider.Peer) {
	t.Helper()
	v = newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
	return v, v.insert(to.ep.Address())
}

// Visitors who have sent something and are gone are remembered for a while, and forgotten in the end.
func TestVisitorsAreForgotten(t *testing.T) {
	a := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
	const n = maxGhosts + 40
	var first, last provider.Peer
	for i := range n {
		v, to := visitor(t, a)
		a.must(a.ep.Recv(recvOp(make([]byte, 8), 1)))
		v.must(v.ep.Send(mk(make([]byte, 8), to, 2)))
		c := a.good(a.wait(v), provider.RecvDone, 1)
		if last = c.Source; i == 0 {
			first = last
		}
		v.must(v.d.Close())
		progress(t, "gone", func() bool { return a.d.Stats().Peers == 0 }, a)
	}
	a.quiet()
	if got := a.d.av.Len(); got > maxGhosts {
		t.Errorf("after %d visitors %d are known", n, got)
	}
	if err := a.ep.Send(mk(nil, last, 3)); err != nil {
		t.Error(err)
	}
	if c := a.wait(); !errors.Is(c.Err, provider.ErrPeerGone) {
		t.Errorf("a message to one who has just gone: %+v", c)
	}
	if err := a.ep.Send(mk(nil, first, 3)); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("a message to one who has gone long ago: %v", err)
	}
}

// What visitors leave in messages is not lost, and has a bound: nobody new is let in before some were taken.
func TestVisitorsLeaveABoundedMess(t *testing.T) {
	a := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{Unexpected: 1000})
	come := func() (stayed bool) {
		v, to := visitor(t, a)
		v.must(v.ep.Send(mk(make([]byte, 900), to, 2)))
		c := v.wait(a)
		if c.Err != nil && (!errors.Is(c.Err, provider.ErrUnreachable) || !strings.Contains(c.Err.Error(), "of peers that are gone wait for receives")) {
			t.Fatal(c.Err)
		}
		progress(t, "kept", func() bool {
			_, n := a.ep.(*endpoint).matcher.Len()
			return c.Err != nil || n > 0
		}, a)
		v.must(v.d.Close())
		progress(t, "gone", func() bool { return a.d.Stats().Peers == 0 }, a)
		return c.Err == nil
	}
	n := 0
	for come() {
		if n++; n > 2*maxLeft {
			t.Fatalf("%d messages of peers that are gone wait", n)
		}
	}
	if n < maxLeft-1 {
		t.Errorf("after %d messages nobody is let in", n)
	}
	friend := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
	a.insert(friend.ep.Address()) // it was named, so it is no newcomer
	friend.must(friend.ep.Send(mk(make([]byte, 8), friend.insert(a.ep.Address()), 4)))
	friend.good(friend.wait(a), provider.SendDone, 4)
	for range n {
		a.must(a.ep.Recv(recvOp(make([]byte, 900), 5)))
		if c := a.good(a.wait(), provider.RecvDone, 5); c.Len != 900 {
			t.Errorf("%+v", c)
		}
	}
	a.must(a.d.Remove(a.insert(friend.ep.Address())))
	if !come() {
		t.Error("nobody is let in after the messages were taken")
	}
}
