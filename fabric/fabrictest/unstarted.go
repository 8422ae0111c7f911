package fabrictest

import (
	"errors"
	"runtime"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// testCancelSends: a send that has not started, because the peer takes no more, can be taken back: it ends once, with
// ErrCancelled, and does not arrive, and those before it do.
func testCancelSends(e *env) {
	for _, connected := range []bool{false, true} {
		a, b := e.directsOf(endpointConfig{Depth: 16, Unexpected: 4096}, provider.CQConfig{})
		if connected {
			e.pingOnce(a, b)
		}
		e.cancelSend(a, b)
	}
}

func (e *env) cancelSend(a, b *direct) {
	e.Helper()
	msg, into := make([]byte, 2000), make([]byte, 2000)
	posted := 0
	var err error
	for ; posted < 4000; posted++ {
		err = a.ep.Send(provider.Op{Local: provider.Segment{Bytes: msg}, Peer: a.to, Context: uint64(posted)})
		if err != nil {
			break
		}
	}
	if !errors.Is(err, provider.ErrAgain) {
		e.Fatalf("%d messages for a receiver that does nothing and allows 4096 bytes: %v", posted, err)
	}
	last := uint64(posted - 1)
	if !a.ep.Cancel(last) {
		e.Fatalf("the last of %d sends, which the peer has no room for, cannot be cancelled", posted)
	}
	if a.ep.Cancel(last) {
		e.Fatalf("a send was cancelled twice")
	}
	e.cancelled(a, b, into, posted, last)
	e.pingOnce(a, b) // the next message to arrive is this one
}

// cancelled receives all but the cancelled one of so many sends, whose ends it checks.
func (e *env) cancelled(a, b *direct, into []byte, posted int, last uint64) {
	e.Helper()
	var some [16]provider.Completion
	seen := make([]bool, posted)
	wanted, received, ended := posted-1, 0, 0
	for end := time.Now().Add(e.o.patience); received < posted-1 || ended < posted; runtime.Gosched() {
		for ; wanted > 0 && b.ep.Recv(provider.Op{Local: provider.Segment{Bytes: into}}) == nil; wanted-- {
		}
		n, err := b.q.Read(some[:])
		if err != nil || n > 0 && some[0].Err != nil {
			e.Fatalf("%v, %s", err, show(some[0]))
		}
		received += n
		if n, err = a.q.Read(some[:]); err != nil {
			e.Fatal(err)
		}
		for _, c := range some[:n] {
			if seen[c.Context] || errors.Is(c.Err, provider.ErrCancelled) != (c.Context == last) || c.Err != nil && c.Context != last {
				e.Fatalf("of %d sends, of which the last was cancelled, one ended as %s", posted, show(c))
			}
			seen[c.Context] = true
		}
		ended += n
		if time.Now().After(end) {
			e.Fatalf("%d of %d sends received, %d ended: it does not go on", received, posted-1, ended)
		}
	}
}

// testFencedSends: a send with Fence starts after an earlier send has completed, however long its receiver takes.
func testFencedSends(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	b.knows(a)
	for _, n := range []int{8, 5000, 200000} {
		seed := e.fresh()
		first, second := a.heap(n, seed), a.heap(64, seed+1)
		in, in2 := b.heap(n, 0), b.heap(64, 0)
		a.post(tsendOp(to, 1, 1, first.all()).with(provider.DeliveryComplete, 0))
		a.post(sendOp(to, 2, second.all()).with(provider.Fence, 0))
		b.post(recvOp(4, in2.all()))
		b.none("a fenced send behind one that nobody has received")
		b.post(trecvOp(1, 0, 3, in.all()))
		b.each(2)
		b.holds("the message before the fence", in.all(), seed)
		b.holds("the message behind it", in2.all(), seed+1)
		if got := orderOf(a.take(2)); !sameOrder(got, []uint64{1, 2}) {
			e.Fatalf("a fenced send and the one before it completed as %v", got)
		}
	}
}
