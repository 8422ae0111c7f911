package fabrictest

import (
	"runtime"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testComputeArena: reads, writes and views of an arena need nothing of the target, in either mode.
func testComputeArena(e *env) {
	spec := e.spec()
	spec.Way = byHand
	a := e.side(0)
	a.open(e.spec())
	b := e.side(1)
	b.open(spec)
	to := a.knows(b)
	const n = 1 << 20
	m := b.arena(n, 1, readWrite)
	ro := b.arena(n, 2, provider.PeerRead)
	e.acquaint(a, b, to)
	e.computing(b, 1, func() {
		l := a.heap(n, 0)
		for i := range 10 {
			seed := e.fresh()
			a.fill(l.all(), seed)
			a.post(rmaOp(provider.WriteDone, to, m, 0, 1, l.all()).with(provider.DeliveryComplete, 0))
			a.one(provider.WriteDone, 1)
			a.fill(l.all(), 0)
			a.post(rmaOp(provider.ReadDone, to, m, 0, 2, l.all()))
			a.one(provider.ReadDone, 2)
			a.holds("an arena whose owner computes", l.all(), seed)
			if e.has(provider.Views) {
				v := a.do(request{Verb: "view", Peer: to, Key: ro.key, Off: 4096 * i, N: n - 4096*i}).N
				if at := a.do(request{Verb: "view-wrong", Buf: v, Off: 4096 * i, Seed: 2}).N; at >= 0 {
					e.Fatalf("a view of an arena whose owner computes: byte %d is wrong", at)
				}
				a.do(request{Verb: "release", Buf: v})
			}
		}
	})
}

// acquaint connects two sides of which b does nothing by itself, and tells a of b's memory: in manual mode that takes a few calls of b.
func (e *env) acquaint(a, b *side, to provider.Peer) {
	e.Helper()
	in := b.heap(8, 0)
	b.do(request{Verb: "collect", N: int(byWait)})
	b.post(recvOp(1, in.all()))
	a.post(sendOp(to, 1, a.heap(8, 0).all()).with(provider.DeliveryComplete, 0))
	a.one(provider.SendDone, 1)
	b.one(provider.RecvDone, 1)
	b.do(request{Verb: "quiet"})
}

// computing runs do while b calls nothing: another process really computes, with so many goroutines, until do is done.
func (e *env) computing(b *side, goroutines int, do func()) {
	e.Helper()
	if b.remote == nil {
		do()
		return
	}
	b.do(request{Verb: "spin", N: goroutines})
	do()
	b.do(request{Verb: "stop-spin"})
}

// testComputePrivate: 1000 reads of private memory are outstanding at once while the target computes; its progress serves them.
func testComputePrivate(e *env) {
	spec := e.spec()
	spec.Way = byHand
	a := e.side(0)
	a.open(e.spec())
	b := e.side(1)
	b.open(spec)
	to := a.knows(b)
	const reads, n = 1000, 4000
	m := b.private(reads*64+n, 1, readWrite)
	l := a.heap(reads*n, 0)
	e.acquaint(a, b, to)
	e.computing(b, 1, func() {
		for i := range reads {
			a.post(rmaOp(provider.ReadDone, to, m, 64*i, uint64(i), l.part(n*i, n)))
		}
		a.each(reads)
	})
	whole := pattern(reads*64+n, 1)
	for _, i := range e.shuffled(testutil.Count(e, 50, reads)) {
		if i < reads && string(a.get(l.part(n*i, n))) != string(whole[64*i:64*i+n]) {
			e.Fatalf("read %d of %d brought other bytes", i, reads)
		}
	}
	// Also while it has more to compute than processors.
	e.computing(b, 2*runtime.NumCPU(), func() {
		for i := range reads {
			a.post(rmaOp(provider.WriteDone, to, m, 64*i, uint64(i), l.part(n*i, 64)))
		}
		a.each(reads)
	})
	b.holds("private memory that was written while its owner computed", m.part(0, reads*64), 1)
}
