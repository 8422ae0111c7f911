package shm

import (
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Messages behind one that was waited for are left where they are for the receives that the program may post then: they are
// not copied twice. When it does not, they are kept, as others.
func TestUnexpectedLeft(t *testing.T) {
	x, y, to := connected(t, provider.DomainConfig{Progress: provider.Manual})
	kept := func(want int) {
		t.Helper()
		if _, n := y.ep.(*endpoint).matcher.Len(); n != want {
			t.Errorf("%d messages are kept, want %d", n, want)
		}
	}
	read := func(want ...uint64) {
		t.Helper()
		var c [8]provider.Completion
		n, err := y.cq.Read(c[:])
		if n != len(want) || err != nil {
			t.Fatal(n, err)
		}
		for i, w := range want {
			y.good(c[i], provider.RecvDone, w)
		}
	}
	send := func(n int) {
		t.Helper()
		for range n {
			x.must(x.ep.Send(provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: to, Flags: provider.Quiet}))
		}
	}
	x.must(y.ep.Recv(recvOp(make([]byte, 8), 1)))
	send(4)
	read(1)
	kept(0)
	x.must(y.ep.Recv(recvOp(make([]byte, 8), 2)))
	x.must(y.ep.Recv(recvOp(make([]byte, 8), 3)))
	read(2, 3)
	kept(0)
	send(2)
	read()
	kept(3)
	for i := range uint64(3) {
		x.must(y.ep.Recv(recvOp(make([]byte, 8), 4+i)))
	}
	read(4, 5, 6)
	kept(0)
}

// Who looks for a message sees all that have arrived.
func TestPeekBehindAMatch(t *testing.T) {
	x, y, to := connected(t, provider.DomainConfig{Progress: provider.Manual})
	tagged := func(tag uint64, f provider.Flags) provider.Op {
		return provider.Op{Local: provider.Segment{Bytes: make([]byte, 8)}, Peer: to, Tag: tag, Flags: f}
	}
	in := tagged(1, 0)
	in.Peer = 0
	x.must(y.ep.RecvTagged(in))
	for tag := range uint64(3) {
		x.must(x.ep.SendTagged(tagged(tag+1, provider.Quiet)))
	}
	x.must(y.ep.RecvTagged(provider.Op{Tag: 3, Flags: provider.Peek, Context: 7}))
	var c [4]provider.Completion
	n, err := y.cq.Read(c[:])
	if n != 2 || err != nil || c[1].Err != nil || c[1].Context != 7 || c[1].Len != 8 {
		t.Errorf("%d, %v, %+v", n, err, c)
	}
}
