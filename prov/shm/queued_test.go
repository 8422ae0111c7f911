package shm

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// A long read or write that was posted before there was a connection goes on by itself until it has ended.
func TestQueuedLongRMA(t *testing.T) {
	for _, mode := range bothModes {
		const n = 8 << 20
		a, b, to, _ := twoSides(t, provider.DomainConfig{Progress: mode})
		arena := b.alloc(n, peerBoth)
		private, err := b.d.Register(heapBytes(n), peerBoth)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range []provider.Memory{arena, private} {
			out, in := pattern(n, byte(i)), make([]byte, n)
			if err := a.d.Remove(to); err != nil { // so that the next one has to connect
				t.Fatal(err)
			}
			to = a.insert(b.ep.Address())
			var others []*side
			if mode == provider.Manual {
				others = append(others, b)
			}
			a.must(a.ep.Write(provider.Op{Local: provider.Segment{Bytes: out}, Peer: to, Key: m.Key(), Context: 1}))
			a.good(a.wait(others...), provider.WriteDone, 1)
			if err := a.d.Remove(to); err != nil {
				t.Fatal(err)
			}
			to = a.insert(b.ep.Address())
			a.must(a.ep.Read(provider.Op{Local: provider.Segment{Bytes: in}, Peer: to, Key: m.Key(), Context: 2}))
			a.good(a.wait(others...), provider.ReadDone, 2)
			if !bytes.Equal(in, out) {
				t.Errorf("%v, memory %d: other bytes", mode, i)
			}
		}
	}
}
