package fabrictest

import (
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testOrder sends messages of random sizes from nothing to 1 MiB, tagged and untagged mixed, some of them before
// their receives are posted. Each kind matches in the order of posting, and messages that one receive could take
// arrive in the order in which they were sent.
func testOrder(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	for round := range testutil.Count(e, 2, 6) {
		const n = 24
		e.orderRound(a, b, to, n, round%2 == 1)
	}
}

func (e *env) orderRound(a, b *side, to provider.Peer, n int, late bool) {
	e.Helper()
	sizes := e.sizes(1 << 20)
	var sends, recvs []opSpec
	var lengths []int
	var seeds []uint64
	var into []mem
	for i := range n {
		length, seed := sizes[e.rnd.IntN(len(sizes))], e.fresh()
		out, in := a.heap(length, seed), b.heap(1<<20, seed+1)
		lengths, seeds, into = append(lengths, length), append(seeds, seed), append(into, in)
		if e.has(provider.Tagged) && e.rnd.IntN(2) == 0 {
			sends = append(sends, tsendOp(to, 5, uint64(i), out.all()))
			recvs = append(recvs, trecvOp(5, 0, uint64(i), in.all()))
		} else {
			sends = append(sends, sendOp(to, uint64(i), out.all()))
			recvs = append(recvs, recvOp(uint64(i), in.all()))
		}
	}
	first, second := b, a
	firstOps, secondOps := recvs, sends
	if late {
		first, second, firstOps, secondOps = a, b, sends, recvs
	}
	for _, op := range firstOps {
		first.post(op)
	}
	for _, op := range secondOps {
		second.post(op)
	}
	a.each(n)
	seen := map[provider.Kind][]uint64{}
	for _, c := range b.take(n) {
		i := int(c.Context)
		if c.Err != nil || c.Kind != recvs[i].Kind || c.Len != uint64(lengths[i]) {
			e.Fatalf("message %d of %d bytes came as %s: the receives matched in another order", i, lengths[i], show(c))
		}
		b.holds("an ordered message", into[i].part(0, lengths[i]), seeds[i])
		seen[c.Kind] = append(seen[c.Kind], c.Context)
	}
	if len(seen[provider.RecvDone])+len(seen[provider.TRecvDone]) != n {
		e.Fatalf("%d messages came as %v", n, seen)
	}
}

// testDataOrder: a message after a write, and the data of a write, are seen after the bytes.
func testDataOrder(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	b.knows(a)
	kinds := []string{"register"}
	if e.has(provider.Arena) {
		kinds = append(kinds, "alloc")
	}
	for _, kind := range kinds {
		for _, n := range []int{8, 4096, 100000, 1 << 20} {
			target := b.mem(kind, n, provider.PeerRead|provider.PeerWrite)
			out, note, in := a.heap(n, 0), a.heap(8, 9), b.heap(8, 0)
			for range 4 {
				seed := e.fresh()
				a.fill(out.all(), seed)
				b.post(recvOp(3, in.all()))
				a.post(rmaOp(provider.WriteDone, to, target, 0, 1, out.all()))
				a.post(sendOp(to, 2, note.all()))
				b.one(provider.RecvDone, 3)
				b.holds("memory at the message that follows a write", target.all(), seed)
				a.each(2)
				if e.has(provider.RemoteCQData) {
					seed := e.fresh()
					a.fill(out.all(), seed)
					a.post(rmaOp(provider.WriteDone, to, target, 0, 1, out.all()).with(provider.RemoteData, 77))
					if c := b.one(provider.RemoteWrite, 0); c.Data != 77 {
						e.Fatalf("got %s", show(c))
					}
					b.holds("memory at the data of a write", target.all(), seed)
					a.one(provider.WriteDone, 1)
				}
			}
		}
	}
}

// orderOf lists the contexts of completions.
func orderOf(list []provider.Completion) []uint64 {
	var order []uint64
	for _, c := range list {
		order = append(order, c.Context)
	}
	return order
}

func sameOrder(a, b []uint64) bool { return slices.Equal(a, b) }
