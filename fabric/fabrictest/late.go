package fabrictest

import (
	"errors"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// testExit (F31): what was sent and has completed is received, also when the sender is gone by then; a send that did not
// complete may be lost.
func testExit(e *env) {
	b := e.side(0)
	b.open(e.spec())
	for _, n := range []int{0, 64, 4096, 5000, 65536, 1 << 20} {
		a := e.side(1)
		a.open(e.spec())
		to := a.knows(b)
		from := b.knows(a)
		seed := e.fresh()
		a.post(tsendOp(to, 4, 1, a.heap(n, seed).all()))
		list, err := a.tryTake(1, 300*time.Millisecond)
		completed := err == nil && list[0].Err == nil
		if !completed && n <= 64 {
			e.Fatalf("a send of %d bytes does not complete before its receive is posted", n)
		}
		if a.remote != nil {
			a.do(request{Verb: "close"})
			if err := a.remote.end(); err != nil {
				e.Fatal(err)
			}
			a.remote.dead = true
		} else {
			a.close()
		}
		in := b.heap(n, 0)
		b.post(trecvOp(4, 0, 2, in.all()))
		patience := e.o.patience
		if !completed { // either is right
			patience = 100 * time.Millisecond
		}
		got, err := b.tryTake(1, patience)
		switch {
		case err != nil && completed:
			e.Fatalf("%d bytes: the send completed, its process ended, and the message is lost", n)
		case err != nil:
			b.cancel(2)
			b.fails(provider.TRecvDone, 2, provider.ErrCancelled)
		case completed && (got[0].Err != nil || got[0].Len != uint64(n) || got[0].Source != from):
			e.Fatalf("%d bytes that were sent came as %s", n, show(got[0]))
		case completed:
			b.holds("a message of a sender that has ended", in.all(), seed)
		}
	}
}

// testFirst (F46): the first send to a peer that calls nothing is accepted at once. With automatic progress of the peer
// it completes within a second; with manual progress after the peer has called something.
func testFirst(e *env) {
	spec := e.spec()
	spec.Way = byHand
	a, b := e.pairOf(e.spec(), spec)
	to := a.knows(b)
	in := b.heap(100, 0)
	b.post(recvOp(2, in.all()))
	out := a.heap(100, 5)
	a.post(sendOp(to, 1, out.all()))
	late := e.lateness()
	list, err := a.tryTake(1, time.Second)
	if e.mode == provider.Auto && err != nil { // for as long again as the machine is late
		list, err = a.tryTake(1, late.worst())
	}
	late.stop()
	switch {
	case e.mode == provider.Auto && err != nil:
		e.Fatalf("the first send has not completed after a second in which the peer called nothing: %v", err)
	case err == nil && list[0].Err != nil:
		e.Fatalf("got %s", show(list[0]))
	}
	b.do(request{Verb: "collect", N: int(byWait)})
	if err != nil {
		a.one(provider.SendDone, 1)
	}
	b.one(provider.RecvDone, 2)
	b.holds("the first message", in.all(), 5)
}

// testNever: receives that nobody answers, and messages that nobody receives, end with Close.
func testNever(e *env) {
	spec := e.spec()
	spec.Counters = true
	a, b := e.pairOf(e.spec(), spec)
	to := a.knows(b)
	b.knows(a)
	e.message(a, b, to, b.knows(a), 8, false)
	in := b.heap(3000, 0)
	ops := []opSpec{recvOp(1, in.part(0, 100)), recvOp(2, in.part(100, 100))}
	if e.has(provider.Tagged) {
		ops = append(ops, trecvOp(1, 0, 3, in.part(200, 100)), trecvOp(2, 9, 4, in.part(300, 100)))
	}
	if e.has(provider.MultiRecv) {
		ops = append(ops, recvOp(5, in.part(1000, 1000)).with(provider.Multi, 0))
	}
	for _, op := range ops {
		b.post(op)
	}
	b.none("receives that nobody answers")
	b.do(request{Verb: "close-endpoint"})
	ends := map[uint64]bool{}
	for _, c := range b.take(len(ops)) {
		if ends[c.Context] || !errors.Is(c.Err, provider.ErrClosed) {
			e.Fatalf("at the close of its endpoint a receive ended as %s", show(c))
		}
		ends[c.Context] = true
	}
	b.none("all has ended")
	for _, op := range ops {
		if err := b.tryPost(op); !errors.Is(err, provider.ErrClosed) {
			e.Fatalf("a post to a closed endpoint: %v", err)
		}
	}
}
