package fabrictest

import (
	"errors"
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// dataWrite writes 8 bytes with data from a to b.
func (e *env) dataWrite(a, b *direct, data uint64) {
	e.Helper()
	m, err := b.d.Register(memmon.HeapBytes(make([]byte, 64)), readWrite)
	if err != nil {
		e.Fatal(err)
	}
	err = a.ep.Write(provider.Op{
		Local: provider.Segment{Bytes: []byte("8 bytes.")}, Peer: a.to, Key: m.Key(), Offset: e.base(m), Flags: provider.RemoteData, Data: data, Context: 5,
	})
	if err != nil {
		e.Fatal(err)
	}
	got := e.gather(1, 1, a, b)
	here, there := got[0][0], got[1][0]
	if here.Err != nil || here.Kind != provider.WriteDone || here.Context != 5 {
		e.Fatalf("a write with data ended as %s", show(here))
	}
	if there.Err != nil || there.Kind != provider.RemoteWrite || there.Data != data || string(m.Bytes()[:8]) != "8 bytes." {
		e.Fatalf("a write with data %d made %s at the target, and its memory is %q", data, show(there), m.Bytes()[:8])
	}
	if err := m.Close(); err != nil {
		e.Fatal(err)
	}
}

// base is what offsets into m are counted from.
func (e *env) base(m memory) uint64 {
	if !e.info.Memory.VirtualAddr {
		return 0
	}
	return addressOf(m.Bytes())
}

// testNames: a name that is taken is refused, and is free again as soon as its endpoint is closed or dead; its peers know
// the new one from the old.
func testNames(e *env) {
	a := e.side(0)
	a.open(e.spec())
	name := e.name("name")
	spec := e.spec()
	spec.Name = name
	var last provider.Peer
	for round := range testutil.Count(e, 4, 20) {
		b := e.side(1)
		b.open(spec)
		other := e.side(3) // beside b, of its user: others may have names of their own
		if _, err := other.try(request{Verb: "open", Open: &spec}); !errors.Is(err, provider.ErrBusy) {
			e.Fatalf("a name that is taken was given to a second endpoint: %v", err)
		}
		to, from := a.knows(b), b.knows(a)
		if to == last {
			e.Fatalf("the endpoint that was started anew is the same peer as the one that ended")
		}
		last = to
		e.message(a, b, to, from, 5000, round%2 == 1)
		if round%2 == 0 {
			b.kill()
		} else {
			b.close()
		}
	}
}

// testStale: who has only the old address cannot reach the new endpoint of that name by mistake.
func testStale(e *env) {
	a := e.side(0)
	a.open(e.spec())
	spec := e.spec()
	spec.Name = e.name("stale")
	b := e.side(1)
	b.open(spec)
	old := b.addr()
	b.kill()
	c := e.side(1)
	c.open(spec)
	if c.addr() == old {
		e.Skipf("addresses of this provider say only the name: %s", old)
	}
	in := c.heap(64, 0)
	c.post(recvOp(9, in.all()))
	e.refused(a, "a send to the address of an endpoint that is dead", sendOp(a.insert(old), 1, a.heap(64, 1).all()), provider.ErrUnreachable)
	c.none("a message to its predecessor")
	if !c.cancel(9) {
		e.Fatalf("the receive is gone")
	}
	c.fails(provider.RecvDone, 9, provider.ErrCancelled)
	e.message(a, c, a.knows(c), c.knows(a), 0, true)
}

// testUnreachable: where nobody is, operations end with ErrUnreachable, once each, and only they.
func testUnreachable(e *env) {
	a, b := e.pair()
	c := e.side(1)
	c.open(e.spec())
	nowhere := a.insert(c.addr())
	c.close()
	to, from := a.knows(b), b.knows(a)
	out := a.heap(70000, 1)
	ops := []opSpec{sendOp(nowhere, 1, out.part(0, 8)), sendOp(nowhere, 2, out.all())}
	if e.has(provider.Tagged) {
		ops = append(ops, tsendOp(nowhere, 1, 3, out.all()))
	}
	if e.has(provider.RMA) {
		ops = append(ops, opSpec{Kind: provider.ReadDone, Peer: nowhere, Key: 1, Segs: []seg{out.all()}, Context: 4})
	}
	for _, op := range ops {
		e.refused(a, "an operation towards nobody", op, provider.ErrUnreachable)
	}
	a.none("operations that have failed once")
	e.message(a, b, to, from, 100, false)
}

// testInsert: the same address is the same peer; Address gives it back; Remove ends what is outstanding.
func testInsert(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	if again := a.knows(b); again != to || to == 0 {
		e.Fatalf("%s is peer %v, and then %v", b.addr(), to, again)
	}
	if got := a.do(request{Verb: "address", Peer: to}).Addresses[0]; got != b.addr() {
		e.Fatalf("peer %v is %s, not %s", to, got, b.addr())
	}
	if _, err := a.try(request{Verb: "address", Peer: to + 1000}); !errors.Is(err, provider.ErrInvalid) {
		e.Fatalf("the address of no peer: %v", err)
	}
	for _, bad := range []provider.Address{"", "x", "://", "nobody://x", provider.Address(e.c.Provider + "://"), provider.Address(e.c.Provider + ":// a b")} {
		if _, err := a.try(request{Verb: "insert", Address: bad}); !errors.Is(err, provider.ErrInvalid) {
			e.Fatalf("inserting %q: %v", bad, err)
		}
	}
	for _, p := range []provider.Peer{0, to + 1000} {
		err := a.tryPost(sendOp(p, 1, a.heap(8, 0).all()))
		if !errors.Is(err, provider.ErrInvalid) {
			e.Fatalf("a send to peer %v, which there is not: %v", p, err)
		}
	}
	e.message(a, b, to, b.knows(a), 8, false)
	b.do(request{Verb: "quiet"})
	a.post(sendOp(to, 7, a.heap(1<<20, 0).all()).with(provider.DeliveryComplete, 0))
	a.do(request{Verb: "remove", Peer: to})
	a.fails(provider.SendDone, 7, provider.ErrCancelled)
	if err := a.tryPost(sendOp(to, 1, a.heap(8, 0).all())); !errors.Is(err, provider.ErrInvalid) {
		e.Fatalf("a send to a peer that was removed: %v", err)
	}
	again := a.knows(b) // nothing was sent to it yet
	if again == to {
		e.Fatalf("the number of a removed peer, %d, is used anew", to)
	}
	if e.has(provider.DirectedRecv) {
		op := recvOp(9, a.heap(8, 0).all()).with(provider.Directed, 0)
		op.Peer = again
		a.post(op)
		a.do(request{Verb: "remove", Peer: again})
		a.fails(provider.RecvDone, 9, provider.ErrCancelled)
	}
}

// gather reads all queues until each has given as many completions as asked for.
func (e *env) gather(na, nb int, a, b *direct) [2][]provider.Completion {
	e.Helper()
	var got [2][]provider.Completion
	ctx, cancel := e.patient()
	defer cancel()
	var some [16]provider.Completion
	for len(got[0]) < na || len(got[1]) < nb {
		for i, d := range []*direct{a, b} {
			n, err := d.q.Read(some[:])
			if err != nil {
				e.Fatal(err)
			}
			got[i] = slices.Concat(got[i], some[:n])
		}
		if ctx.Err() != nil {
			e.Fatalf("got %d of %d and %d of %d completions", len(got[0]), na, len(got[1]), nb)
		}
	}
	return got
}
