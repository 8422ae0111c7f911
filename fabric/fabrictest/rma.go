package fabrictest

import (
	"errors"
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
)

// at is the offset by which peers name a byte of m.
func (m mem) at(off int) uint64 { return m.base + uint64(off) }

// rmaOp reads or writes memory of a peer from off on.
func rmaOp(k provider.Kind, to provider.Peer, m mem, off int, context uint64, parts ...seg) opSpec {
	return opSpec{Kind: k, Peer: to, Key: m.key, Offset: m.at(off), Segs: parts, Context: context}
}

const readWrite = provider.PeerRead | provider.PeerWrite

// remoteKinds are the kinds of memory that RMA can be towards.
func (e *env) remoteKinds() []string {
	if e.has(provider.Arena) {
		return []string{"register", "alloc"}
	}
	return []string{"register"}
}

// testRMA reads and writes at many offsets and lengths, with every kind of memory on both sides.
func testRMA(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	locals := slices.Concat([]string{"heap"}, e.remoteKinds())
	for _, remote := range e.remoteKinds() {
		const room = 2 << 20
		target := b.mem(remote, room, readWrite)
		for _, local := range locals {
			l := a.mem(local, room, 0)
			for _, n := range e.rmaSizes() {
				for _, off := range rmaOffsets(room, n) {
					e.rma(a, b, to, l, target, off, n)
				}
			}
		}
	}
}

// rmaOffsets are where n bytes are moved: all of these for lengths that cost nothing.
func rmaOffsets(room, n int) []int {
	if n < 1<<20 {
		return []int{0, 1, 64, 4095, room - n}
	}
	return []int{1, room - n}
}

func (e *env) rmaSizes() []int { return []int{0, 1, 8, 63, 4096, 4097, 70001, 1 << 20} }

// rma writes n bytes to the target and reads them back.
func (e *env) rma(a, b *side, to provider.Peer, l, target mem, off, n int) {
	e.Helper()
	seed := e.fresh()
	lo := min(off, l.n-n)
	a.fill(l.part(lo, n), seed)
	a.post(rmaOp(provider.WriteDone, to, target, off, 1, l.part(lo, n)).with(provider.DeliveryComplete, 0))
	e.same("a write", a.one(provider.WriteDone, 1), provider.Completion{Context: 1, Kind: provider.WriteDone, Len: uint64(n), Source: to})
	if n > 0 {
		b.holds("what was written", target.part(off, n), seed)
	}
	b.fill(target.part(off, n), seed+1)
	a.post(rmaOp(provider.ReadDone, to, target, off, 2, l.part(lo, n)))
	e.same("a read", a.one(provider.ReadDone, 2), provider.Completion{Context: 2, Kind: provider.ReadDone, Len: uint64(n), Source: to})
	if n > 0 {
		a.holds("what was read", l.part(lo, n), seed+1)
	}
}

// testRMAEdges: a write changes what it is about, and nothing beside it.
func testRMAEdges(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	for _, kind := range e.remoteKinds() {
		target, l := b.mem(kind, 100000, readWrite), a.heap(90000, 1)
		for _, n := range []int{1, 100, 5000, 66000} {
			b.fill(target.all(), 7)
			a.post(rmaOp(provider.WriteDone, to, target, 333, 1, l.part(0, n)).with(provider.DeliveryComplete, 0))
			a.one(provider.WriteDone, 1)
			want := pattern(100000, 7)
			copy(want[333:333+n], pattern(n, 1))
			if got := b.get(target.all()); !slices.Equal(got, want) {
				e.Fatalf("a write of %d bytes to %s memory changed other bytes too, or not its own", n, kind)
			}
		}
	}
}

// testRMAVectored: pieces on both sides, that do not match.
func testRMAVectored(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	for _, kind := range e.remoteKinds() {
		m1, m2, l := b.mem(kind, 50000, readWrite), b.mem(kind, 50000, readWrite), a.mem("heap", 100000, 0)
		b.fill(m1.all(), 11)
		b.fill(m2.all(), 12)
		for _, n := range []int{10, 3000, 40000} {
			one := n / 3
			remotes := []provider.RemoteSegment{
				{Key: m1.key, Offset: m1.at(100), Len: uint64(one)}, {Key: m2.key, Offset: m2.at(0), Len: uint64(n - one)},
			}
			if lim := e.info.Limits.Remotes; lim > 0 && lim < 2 {
				remotes = []provider.RemoteSegment{{Key: m1.key, Offset: m1.at(100), Len: uint64(n)}}
			}
			want := slices.Concat(pattern(50000, 11)[100:100+one], pattern(50000, 12)[:n-one])
			if len(remotes) == 1 {
				want = pattern(50000, 11)[100 : 100+n]
			}
			parts := []seg{l.part(5, n/2), l.part(n, n-n/2)}
			if lim := e.info.Limits.Segments; lim == 1 {
				parts = []seg{l.part(5, n)}
			}
			op := opSpec{Kind: provider.ReadDone, Peer: to, Remotes: remotes, Segs: parts, Context: 1}
			a.post(op)
			if c := a.one(provider.ReadDone, 1); c.Len != uint64(n) {
				e.Fatalf("a vectored read: %s", show(c))
			}
			var got []byte
			for _, p := range parts {
				got = append(got, a.get(p)...)
			}
			if !slices.Equal(got, want) {
				e.Fatalf("a vectored read of %d bytes of %s memory brought other bytes", n, kind)
			}
			e.writeVectored(a, b, to, op, m1, n, one, want)
			if len(remotes) == 2 {
				bad := op
				bad.Remotes = slices.Clone(remotes)
				bad.Remotes[1].Offset = m2.at(50000 - 1)
				e.refused(a, "a vectored read whose second piece is past the end", bad, provider.ErrKey)
			}
		}
	}
}

// writeVectored writes the pieces back after the target has been overwritten.
func (e *env) writeVectored(a, b *side, to provider.Peer, op opSpec, m1 mem, n, one int, want []byte) {
	e.Helper()
	if len(op.Remotes) == 1 {
		one = n
	}
	before := b.get(m1.part(100, one))
	b.fill(m1.part(100, one), 99)
	op.Kind = provider.WriteDone
	a.post(op.with(provider.DeliveryComplete, 0))
	a.one(provider.WriteDone, 1)
	if got := b.get(m1.part(100, one)); !slices.Equal(got, want[:one]) || !slices.Equal(got, before) {
		e.Fatalf("a vectored write of %d bytes to peer %v put other bytes there", n, to)
	}
}

// testKeys: errors of access travel back and end the initiator's operation; the target and its memory do not notice, and
// the connection goes on.
func testKeys(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	l := a.heap(10000, 1)
	for _, kind := range e.remoteKinds() {
		for _, c := range []struct {
			name   string
			access provider.Access
			kind   provider.Kind
			off, n int
			key    provider.Key
			closed bool
		}{
			{"read without the right", provider.PeerWrite, provider.ReadDone, 0, 8, 0, false},
			{"write without the right", provider.PeerRead, provider.WriteDone, 0, 8, 0, false},
			{"read past the end", readWrite, provider.ReadDone, 4090, 8, 0, false},
			{"write past the end", readWrite, provider.WriteDone, 4090, 8, 0, false},
			{"long write past the end", readWrite, provider.WriteDone, 1, 9999, 0, false},
			{"read far away", readWrite, provider.ReadDone, 1 << 40, 8, 0, false},
			{"read at the end of all offsets", readWrite, provider.ReadDone, -65, 64, 0, false},
			{"key that never was", readWrite, provider.ReadDone, 0, 8, 0x5eed5eed5eed5eed, false},
			{"write by a key that never was", readWrite, provider.WriteDone, 0, 8, 0x5eed5eed5eed5eed, false},
			{"read of closed memory", readWrite, provider.ReadDone, 0, 8, 0, true},
			{"write to closed memory", readWrite, provider.WriteDone, 0, 5000, 0, true},
		} {
			if c.access == provider.PeerWrite && kind == "alloc" {
				continue // an arena that peers may write is mapped, and so readable
			}
			m := b.mem(kind, 4096, c.access)
			b.fill(m.all(), 2)
			op := rmaOp(c.kind, to, m, c.off, 4, l.part(0, c.n))
			if c.key != 0 {
				op.Key = c.key
			}
			if c.closed {
				// Known to work before.
				a.post(rmaOp(provider.ReadDone, to, m, 0, 3, l.part(0, 8)))
				a.one(provider.ReadDone, 3)
				b.do(request{Verb: "unkey", Buf: m.id})
			}
			e.refused(a, kind+" memory: "+c.name, op, provider.ErrKey)
			if !c.closed {
				b.holds(c.name+": the memory after it", m.all(), 2)
			}
			b.none(c.name)
		}
	}
	from := b.knows(a)
	e.message(a, b, to, from, 100, false)
	e.rma(a, b, to, l, b.mem("register", 4096, readWrite), 0, 100)
}

// refused posts what must end with this error: at the post, or in its completion, which names the peer.
func (e *env) refused(a *side, what string, op opSpec, want error) {
	e.Helper()
	err := a.tryPost(op)
	if err == nil {
		c := a.take(1)[0]
		if c.Kind != op.Kind || c.Context != op.Context || c.Err == nil {
			e.Fatalf("%s: ended as %s", what, show(c))
		}
		err = c.Err
	}
	if !errors.Is(err, want) {
		e.Fatalf("%s: got %v, want %q", what, err, want)
	}
	oe, ok := errors.AsType[*provider.OpError](err)
	if !ok || oe.Addr == "" || oe.Op == "" || oe.Provider != e.c.Provider {
		e.Fatalf("%s: %#v does not name operation, provider and peer", what, err)
	}
	if text := outOfOrder(err); text != "" {
		e.Fatalf("%s: %s", what, text)
	}
}
