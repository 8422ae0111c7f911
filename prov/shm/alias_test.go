package shm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// heirs are an address of an endpoint that is no more, and its successor with the same name.
func heirs(t *testing.T, name string) (stale provider.Address, heir *side) {
	t.Helper()
	c := provider.DomainConfig{Progress: provider.Manual}
	old := newSide(t, c, provider.EndpointConfig{Name: name})
	stale = old.ep.Address()
	old.must(old.d.Close())
	return stale, newSide(t, c, provider.EndpointConfig{Name: name})
}

// A full address reaches that very endpoint or nobody, and spoils the name for nobody, in whatever order the two are inserted and used.
func TestFullAddressNeverReachesASuccessor(t *testing.T) {
	for order := range 4 {
		name := fmt.Sprint("heir", order)
		full, b := heirs(t, name)
		a := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{})
		at := []provider.Address{provider.Address("shm://" + name), full}
		if order&1 != 0 {
			at[0], at[1] = at[1], at[0]
		}
		var to [2]provider.Peer
		for i := range at {
			to[i] = a.insert(at[i])
		}
		if order&2 != 0 {
			at[0], at[1], to[0], to[1] = at[1], at[0], to[1], to[0]
		}
		in := make([]byte, 8)
		b.must(b.ep.Recv(recvOp(in, 5)))
		for i := range to {
			a.must(a.ep.Send(mk([]byte("to "+at[i][6:10]+"."), to[i], uint64(i))))
		}
		for range 2 {
			c := a.wait(b)
			if stale := at[c.Context] == full; stale != errors.Is(c.Err, provider.ErrUnreachable) {
				t.Errorf("order %d: %s: %v", order, at[c.Context], c.Err)
			}
		}
		b.good(b.wait(a), provider.RecvDone, 5)
	}
}

// Name and full address of one endpoint work both, whichever is used first; messages from it reach receives for either.
func TestNameAndFullAddress(t *testing.T) {
	for order := range 4 {
		a, b := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{}),
			newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{Name: fmt.Sprint("both", order)})
		to := []provider.Peer{a.insert(provider.Address(fmt.Sprint("shm://both", order))), a.insert(b.ep.Address())}
		if to[0] == to[1] {
			t.Fatal("whom the name finds was not known yet")
		}
		if order&1 != 0 {
			to[0], to[1] = to[1], to[0]
		}
		for i, p := range to { // before anything is connected
			a.must(a.ep.Recv(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: p, Flags: provider.Directed, Context: uint64(10 + i)}))
		}
		for i, p := range to {
			a.must(a.ep.Send(mk(make([]byte, 8), p, uint64(i))))
			if order&2 != 0 { // the first is connected before the second is used
				a.good(a.wait(b), provider.SendDone, uint64(i))
			}
		}
		if order&2 == 0 {
			for range to {
				if c := a.wait(b); c.Err != nil {
					t.Errorf("order %d: %+v", order, c)
				}
			}
		}
		back := b.insert(a.ep.Address())
		for i := range to {
			b.must(b.ep.Recv(recvOp(make([]byte, 8), 3)))
			b.good(b.wait(a), provider.RecvDone, 3)
			b.must(b.ep.Send(mk(make([]byte, 8), back, 4)))
			b.good(b.wait(a), provider.SendDone, 4)
			a.good(a.wait(b), provider.RecvDone, uint64(10+i))
		}
		m := b.alloc(100, peerBoth)
		for _, p := range to {
			a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: p, Key: m.Key(), Context: 6}))
			a.good(a.wait(b), provider.ReadDone, 6)
			v := a.view(p, m, 0, 10)
			v.Release()
			a.must(a.ep.Recv(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: p, Flags: provider.Directed, Context: 7}))
			b.must(b.ep.Send(mk(make([]byte, 8), back, 8)))
			a.good(a.wait(b), provider.RecvDone, 7)
			b.good(b.wait(a), provider.SendDone, 8)
		}
		if a.d.Stats().Peers != 1 {
			t.Errorf("%d pairs", a.d.Stats().Peers)
		}
	}
}

// A name means whoever has it when it is connected, also after a connection with somebody who had it before, which ended here without word of
// its end: that of a closed endpoint, or with who had called and was gone before he was answered. The full address stays its own.
func TestNameAfterItsOwner(t *testing.T) {
	for way, meet := range map[string]func(a, b *side, ab provider.Peer){
		"closed": func(a, b *side, ab provider.Peer) {
			b.must(b.ep.Recv(recvOp(make([]byte, 8), 2)))
			a.must(a.ep.Send(mk(make([]byte, 8), ab, 1)))
			a.good(a.wait(b), provider.SendDone, 1)
			a.must(a.ep.Close())
			b.must(b.d.Close())
			ep, err := a.d.OpenEndpoint(provider.EndpointConfig{Send: a.cq, Recv: a.cq})
			a.must(err)
			a.ep = ep
		},
		"not answered": func(a, b *side, _ provider.Peer) {
			b.must(b.ep.Send(mk(make([]byte, 8), b.insert(a.ep.Address()), 1)))
			b.must(b.d.Close())
			a.once()
		},
		"told apart": func(a, b *side, ab provider.Peer) {
			b.must(b.ep.Recv(recvOp(make([]byte, 8), 2)))
			a.must(a.ep.Send(mk(make([]byte, 8), ab, 1)))
			a.good(a.wait(b), provider.SendDone, 1)
			full := a.insert(b.ep.Address())
			a.must(a.ep.Close())
			b.must(b.d.Close())
			ep, err := a.d.OpenEndpoint(provider.EndpointConfig{Send: a.cq, Recv: a.cq})
			a.must(err)
			a.ep = ep
			heir := newSide(t, byHand, provider.EndpointConfig{Name: "owner told apart"})
			a.must(a.ep.Send(mk(make([]byte, 8), full, 1)))
			if c := a.wait(heir); !errors.Is(c.Err, provider.ErrUnreachable) {
				t.Errorf("the full address reaches a successor: %+v", c)
			}
			heir.must(heir.d.Close())
		},
	} {
		t.Run(way, func(t *testing.T) {
			a, b := newSide(t, byHand, provider.EndpointConfig{}), newSide(t, byHand, provider.EndpointConfig{Name: "owner " + way})
			at := provider.Address("shm://" + strings.ReplaceAll("owner "+way, " ", "%20"))
			meet(a, b, a.insert(at))
			heir := newSide(t, byHand, provider.EndpointConfig{Name: "owner " + way})
			for i := range uint64(2) {
				heir.must(heir.ep.Recv(recvOp(make([]byte, 8), 2)))
				a.must(a.ep.Send(mk(make([]byte, 8), a.insert(at), i)))
				a.good(a.wait(heir), provider.SendDone, i)
				heir.good(heir.wait(a), provider.RecvDone, 2)
			}
		})
	}
}
