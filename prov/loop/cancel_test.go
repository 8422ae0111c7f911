package loop

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// A read or write of which bytes have moved is not taken back: it goes on to its end.
func TestCancelBegun(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Manual), open(t, p, provider.Manual)
	to := a.insert(b)
	const n = 3 * pieceBytes
	m := memories(t, b, n, provider.PeerRead|provider.PeerWrite)["arena"]
	src := fill(n, 3)
	a.must(a.ep.Write(provider.Op{Local: local(src), Peer: to, Key: m.Key(), Context: 1}))
	a.must(a.ep.Write(provider.Op{Local: local(src[:1]), Peer: to, Key: m.Key(), Context: 2}))
	if a.ep.Cancel(1) {
		t.Error("a write that has begun was cancelled")
	}
	if !a.ep.Cancel(2) {
		t.Error("a write that waits was not cancelled")
	}
	wants(t, a.wait(), provider.ErrCancelled, b.addr)
	if c := a.wait(); c.Context != 1 || c.Err != nil || c.Len != n || string(m.Bytes()) != string(src) {
		t.Errorf("%+v", c)
	}
	a.none()
}

// Of several operations with one context Cancel takes the oldest that can be taken back.
func TestCancelOldest(t *testing.T) {
	p := New()
	a, b := open(t, p, provider.Manual), open(t, p, provider.Manual, func(c *config) { c.ep.Depth = 1 })
	to := a.insert(b)
	send := func(text string, context uint64) {
		a.must(a.ep.Send(provider.Op{Local: local([]byte(text)), Peer: to, Context: context, Flags: provider.Quiet}))
	}
	send("x", 0)     // fills the lane
	send("first", 1) // the places of the operations' table are taken again in another order
	send("second", 2)
	if !a.ep.Cancel(1) {
		t.Fatal("not cancelled")
	}
	a.wait()
	send("third", 2)
	send("fourth", 2)
	if !a.ep.Cancel(2) {
		t.Fatal("not cancelled")
	}
	wants(t, a.wait(), provider.ErrCancelled, b.addr)
	for _, want := range []string{"x", "third", "fourth"} {
		buf := make([]byte, 10)
		b.must(b.ep.Recv(provider.Op{Local: local(buf)}))
		a.none() // moves what waits: no send asks for a completion
		if c := b.wait(); string(buf[:c.Len]) != want {
			t.Errorf("%q, want %q", buf[:c.Len], want)
		}
	}
}
