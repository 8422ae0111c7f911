package hook

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/prov/loop"
)

// A receive for a peer that was inserted again ends as cancelled when the program removes that peer: the one that was killed is
// another one, of the same address.
func TestRemoveIsNoDeath(t *testing.T) {
	p := newPairOver(t, loop.New(), Config{})
	from := func(peer fabric.Peer, context uint64) {
		t.Helper()
		p.to = peer
		if err := p.send(99); err != nil { // which connects
			t.Fatal(err)
		}
		if c := one(t, p.aq); c.Context != 99 || c.Err != nil {
			t.Fatalf("%+v", c)
		}
		if err := p.ae.Recv(fabric.Op{Local: fabric.Bytes(make([]byte, 8)), Peer: peer, Flags: fabric.Directed, Context: context}); err != nil {
			t.Fatal(err)
		}
	}
	ends := func(context uint64, why error) {
		t.Helper()
		if c := one(t, p.aq); c.Context != context || !errors.Is(c.Err, why) {
			t.Errorf("receive %d ended with %+v, want %v", context, c, why)
		}
	}
	from(p.to, 1)
	if p.h.Kill(p.be.Address()) != 1 {
		t.Fatal("nobody was killed")
	}
	ends(1, fabric.ErrPeerGone)
	again := p.insert(t)
	from(again, 2)
	if err := p.a.Remove(again); err != nil {
		t.Fatal(err)
	}
	ends(2, fabric.ErrCancelled)
	third := p.insert(t)
	from(third, 3)
	if p.h.Kill(p.be.Address()) != 1 {
		t.Fatal("the peer that was inserted again was not killed")
	}
	ends(3, fabric.ErrPeerGone)
}
