package shm

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// A peer that posts all it may, each operation in as many pieces as it may have, and takes no answer meanwhile, keeps the
// rules: all is answered.
func TestManyPieces(t *testing.T) {
	const depth = 512
	b := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{Depth: 1})
	a := newSide(t, provider.DomainConfig{Progress: provider.Manual}, provider.EndpointConfig{Depth: depth})
	m, err := b.d.Register(heapBytes(maxRemotes*8), peerBoth)
	if err != nil {
		t.Fatal(err)
	}
	to := a.insert(b.ep.Address())
	for i := range depth {
		o := provider.Op{Local: provider.Segment{Bytes: make([]byte, maxRemotes*8)}, Peer: to, Context: uint64(i)}
		for j := range maxRemotes {
			o.Remotes = append(o.Remotes, provider.RemoteSegment{Key: m.Key(), Offset: uint64(j * 8), Len: 8})
		}
		if i%2 == 0 {
			a.must(a.ep.Read(o))
		} else {
			a.must(a.ep.Write(o))
		}
	}
	progress(t, "connected", func() bool { return a.peerState(to) == "connected" }, a, b)
	for range 100 { // b answers, a only sends
		b.drainSome()
		a.d.core.Lock()
		for _, p := range a.d.pairs {
			p.pushRMAs()
			p.publish()
		}
		a.d.core.Unlock()
	}
	for range depth {
		if c := a.wait(b); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
}
