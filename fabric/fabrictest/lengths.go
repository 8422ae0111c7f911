package fabrictest

import (
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testZero: nothing is a length like others.
func testZero(e *env) {
	a, b := e.pair()
	to, from := a.knows(b), b.knows(a)
	for _, late := range []bool{false, true} {
		for range 20 {
			e.message(a, b, to, from, 0, late)
		}
	}
	if e.has(provider.RMA) {
		for _, kind := range e.remoteKinds() {
			m, l := b.mem(kind, 100, readWrite), a.heap(0, 0)
			for _, off := range []int{0, 50, 100} {
				e.rma(a, b, to, l, m, off, 0)
			}
			e.refused(a, "nothing, behind the end", rmaOp(provider.ReadDone, to, m, 101, 3, l.all()), provider.ErrKey)
		}
	}
	// A post without a buffer at all.
	b.post(recvOp(2))
	a.post(sendOp(to, 1))
	a.one(provider.SendDone, 1)
	b.one(provider.RecvDone, 2)
}

// testHuge (F41): memory above 4 GiB is registered, sparse, and read and written on both sides of the places where 32-bit
// numbers end; in a soak one operation of more than 2 GiB, and a message of it.
func testHuge(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	// Fresh memory of this size is not touched by the runtime: what nobody writes costs nothing. The
	// race detector has its own memory for every byte.
	room := testutil.Count(e, 1<<28, 5<<30)
	m, l := b.mem("register", room, readWrite), a.heap(1<<16, 0)
	for _, off := range []int{0, 1<<28 - 4096, 1<<31 - 2048, 0x7ffff000, 1<<32 - 2048, 1 << 32, room - 1<<16} {
		if off+1<<16 > room {
			continue
		}
		e.rma(a, b, to, l, m, off, min(1<<16, room-off))
	}
	e.refused(a, "behind the end of huge memory", rmaOp(provider.ReadDone, to, m, room-1, 3, l.part(0, 2)), provider.ErrKey)
	long := testutil.Count(e, 40<<20, 2<<30+8192)
	marks := []int{0, 0x7ffff000 - 1, 0x7ffff000, 1<<31 - 1, 1 << 31, long / 2, long - 1}
	into := a.mem("heap", long, 0)
	for i, at := range marks {
		if at < long {
			b.set(m, at, []byte{byte(i + 1)})
		}
	}
	a.post(rmaOp(provider.ReadDone, to, m, 0, 5, into.all()))
	if c := a.one(provider.ReadDone, 5); c.Len != uint64(long) {
		e.Fatalf("a read of %d bytes: %s", long, show(c))
	}
	for i, at := range marks {
		if at < long && a.get(into.part(at, 1))[0] != byte(i+1) {
			e.Fatalf("a read of %d bytes: byte %d did not come", long, at)
		}
	}
	if lim := e.info.Limits.Message; lim > 0 && uint64(long) > lim {
		return
	}
	back := b.mem("heap", long, 0)
	b.post(recvOp(7, back.all()))
	a.post(sendOp(to, 6, into.all()))
	if c := b.one(provider.RecvDone, 7); c.Len != uint64(long) {
		e.Fatalf("a message of %d bytes: %s", long, show(c))
	}
	a.one(provider.SendDone, 6)
	for i, at := range marks {
		if at < long && b.get(back.part(at, 1))[0] != byte(i+1) {
			e.Fatalf("a message of %d bytes: byte %d did not come", long, at)
		}
	}
}
