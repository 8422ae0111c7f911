package fabrictest

import (
	"errors"
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// Short forms of the operations that tests post.

func recvOp(context uint64, parts ...seg) opSpec {
	return opSpec{Kind: provider.RecvDone, Segs: parts, Context: context}
}

func sendOp(to provider.Peer, context uint64, parts ...seg) opSpec {
	return opSpec{Kind: provider.SendDone, Segs: parts, Peer: to, Context: context}
}

func trecvOp(tag, ignore, context uint64, parts ...seg) opSpec {
	return opSpec{Kind: provider.TRecvDone, Segs: parts, Tag: tag, Ignore: ignore, Context: context}
}

func tsendOp(to provider.Peer, tag, context uint64, parts ...seg) opSpec {
	return opSpec{Kind: provider.TSendDone, Segs: parts, Peer: to, Tag: tag, Context: context}
}

// with adds flags, and data if they say so.
func (op opSpec) with(f provider.Flags, data uint64) opSpec {
	op.Flags |= f
	op.Data = data
	return op
}

// testMessages sends messages of every size, with the receive posted before and after, from every
// kind of memory into every kind, and checks both completions and every byte.
func testMessages(e *env) {
	a, b := e.pair()
	to, from := a.knows(b), b.knows(a)
	sizes := e.sizes(1 << 20)
	for late := range 2 {
		for _, n := range sizes {
			e.message(a, b, to, from, n, late == 1)
			e.message(b, a, from, to, n, late == 1)
		}
	}
	e.memories(a, b, to, from)
}

// message sends n bytes from a to b and checks all of it.
func (e *env) message(a, b *side, to, from provider.Peer, n int, late bool) {
	e.Helper()
	seed := e.fresh()
	out, in := a.heap(n, seed), b.heap(n+16, seed+1)
	e.deliver(a, b, to, from, out, in, seed, late)
}

// deliver sends all of out into the start of in.
func (e *env) deliver(a, b *side, to, from provider.Peer, out, in mem, seed uint64, late bool) {
	e.Helper()
	recv, send := recvOp(seed+2, in.all()), sendOp(to, seed+1, out.all())
	if late {
		a.post(send)
		b.post(recv)
	} else {
		b.post(recv)
		a.post(send)
	}
	e.same("the send", a.one(provider.SendDone, seed+1), provider.Completion{
		Context: seed + 1, Kind: provider.SendDone, Len: uint64(out.n), Source: to,
	})
	e.same("the receive", b.one(provider.RecvDone, seed+2), provider.Completion{
		Context: seed + 2, Kind: provider.RecvDone, Len: uint64(out.n), Source: from,
	})
	b.holds("what was received", in.part(0, out.n), seed)
	rest := b.get(in.part(out.n, in.n-out.n))
	if want := pattern(in.n, seed+1)[out.n:]; len(rest) > 0 && !slices.Equal(rest, want) && in.n-out.n == 16 {
		e.Fatalf("a message of %d bytes changed the buffer behind it", out.n)
	}
}

// same compares two completions.
func (e *env) same(what string, got, want provider.Completion) {
	e.Helper()
	if got.Err == nil && want.Err != nil || got.Err != nil && !errors.Is(got.Err, want.Err) {
		e.Fatalf("%s: got %s, want the error %v", what, show(got), want.Err)
	}
	got.Err, want.Err = nil, nil
	if got != want {
		e.Fatalf("%s:\n got %s\nwant %s", what, show(got), show(want))
	}
}

// memories sends from and to each kind of memory that a program can have.
func (e *env) memories(a, b *side, to, from provider.Peer) {
	e.Helper()
	kinds := []string{"heap", "register"}
	if e.has(provider.Arena) {
		kinds = append(kinds, "alloc")
	}
	for _, src := range kinds {
		for _, dst := range kinds {
			for _, n := range []int{64, 5000, 70000, 300000} {
				seed := e.fresh()
				out, in := a.mem(src, n, provider.PeerRead), b.mem(dst, n+16, 0)
				a.fill(out.all(), seed)
				b.fill(in.all(), seed+1)
				e.deliver(a, b, to, from, out, in, seed, n%3 == 0)
				// The same memory as raw bytes.
				b.post(recvOp(2, in.raw(0, n)))
				a.post(sendOp(to, 1, out.raw(0, n)))
				a.one(provider.SendDone, 1)
				b.one(provider.RecvDone, 2)
				b.holds("what was received as raw bytes", in.part(0, n), seed)
			}
		}
	}
}

// testTruncation: the receive ends with ErrTruncated and as much as fits; the send knows nothing of it, and the next
// message is whole.
func testTruncation(e *env) {
	a, b := e.pair()
	to, from := a.knows(b), b.knows(a)
	for _, tagged := range []bool{false, true} {
		if tagged && !e.has(provider.Tagged) {
			continue
		}
		for _, n := range []int{1, 64, 4096, 5000, 70000, 300000} {
			for _, late := range []bool{false, true} {
				e.truncate(a, b, to, tagged, n, late)
			}
		}
	}
	e.message(a, b, to, from, 3000, false)
}

func (e *env) truncate(a, b *side, to provider.Peer, tagged bool, n int, late bool) {
	e.Helper()
	seed, fit := e.fresh(), n/2
	out, in := a.heap(n, seed), b.heap(n, seed+1)
	send, recv := sendOp(to, 1, out.all()), recvOp(2, in.part(0, fit))
	if tagged {
		send, recv = tsendOp(to, 7, 1, out.all()), trecvOp(7, 0, 2, in.part(0, fit))
	}
	if late {
		a.post(send)
		b.post(recv)
	} else {
		b.post(recv)
		a.post(send)
	}
	a.one(send.Kind, 1)
	c := b.fails(recv.Kind, 2, provider.ErrTruncated)
	if c.Len != uint64(fit) {
		e.Fatalf("%d bytes into %d: Len is %d, the bytes that were placed are %d", n, fit, c.Len, fit)
	}
	if te, ok := errors.AsType[*provider.TruncatedError](c.Err); !ok || te.Message != uint64(n) || te.Room != uint64(fit) {
		e.Fatalf("%d bytes into %d: the error is %+v: %s", n, fit, te, c.Err)
	}
	if c.Tag != recv.Tag || c.Source == 0 {
		e.Fatalf("a truncated message of tag %#x does not say its tag and its sender: %s", recv.Tag, show(c))
	}
	b.holds("what fits", in.part(0, fit), seed)
	if rest := b.get(in.part(fit, n-fit)); !slices.Equal(rest, pattern(n, seed+1)[fit:]) {
		e.Fatalf("%d bytes into %d: bytes behind the buffer were written", n, fit)
	}
}

// testVectored cuts both buffers into pieces, empty ones among them.
func testVectored(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	limit := e.info.Limits.Segments
	for _, n := range []int{10, 4096, 9000, 200000} {
		for _, pieces := range []int{2, 3, 4, 8} {
			if limit > 0 && pieces > limit {
				continue
			}
			seed := e.fresh()
			out, in := a.heap(2*n, seed+1), b.heap(2*n, seed+2)
			from, outParts := e.cut(out, n, pieces)
			into, inParts := e.cut(in, n, pieces)
			at := 0
			whole := pattern(n, seed)
			for _, p := range outParts {
				a.set(out, p.Off, whole[at:at+p.N])
				at += p.N
			}
			b.post(recvOp(2, inParts...))
			a.post(sendOp(to, 1, outParts...))
			a.one(provider.SendDone, 1)
			if c := b.one(provider.RecvDone, 2); c.Len != uint64(n) {
				e.Fatalf("%v into %v: %s", from, into, show(c))
			}
			var got []byte
			for _, p := range inParts {
				got = append(got, b.get(p)...)
			}
			if at := wrong(got, seed, 0); at >= 0 {
				e.Fatalf("%v into %v: byte %d is wrong", from, into, at)
			}
		}
	}
	if limit > 0 {
		out := a.heap(limit+1, 1)
		var parts []seg
		for i := range limit + 1 {
			parts = append(parts, out.part(i, 1))
		}
		if err := a.tryPost(sendOp(to, 1, parts...)); !errors.Is(err, provider.ErrTooLong) && !errors.Is(err, provider.ErrInvalid) {
			e.Fatalf("%d segments where the limit is %d: %v", limit+1, limit, err)
		}
	}
}

// cut makes pieces of a buffer of 2n bytes whose lengths add up to n, in any order, with gaps.
func (e *env) cut(m mem, n, pieces int) (lengths []int, parts []seg) {
	at := []int{0, n}
	for range pieces - 1 {
		at = append(at, e.rnd.IntN(n+1))
	}
	slices.Sort(at)
	off := 0
	for i := range pieces {
		l := at[i+1] - at[i]
		gap := e.rnd.IntN(n/pieces + 1)
		parts = append(parts, m.part(off+gap, l))
		lengths = append(lengths, l)
		off += gap + l
	}
	return lengths, parts
}

// testSelf: an endpoint sends to its own address.
func testSelf(e *env) {
	a := e.side(0)
	a.open(e.spec())
	e.alone(a, a.knows(a))
}

// alone has a side talk to itself, which it knows as me.
func (e *env) alone(a *side, me provider.Peer) {
	e.Helper()
	for _, n := range e.sizes(300000) {
		for _, late := range []bool{false, true} {
			seed := e.fresh()
			out, in := a.heap(n, seed), a.heap(n, seed+1)
			if late {
				a.post(sendOp(me, 1, out.all()))
			}
			a.post(recvOp(2, in.all()))
			if !late {
				a.post(sendOp(me, 1, out.all()))
			}
			got := a.each(2)
			if c := got[2]; c.Kind != provider.RecvDone || c.Len != uint64(n) || c.Source != me {
				e.Fatalf("%d bytes to oneself came as %s", n, show(c))
			}
			a.holds("what was sent to oneself", in.all(), seed)
		}
	}
	if e.has(provider.RMA) {
		m, l := a.private(9000, 5, provider.PeerRead|provider.PeerWrite), a.heap(9000, 6)
		a.post(rmaOp(provider.ReadDone, me, m, 0, 3, l.all()))
		a.one(provider.ReadDone, 3)
		a.holds("what was read from oneself", l.all(), 5)
	}
}

// testMany has many messages of mixed kinds under way in both directions at once.
func testMany(e *env) {
	a, b := e.pair()
	to, from := a.knows(b), b.knows(a)
	for _, tagged := range []bool{false, true} {
		if tagged && !e.has(provider.Tagged) {
			continue
		}
		count := testutil.Count(e, 120, 400)
		sizes := []int{8, 100, 4000, 5000, 20000, 70000, 0}
		fa := flow{Kind: "all", Peers: []provider.Peer{to}, Seeds: []uint64{1 << 50}, Seed: 1 << 51, Count: count, Sizes: sizes, Tagged: tagged, Data: e.has(provider.RemoteCQData)}
		fb := fa
		fb.Peers, fb.Seeds, fb.Seed = []provider.Peer{from}, []uint64{1 << 51}, 1<<50
		e.flows(a, fa, b, fb)
	}
}

// flows runs two at the same time.
func (e *env) flows(a *side, fa flow, b *side, fb flow) {
	e.Helper()
	b.start(request{Verb: "flow", Flow: &fb})
	a.start(request{Verb: "flow", Flow: &fa})
	_, errA := a.join()
	_, errB := b.join()
	if err := errors.Join(errA, errB); err != nil {
		e.Fatal(err)
	}
}
