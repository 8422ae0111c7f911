package fabrictest

import (
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// closedRoom bounds the arenas of testMemoryClose: what is kept back too long does not fit.
const closedRoom = 8 << 20

// testMemoryClose: memory that its owner closes while operations of its own are posted on it stays until they have ended, and is used
// again then. They end as if it were open. For peers it is closed at once.
func testMemoryClose(e *env) {
	spec := e.spec()
	spec.Memory = closedRoom
	a, b := e.pairOf(spec, spec)
	to, from := a.knows(b), b.knows(a)
	e.message(a, b, to, from, 8, false)
	for _, n := range []int{100, 5000, 60000, 300000, 1 << 20} {
		rounds := testutil.Count(e, 1, 2)
		if n == 1<<20 {
			rounds = testutil.Count(e, 7, 20) // more than there is room for, though only one block of each were kept
		}
		c := closings{e: e, a: a, b: b, to: to, n: n, near: a.heap(n, 3), far: b.heap(n, 0)}
		if e.has(provider.RMA) {
			c.target = b.private(n, 4, readWrite)
		}
		for range rounds {
			c.receive()
			c.multi()
			c.send(func(m mem) seg { return m.all() })
			c.send(func(m mem) seg { return m.raw(0, n) })
			c.rma()
			c.cancel()
		}
		if e.has(provider.RMA) {
			b.do(request{Verb: "unkey", Buf: c.target.id})
		}
	}
	e.closedAtomic(a, b, to)
	in := b.arena(1<<20, 1, 0)
	b.post(recvOp(2, in.all()))
	done := b.closes(in)
	b.do(request{Verb: "close-endpoint"})
	b.fails(provider.RecvDone, 2, provider.ErrClosed)
	done()
}

// closes takes memory back, and takes what may be given out in its place. The function that it returns fails the test if that
// has changed.
func (s *side) closes(list ...mem) (done func()) {
	s.e.Helper()
	for _, m := range list {
		s.do(request{Verb: "unkey", Buf: m.id})
	}
	var others []mem
	for _, m := range slices.Concat(list, list) {
		others = append(others, s.arena(m.n, 9, 0))
	}
	return func() {
		s.e.Helper()
		for _, m := range others {
			s.holds("memory that came after what was closed", m.all(), 9)
			s.do(request{Verb: "unkey", Buf: m.id})
		}
	}
}

// closings closes memory of n bytes under one operation after the other, of a to b.
type closings struct {
	e         *env
	a, b      *side
	to        provider.Peer
	n         int
	near, far mem // heap of either side
	target    mem // of b, for reads and writes
}

// receive closes memory in which a receive is posted. No peer can read it then.
func (c closings) receive() {
	c.e.Helper()
	in := c.b.arena(c.n, 1, provider.PeerRead)
	c.b.post(recvOp(2, in.all()))
	done := c.b.closes(in)
	if c.e.has(provider.RMA) {
		c.e.refused(c.a, "a read of memory that is closed and not free", rmaOp(provider.ReadDone, c.to, in, 0, 3, c.a.heap(8, 0).all()), provider.ErrKey)
	}
	c.a.post(sendOp(c.to, 1, c.near.all()))
	c.a.one(provider.SendDone, 1)
	if got := c.b.one(provider.RecvDone, 2); got.Len != uint64(c.n) {
		c.e.Fatalf("%d bytes for memory that was closed came as %s", c.n, show(got))
	}
	done()
}

// multi closes memory in which many messages are received.
func (c closings) multi() {
	c.e.Helper()
	if !c.e.has(provider.MultiRecv) {
		return
	}
	in := c.b.arena(c.n, 1, 0)
	c.b.post(recvOp(2, in.all()).with(provider.Multi, 0))
	done := c.b.closes(in)
	for i := range 2 {
		c.a.post(sendOp(c.to, 1, c.near.part(0, c.n/2)))
		c.a.one(provider.SendDone, 1)
		got := c.b.one(provider.RecvDone, 2)
		if last := got.Flags&provider.MultiDone != 0; got.Len != uint64(c.n/2) || last != (i == 1 || c.n/2 < 64) {
			c.e.Fatalf("message %d of %d bytes for memory that was closed came as %s", i, c.n/2, show(got))
		} else if last {
			break
		}
	}
	done()
}

// send closes memory of which a message is sent, before anybody receives it.
func (c closings) send(part func(m mem) seg) {
	c.e.Helper()
	seed := c.e.fresh()
	out := c.a.arena(c.n, seed, 0)
	c.a.post(sendOp(c.to, 1, part(out)).with(provider.DeliveryComplete, 0))
	done := c.a.closes(out)
	c.b.post(recvOp(2, c.far.all()))
	c.a.one(provider.SendDone, 1)
	c.b.one(provider.RecvDone, 2)
	c.b.holds("a message from memory that was closed", c.far.all(), seed)
	done()
}

// rma closes memory that is read into, and written from.
func (c closings) rma() {
	c.e.Helper()
	if !c.e.has(provider.RMA) {
		return
	}
	seed := c.e.fresh()
	out, in := c.a.arena(c.n, seed, 0), c.a.arena(c.n, 1, 0)
	c.b.do(request{Verb: "quiet"}) // in manual mode it serves nobody now
	c.a.post(rmaOp(provider.ReadDone, c.to, c.target, 0, 1, in.all()))
	c.a.post(rmaOp(provider.WriteDone, c.to, c.target, 0, 2, out.all()).with(provider.DeliveryComplete, 0))
	done := c.a.closes(in, out)
	c.b.do(request{Verb: "collect", N: int(c.e.way)})
	c.a.each(2)
	c.b.holds("what was written from memory that was closed", c.target.all(), seed)
	done()
}

// cancel closes memory in which a receive is posted that ends without a message.
func (c closings) cancel() {
	c.e.Helper()
	in := c.b.arena(c.n, 1, 0)
	c.b.post(recvOp(2, in.all()))
	done := c.b.closes(in)
	if !c.b.cancel(2) {
		c.e.Fatalf("a receive has gone with its memory")
	}
	c.b.fails(provider.RecvDone, 2, provider.ErrCancelled)
	done()
}

// closedAtomic closes memory that atomic operations take their operands from, and bring the old elements to.
func (e *env) closedAtomic(a, b *side, to provider.Peer) {
	e.Helper()
	if !e.has(provider.Atomics) {
		return
	}
	target := b.private(512, 0, readWrite)
	x, old := a.arena(512, 1, 0), a.arena(512, 1, 0)
	result := old.raw(0, 512)
	b.do(request{Verb: "quiet"})
	a.post(opSpec{
		Kind: provider.AtomicDone, Peer: to, Key: target.key, Offset: target.at(0), Code: provider.AtomicWrite, Type: provider.Uint64,
		Segs: []seg{x.all()}, Result: &result, Context: 1,
	})
	done := a.closes(x, old)
	b.do(request{Verb: "collect", N: int(e.way)})
	a.one(provider.AtomicDone, 1)
	b.holds("what an atomic operation took from memory that was closed", target.all(), 1)
	done()
}
