package fabrictest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// testFence: an operation with Fence starts after all earlier ones towards the peer have completed.
func testFence(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	for _, kind := range e.remoteKinds() {
		const n = 600000
		target := b.mem(kind, n, readWrite)
		out, in := a.heap(n, 0), a.heap(n, 0)
		for range 6 {
			seed := e.fresh()
			a.fill(out.all(), seed)
			a.post(rmaOp(provider.WriteDone, to, target, 0, 1, out.all()))
			a.post(rmaOp(provider.ReadDone, to, target, 0, 2, in.all()).with(provider.Fence, 0))
			if got := orderOf(a.take(2)); !sameOrder(got, []uint64{1, 2}) {
				e.Fatalf("a fenced read and the write before it completed as %v", got)
			}
			a.holds("what a fenced read brought", in.all(), seed)
		}
		if e.has(provider.Atomics) {
			e.fencedAtomic(a, b, to, kind)
		}
	}
}

func (e *env) fencedAtomic(a, b *side, to provider.Peer, kind string) {
	e.Helper()
	target, x, result := b.mem(kind, 64, readWrite), a.heap(8, 0), a.heap(8, 0)
	for i := range uint64(20) {
		a.set(x, 0, binary.NativeEndian.AppendUint64(nil, i))
		a.post(rmaOp(provider.WriteDone, to, target, 0, 1, x.all()))
		r := result.all()
		a.post(opSpec{
			Kind: provider.AtomicDone, Peer: to, Key: target.key, Offset: target.at(0), Flags: provider.Fence,
			Code: provider.AtomicRead, Type: provider.Uint64, Result: &r, Context: 2,
		})
		a.take(2)
		if got := binary.NativeEndian.Uint64(a.get(r)); got != i {
			e.Fatalf("a fenced atomic after a write of %d read %d", i, got)
		}
	}
}

// The counters, in the order of agent.counter.
const (
	countSend = iota
	countRecv
	countRead
	countWrite
	countRemoteWrite
)

// testCounters: quiet operations make no completion and count; errors make one in spite of Quiet, and count as errors.
func testCounters(e *env) {
	spec := e.spec()
	spec.Counters = true
	a, b := e.pairOf(spec, spec)
	to := a.knows(b)
	b.knows(a)
	const n = 20
	out, in := a.heap(5000, 1), b.heap(5000, 0)
	for i := range n {
		b.post(recvOp(uint64(i), in.all()))
		a.post(sendOp(to, 1, out.part(0, 10*i*i)).with(provider.Quiet, 0))
	}
	e.counts(a, "sends", countSend, n)
	b.take(n)
	e.counts(b, "receives", countRecv, n)
	for range n {
		b.post(recvOp(1, in.all()).with(provider.Quiet, 0))
		a.post(sendOp(to, 1, out.part(0, 100)).with(provider.Quiet, 0))
	}
	e.counts(b, "quiet receives", countRecv, 2*n)
	if e.has(provider.RMA) {
		m := b.private(5000, 2, readWrite)
		for range n {
			a.post(rmaOp(provider.ReadDone, to, m, 0, 1, out.all()).with(provider.Quiet, 0))
			a.post(rmaOp(provider.WriteDone, to, m, 0, 1, out.all()).with(provider.Quiet, 0))
		}
		reads, writes := n, n
		e.counts(a, "reads", countRead, reads)
		e.counts(a, "writes", countWrite, writes)
		if e.has(provider.Atomics) {
			w := b.private(8, 2, readWrite)
			op := opSpec{
				Kind: provider.AtomicDone, Peer: to, Key: w.key, Offset: w.at(0), Code: provider.AtomicSum, Type: provider.Uint64,
				Segs: []seg{out.part(0, 8)}, Flags: provider.Quiet,
			}
			for range 3 {
				a.post(op)
			}
			op.Result = ptr(out.part(8, 8))
			for range 5 {
				a.post(op)
			}
			reads, writes = reads+5, writes+3
			e.counts(a, "reads and atomics with a result", countRead, reads)
			e.counts(a, "writes and atomics without a result", countWrite, writes)
		}
		if e.has(provider.RemoteCQData) {
			for range n {
				a.post(rmaOp(provider.WriteDone, to, m, 0, 1, out.all()).with(provider.Quiet|provider.RemoteData, 5))
			}
			e.counts(b, "writes with data by a peer", countRemoteWrite, n)
			b.take(n)
		}
		bad := rmaOp(provider.ReadDone, to, m, 4999, 6, out.all()).with(provider.Quiet, 0)
		e.refused(a, "a quiet read past the end", bad, provider.ErrKey)
		if got := a.do(request{Verb: "errors", Buf: countRead}).N; got != 1 {
			e.Fatalf("one read has failed, the counter says %d", got)
		}
		wait := request{Verb: "wait-value", Buf: countRead, N: reads + 1, Millis: 1000}
		if _, err := a.try(wait); !errors.Is(err, provider.ErrKey) {
			e.Fatalf("a wait for reads, of which one had failed, ended with %v", err)
		}
	}
	a.none("quiet operations")
	b.none("quiet operations")
	e.counterValues(a)
}

// counts waits until a counter has come to n, and not further.
func (e *env) counts(s *side, what string, counter, n int) {
	e.Helper()
	if _, err := s.try(request{Verb: "wait-value", Buf: counter, N: n, Millis: int(e.o.patience / time.Millisecond)}); err != nil {
		e.Fatalf("waiting until %d %s are counted: %v; counted are %d", n, what, err, s.value(counter))
	}
	if got := s.value(counter); got != n {
		e.Fatalf("%d %s are counted as %d", n, what, got)
	}
}

// counterValues sets, adds, and waits in vain.
func (e *env) counterValues(a *side) {
	e.Helper()
	a.do(request{Verb: "set-value", Buf: countSend, N: 100})
	a.do(request{Verb: "add", Buf: countSend, N: 11})
	e.counts(a, "sends that were only set", countSend, 111)
	began := time.Now()
	_, err := a.try(request{Verb: "wait-value", Buf: countSend, N: 112, Millis: 60})
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took < 55*time.Millisecond {
		e.Fatalf("a wait of 60 ms for what never comes ended after %v with %v", took, err)
	}
}

// testDelivered: with DeliveryComplete a send completes only when the message is in the receiver's buffer.
func testDelivered(e *env) {
	a, b := e.pair()
	to, from := a.knows(b), b.knows(a)
	e.message(a, b, to, from, 8, false) // so that they are connected
	for _, kind := range e.sendKinds() {
		for _, n := range []int{0, 8, 4096, 5000, 70000, 600000} {
			seed := e.fresh()
			out, in := a.heap(n, seed), b.heap(n, 0)
			send, recv := sendOp(to, 1, out.all()), recvOp(2, in.all())
			if kind == provider.TSendDone {
				send, recv = tsendOp(to, 3, 1, out.all()), trecvOp(3, 0, 2, in.all())
			}
			a.post(send.with(provider.DeliveryComplete, 0))
			a.none(fmt.Sprintf("a delivery-complete send of %d bytes that nobody has received", n))
			b.post(recv)
			a.one(kind, 1)
			b.holds("the buffer at the completion of its send", in.all(), seed)
			b.one(recv.Kind, 2)
		}
	}
}

// testCancel: a cancelled operation completes once, with ErrCancelled, and takes nothing.
func testCancel(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	b.knows(a)
	if b.cancel(12345) {
		e.Fatalf("an operation that never was can be cancelled")
	}
	in := b.heap(4*100, 0)
	posts := []opSpec{recvOp(1, in.part(0, 100)), recvOp(2, in.part(100, 100)), recvOp(3, in.part(200, 100))}
	if e.has(provider.Tagged) {
		posts = append(posts, trecvOp(1, 0, 4, in.part(300, 100)))
	}
	if e.has(provider.DirectedRecv) {
		op := recvOp(5, in.part(0, 100)).with(provider.Directed, 0)
		op.Peer = b.knows(a)
		posts = append(posts, op)
	}
	for _, op := range posts {
		b.post(op)
	}
	for _, op := range posts {
		if op.Context == 3 {
			continue
		}
		if !b.cancel(op.Context) {
			e.Fatalf("a posted receive cannot be cancelled: context %d", op.Context)
		}
		b.fails(op.Kind, op.Context, provider.ErrCancelled)
		if b.cancel(op.Context) {
			e.Fatalf("an operation was cancelled twice")
		}
	}
	// The one in the middle is still there and takes the message.
	a.post(sendOp(to, 9, a.heap(100, 7).all()))
	a.one(provider.SendDone, 9)
	b.one(provider.RecvDone, 3)
	b.holds("the receive that was not cancelled", in.part(200, 100), 7)
	e.cancelRace(a, b, to)
}

// cancelRace cancels receives while messages come in: each message arrives, each receive ends once.
func (e *env) cancelRace(a, b *side, to provider.Peer) {
	e.Helper()
	const n = 60
	out, in := a.heap(64, 1), b.heap(64*2*n, 0)
	for i := range n {
		b.post(recvOp(uint64(1000+i), in.part(64*i, 64)))
	}
	for range n / 2 {
		a.start(request{Verb: "post", Op: ptr(sendOp(to, 9, out.all()))})
		if _, err := a.join(); err != nil {
			e.Fatal(err)
		}
		b.cancel(uint64(1000 + e.rnd.IntN(n)))
	}
	a.take(n / 2)
	// As many receives again make sure that every message finds one.
	for i := range n {
		b.post(recvOp(uint64(2000+i), in.part(64*(n+i), 64)))
	}
	more := e.settle(a, b, to)
	for i := range n { // all that is left
		b.cancel(uint64(1000 + i))
		b.cancel(uint64(2000 + i))
	}
	got, seen := 0, map[uint64]bool{}
	for _, c := range b.take(2*n + more) {
		if c.Context == settled {
			continue
		}
		if seen[c.Context] {
			e.Fatalf("a second end: %s", show(c))
		}
		seen[c.Context] = true
		switch {
		case c.Err == nil:
			got++
		case !errors.Is(c.Err, provider.ErrCancelled):
			e.Fatalf("got %s", show(c))
		}
	}
	if got != n/2 {
		e.Fatalf("%d messages were sent and completed, %d were received", n/2, got)
	}
}

// settled is the context of the messages of settle.
const settled = 99

// settle returns when the messages that a has sent have been matched: a tagged one behind them has arrived. It
// returns how many completions that adds at b.
func (e *env) settle(a, b *side, to provider.Peer) int {
	e.Helper()
	if !e.has(provider.Tagged) {
		pause(100 * time.Millisecond)
		return 0
	}
	out, in := a.heap(1, 0), b.heap(1, 0)
	b.post(trecvOp(99, 0, settled, in.all()))
	a.post(tsendOp(to, 99, settled, out.all()).with(provider.DeliveryComplete, 0))
	a.one(provider.TSendDone, settled)
	return 1
}

func ptr[T any](v T) *T { return &v }
