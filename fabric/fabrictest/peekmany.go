package fabrictest

import "github.com/weft-fabric/weft/fabric/provider"

// testPeekMany (F57): among many messages a peek sees what its mask and its peer let it see, and each claim keeps its own
// message until the receive that names it.
func testPeekMany(e *env) {
	b := e.side(0)
	b.open(e.spec())
	var to, from [2]provider.Peer
	var senders [2]*side
	for i := range senders {
		s := e.side(i + 1)
		s.open(e.spec())
		senders[i], to[i], from[i] = s, s.knows(b), b.knows(s)
	}
	sent := []struct{ by, tag, n int }{{0, 0x10, 100}, {1, 0x20, 200}, {0, 0x30, 5000}, {1, 0x41, 90000}}
	seed := e.fresh()
	for i, m := range sent {
		s := senders[m.by]
		s.post(tsendOp(to[m.by], uint64(m.tag), 1, s.heap(m.n, seed+uint64(i)).all()))
	}
	end := func(i int) provider.Completion {
		m := sent[i]
		return provider.Completion{Kind: provider.TRecvDone, Len: uint64(m.n), Tag: uint64(m.tag), Source: from[m.by]}
	}
	peek := func(tag, ignore, context uint64) opSpec {
		return trecvOp(tag, ignore, context).with(provider.Peek, 0)
	}
	for i, m := range sent { // until all are here
		e.found(b, peek(uint64(m.tag), 0, 2), end(i))
	}
	e.found(b, peek(0x11, 1, 3), end(0))
	e.found(b, peek(0x2f, 0xf, 3), end(1))
	b.post(peek(0x11, 0, 3))
	b.fails(provider.TRecvDone, 3, provider.ErrNoMessage)
	if e.has(provider.DirectedRecv) {
		e.peekDirected(b, peek, from[1], end)
	}
	for i, m := range sent {
		want := end(i)
		want.Flags = provider.Claimed
		e.found(b, peek(uint64(m.tag), 0, uint64(10+i)).with(provider.Claim, 0), want)
	}
	for _, i := range []int{2, 0, 3, 1} {
		in := b.heap(sent[i].n, 0)
		b.post(trecvOp(0, 0, uint64(10+i), in.all()).with(provider.Claim, 0))
		want := end(i)
		want.Context = uint64(10 + i)
		e.same("a claimed message", b.one(provider.TRecvDone, want.Context), want)
		b.holds("one of several claimed messages", in.all(), seed+uint64(i))
	}
	senders[0].take(2)
	senders[1].take(2)
}

// peekDirected looks for messages of one peer, which sent the messages 1 and 3.
func (e *env) peekDirected(b *side, peek func(tag, ignore, context uint64) opSpec, by provider.Peer, end func(int) provider.Completion) {
	e.Helper()
	of := func(tag, ignore uint64) opSpec {
		op := peek(tag, ignore, 4).with(provider.Directed, 0)
		op.Peer = by
		return op
	}
	e.found(b, of(0, ^uint64(0)&e.tagMask()), end(1))
	e.found(b, of(0x41, 0), end(3))
	b.post(of(0x10, 0)) // it is there, and of another one
	b.fails(provider.TRecvDone, 4, provider.ErrNoMessage)
}
