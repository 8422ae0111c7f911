package fabrictest

import (
	"github.com/weft-fabric/weft/fabric/provider"
)

// tagMask are the bits of a tag that the provider transports.
func (e *env) tagMask() uint64 {
	if n := e.info.Limits.TagBits; n > 0 && n < 64 {
		return 1<<n - 1
	}
	return ^uint64(0)
}

// testTagged: a message goes to the first receive whose tag fits, ignored bits aside; others stay.
func testTagged(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	b.knows(a)
	mask := e.tagMask()
	top := mask &^ (mask >> 1)
	for _, c := range []struct {
		sent, tag, ignore uint64
		match             bool
	}{
		{5, 5, 0, true}, {5, 6, 0, false}, {5, 4, 1, true}, {5, 2, 1, false}, {0, 0, 0, true},
		{mask, mask, 0, true}, {mask, 0, mask, true}, {top | 3, top, 3, true}, {top | 3, 0, 3, false}, {mask &^ 1, mask, 1, true},
	} {
		for _, late := range []bool{false, true} {
			for _, n := range []int{0, 16, 6000, 100000} {
				e.tagCase(a, b, to, n, late, c.sent&mask, c.tag&mask, c.ignore, c.match)
			}
		}
	}
	e.tagsOutOfOrder(a, b, to)
	e.tagsApart(a, b, to)
}

func (e *env) tagCase(a, b *side, to provider.Peer, n int, late bool, sent, tag, ignore uint64, match bool) {
	e.Helper()
	seed := e.fresh()
	out, in, rest := a.heap(n, seed), b.heap(n, seed+1), b.heap(n, seed+2)
	recv := trecvOp(tag, ignore, 2, in.all())
	if !late {
		b.post(recv)
	}
	a.post(tsendOp(to, sent, 1, out.all()))
	if late {
		b.post(recv)
	}
	if !match {
		// The exact tag finds it, although it was posted later.
		b.post(trecvOp(sent, 0, 3, rest.all()))
		c := b.one(provider.TRecvDone, 3)
		if c.Tag != sent {
			e.Fatalf("tag %#x came as %s", sent, show(c))
		}
		b.holds("a tagged message", rest.all(), seed)
		if !b.cancel(2) {
			e.Fatalf("a receive of tag %#x ignoring %#x is gone after a message of tag %#x", tag, ignore, sent)
		}
		b.fails(provider.TRecvDone, 2, provider.ErrCancelled)
	} else {
		c := b.one(provider.TRecvDone, 2)
		if c.Tag != sent || c.Len != uint64(n) {
			e.Fatalf("tag %#x of %d bytes came as %s", sent, n, show(c))
		}
		b.holds("a tagged message", in.all(), seed)
	}
	a.one(provider.TSendDone, 1)
}

// tagsOutOfOrder receives in another order than was sent, with several messages of each tag.
func (e *env) tagsOutOfOrder(a, b *side, to provider.Peer) {
	e.Helper()
	const n = 32
	seed := e.fresh()
	out, in := a.heap(n*6000, seed), b.heap(n*6000, 0)
	for i := range n {
		a.post(tsendOp(to, uint64(i%8), uint64(i), out.part(i*6000, 6000)))
	}
	count := map[uint64]int{}
	want := map[uint64]int{} // context to message
	for at, i := range e.shuffled(n) {
		tag := uint64(i % 8)
		want[uint64(at)] = count[tag]*8 + int(tag)
		count[tag]++
		b.post(trecvOp(tag, 0, uint64(at), in.part(at*6000, 6000)))
	}
	a.each(n)
	whole := a.get(out.all())
	for at := range b.each(n) {
		i := want[at]
		if got := b.get(in.part(int(at)*6000, 6000)); string(got) != string(whole[i*6000:(i+1)*6000]) {
			e.Fatalf("receive %d of tag %d did not get message %d: the messages of a tag are out of order", at, i%8, i)
		}
	}
}

// tagsApart: untagged messages and tagged receives do not meet.
func (e *env) tagsApart(a, b *side, to provider.Peer) {
	e.Helper()
	out, in := a.heap(16, 1), b.heap(64, 2)
	b.post(trecvOp(0, ^uint64(0), 1, in.part(0, 16)))
	b.post(recvOp(2, in.part(16, 16)))
	a.post(sendOp(to, 3, out.all()))
	b.one(provider.RecvDone, 2)
	a.post(tsendOp(to, 0, 4, out.all()))
	b.one(provider.TRecvDone, 1)
	a.each(2)
}

// testPeek looks at messages, takes them out, and drops them.
func testPeek(e *env) {
	a, b := e.pair()
	to, from := a.knows(b), b.knows(a)
	peek := func(tag, context uint64, more provider.Flags) opSpec {
		return trecvOp(tag, 0, context).with(provider.Peek|more, 0)
	}
	// Nothing there: at once, and again.
	for context := range uint64(2) {
		b.post(peek(1, context, 0))
		b.fails(provider.TRecvDone, context, provider.ErrNoMessage)
	}
	for _, n := range []int{0, 100, 6000, 200000} {
		seed := e.fresh()
		out, in := a.heap(n, seed), b.heap(n, seed+1)
		send := tsendOp(to, 9, 1, out.all())
		want := provider.Completion{Kind: provider.TRecvDone, Len: uint64(n), Tag: 9, Source: from}
		if e.has(provider.RemoteCQData) {
			send = send.with(provider.RemoteData, 0xabcd)
			want.Data, want.Flags = 0xabcd, provider.HasData
		}
		// Two messages: one is peeked and received, the next claimed and received.
		a.post(send)
		e.found(b, peek(9, 2, 0), want)
		e.found(b, peek(9, 3, 0), want) // it is still there
		b.post(trecvOp(9, 0, 4, in.all()))
		want.Context = 4
		e.same("the receive after a peek", b.one(provider.TRecvDone, 4), want)
		b.holds("a message that was peeked at", in.all(), seed)
		a.one(provider.TSendDone, 1)

		a.post(send)
		claimed := want
		claimed.Flags |= provider.Claimed
		e.found(b, peek(9, 5, provider.Claim), claimed)
		b.post(peek(9, 6, 0))
		b.fails(provider.TRecvDone, 6, provider.ErrNoMessage) // claimed ones are not found
		b.fill(in.all(), seed+1)
		b.post(trecvOp(9, 0, 5, in.all()).with(provider.Claim, 0))
		if c := b.one(provider.TRecvDone, 5); c.Len != uint64(n) || c.Tag != 9 || c.Source != from {
			e.Fatalf("a claimed message came as %s", show(c))
		}
		b.holds("a claimed message", in.all(), seed)
		a.one(provider.TSendDone, 1)

		e.discard(a, b, send, peek)
	}
}

// found repeats a peek until the message has arrived, which nothing but a receive announces.
func (e *env) found(b *side, op opSpec, want provider.Completion) {
	e.Helper()
	want.Context = op.Context
	e.eventually("a message that was sent is found by a peek", func() bool {
		b.post(op)
		c := b.take(1)[0]
		if c.Err == nil {
			e.same("a peek", c, want)
			return true
		}
		e.same("a peek at nothing", provider.Completion{Context: c.Context, Kind: c.Kind, Err: c.Err},
			provider.Completion{Context: op.Context, Kind: provider.TRecvDone, Err: provider.ErrNoMessage})
		return false
	})
}

// discard drops one message by peek, and one that was claimed.
func (e *env) discard(a, b *side, send opSpec, peek func(tag, context uint64, more provider.Flags) opSpec) {
	e.Helper()
	drop := func(op opSpec) {
		e.eventually("a message that was sent is found to be dropped", func() bool {
			b.post(op)
			c := b.take(1)[0]
			return c.Err == nil && c.Context == op.Context
		})
	}
	a.post(send)
	drop(peek(9, 7, provider.Discard))
	a.one(provider.TSendDone, 1)
	a.post(send)
	drop(peek(9, 8, provider.Claim))
	b.post(trecvOp(9, 0, 8).with(provider.Claim|provider.Discard, 0))
	b.one(provider.TRecvDone, 8)
	a.one(provider.TSendDone, 1)
	b.post(peek(9, 9, 0))
	b.fails(provider.TRecvDone, 9, provider.ErrNoMessage)
}

// testDirected: a receive for one peer takes no other's message.
func testDirected(e *env) {
	b := e.side(0)
	b.open(e.spec())
	var senders []*side
	var to, from []provider.Peer
	for i := range 3 {
		s := e.side(i + 1)
		s.open(e.spec())
		senders, to, from = append(senders, s), append(to, s.knows(b)), append(from, b.knows(s))
	}
	for _, tagged := range []bool{false, true} {
		if tagged && !e.has(provider.Tagged) {
			continue
		}
		for _, late := range []bool{false, true} {
			for _, n := range []int{64, 100000} {
				e.directedRound(b, senders, to, from, tagged, late, n)
			}
		}
	}
}

func (e *env) directedRound(b *side, senders []*side, to, from []provider.Peer, tagged, late bool, n int) {
	e.Helper()
	in := b.heap(4*n, 0)
	seeds := []uint64{e.fresh(), e.fresh(), e.fresh()}
	recv, send := recvOp, func(p provider.Peer, parts ...seg) opSpec { return sendOp(p, 9, parts...) }
	if tagged {
		recv = func(c uint64, parts ...seg) opSpec { return trecvOp(3, 0, c, parts...) }
		send = func(p provider.Peer, parts ...seg) opSpec { return tsendOp(p, 3, 9, parts...) }
	}
	receive := func() {
		// In another order than they send; the last takes what the first sends a second time.
		for slot, i := range []int{2, 1, 0} {
			op := recv(uint64(i), in.part(slot*n, n)).with(provider.Directed, 0)
			op.Peer = from[i]
			b.post(op)
		}
		b.post(recv(3, in.part(3*n, n)))
	}
	if !late {
		receive()
	}
	for _, i := range []int{0, 0, 1, 2} {
		m := senders[i].heap(n, seeds[i])
		senders[i].post(send(to[i], m.all()))
	}
	if late {
		receive()
	}
	got := b.each(4)
	for i := range 3 {
		if c := got[uint64(i)]; c.Source != from[i] {
			e.Fatalf("the receive for peer %v took a message: %s", from[i], show(c))
		}
		b.holds("a directed message", in.part((2-i)*n, n), seeds[i])
	}
	if c := got[3]; c.Source != from[0] {
		e.Fatalf("the receive for all took %s", show(c))
	}
	senders[0].take(2)
	senders[1].take(1)
	senders[2].take(1)
}

// testMulti: one buffer takes messages until little of it is left.
func testMulti(e *env) {
	sb := e.spec()
	sb.MinMulti = 256
	a, b := e.pairOf(e.spec(), sb)
	to, from := a.knows(b), b.knows(a)
	const room = 64 << 10
	for _, late := range []bool{false, true} {
		e.multiRound(a, b, to, from, late, []int{100, 0, 5000, 64, 30000, 4096, 20000, 6100})
		e.multiRound(a, b, to, from, late, []int{room - 255})
		e.multiRound(a, b, to, from, late, []int{room})
	}
	e.multiCancel(a, b, to)
}

// multiRound sends messages that use a buffer of 64 KiB up.
func (e *env) multiRound(a, b *side, to, from provider.Peer, late bool, lengths []int) {
	e.Helper()
	in := b.heap(64<<10, 0)
	multi := recvOp(5, in.all()).with(provider.Multi, 0)
	if !late {
		b.post(multi)
	}
	var seeds []uint64
	for _, n := range lengths {
		seeds = append(seeds, e.fresh())
		a.post(sendOp(to, 1, a.heap(n, seeds[len(seeds)-1]).all()))
	}
	if late {
		b.post(multi)
	}
	var end, i int
	for released := false; !released; {
		c := b.one(provider.RecvDone, 5)
		released = c.Flags&provider.MultiDone != 0
		if i == len(lengths) {
			if !released || c.Len != 0 {
				e.Fatalf("after all messages of a multi-receive came %s", show(c))
			}
			break
		}
		if c.Len != uint64(lengths[i]) || c.Source != from || int(c.Offset) < end {
			e.Fatalf("message %d of %d bytes into a multi-receive, used up to %d, came as %s", i, lengths[i], end, show(c))
		}
		b.holds("a message of a multi-receive", in.part(int(c.Offset), int(c.Len)), seeds[i])
		end = int(c.Offset + c.Len)
		i++
		if released && i < len(lengths) {
			e.Fatalf("the buffer was given back with %d of 64 KiB used", end)
		}
	}
	a.take(len(lengths))
}

// multiCancel takes a buffer back.
func (e *env) multiCancel(a, b *side, to provider.Peer) {
	e.Helper()
	in := b.heap(64<<10, 0)
	b.post(recvOp(6, in.all()).with(provider.Multi, 0))
	a.post(sendOp(to, 1, a.heap(64, 3).all()))
	b.one(provider.RecvDone, 6)
	a.one(provider.SendDone, 1)
	if !b.cancel(6) {
		e.Fatalf("a multi-receive with room cannot be cancelled")
	}
	if c := b.fails(provider.RecvDone, 6, provider.ErrCancelled); c.Flags&provider.MultiDone == 0 {
		e.Fatalf("the end of a multi-receive does not give the buffer back: %s", show(c))
	}
}
