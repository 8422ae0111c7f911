package shm

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// What a peer says it brings of an atomic operation is of one of its pieces, in full.
func TestOldElementsAreChecked(t *testing.T) {
	a, b, ab, _ := twoSides(t, provider.DomainConfig{Progress: provider.Manual})
	m, err := b.d.Register(heapBytes(64), provider.PeerWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ep.Send(provider.Op{Peer: ab}); err != nil {
		t.Fatal(err)
	}
	if c := a.wait(b); c.Err != nil { // they are connected, and the peer has nothing more to do in this test
		t.Fatal(c.Err)
	}
	for name, r := range map[string]record{
		"the start of no piece": {data: 4, payload: make([]byte, 8)},
		"behind the last piece": {data: 24, payload: make([]byte, 8)},
		"far behind":            {data: ^uint64(7), payload: make([]byte, 8)},
		"too little":            {data: 8, payload: make([]byte, 8)},
		"too much":              {data: 0, payload: make([]byte, 16)},
		"bytes with an error":   {data: 0, status: statusKey, payload: make([]byte, 8)},
		"good":                  {data: 8, payload: []byte("0123456789abcdef")},
	} {
		result := make([]byte, 24)
		x := provider.Atomic{Code: provider.AtomicRead, Type: provider.Uint64, Result: result}
		x.Op = provider.Op{Peer: ab, Remotes: []provider.RemoteSegment{{Key: m.Key(), Len: 8}, {Key: m.Key(), Offset: 24, Len: 16}}}
		if err := a.ep.Atomic(x); err != nil {
			t.Fatal(err)
		}
		a.d.core.Lock()
		p := a.ep.(*endpoint).pairs[0]
		if p.live.head == nil || p.live.head.pending != 2 {
			t.Fatal("the peer was not asked twice")
		}
		r.context = p.live.head.id
		err := p.old(&r)
		if (err == nil) != (name == "good") || err != nil && !errors.Is(err, errRecord) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "good" && string(result[8:]) != "0123456789abcdef" {
			t.Errorf("%q", result)
		}
		p.d.finish(p.live.head, nil)
		a.d.core.Unlock()
	}
}
