package fabrictest

import (
	"errors"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// testViews: a view shows the peer's memory as it is and becomes, and cannot be written.
func testViews(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	const n = 3 << 20
	for _, access := range []provider.Access{provider.PeerRead, readWrite} {
		m := b.arena(n, 1, access)
		for _, r := range [][2]int{{0, n}, {0, 1}, {4095, 2}, {100, 70000}, {n - 1, 1}, {1 << 20, 1 << 20}} {
			v := a.do(request{Verb: "view", Peer: to, Key: m.key, Off: r[0], N: r[1]}).N
			if got := a.stats().Views; got != 1 {
				e.Errorf("one view is held, Stats.Views is %d", got)
			}
			e.viewed(a, v, m, r[0], r[1])
			b.fill(m.all(), 2)
			got := a.do(request{Verb: "view-get", Buf: v, N: r[1]}).Bytes
			if string(got) != string(pattern(n, 2)[r[0]:r[0]+r[1]]) {
				e.Fatalf("a view does not show what its owner has written later")
			}
			b.fill(m.all(), 1)
			if a.do(request{Verb: "poke", Buf: v, Off: r[1] - 1}).N != 1 {
				e.Fatalf("a write to a view of %v memory is no fault", access)
			}
			b.holds("memory that somebody tried to write through a view", m.all(), 1)
			a.do(request{Verb: "release", Buf: v})
			a.do(request{Verb: "release", Buf: v}) // harmless
		}
		e.viewErrors(a, b, to, m, n)
	}
	if got := a.stats().Views; got != 0 {
		e.Errorf("all views are released, Stats.Views is %d", got)
	}
}

// viewed checks n bytes from off on; the pattern of m starts at 0.
func (e *env) viewed(a *side, v int, m mem, off, n int) {
	e.Helper()
	got := a.do(request{Verb: "view-get", Buf: v, N: n}).Bytes
	if at := wrong(got, 1, off); at >= 0 {
		e.Fatalf("byte %d of a view of bytes %d to %d of %d is wrong", at, off, off+n, m.n)
	}
}

func (e *env) viewErrors(a, b *side, to provider.Peer, m mem, n int) {
	e.Helper()
	for what, r := range map[string]request{
		"past the end":         {Key: m.key, Off: n - 1, N: 2},
		"far away":             {Key: m.key, Off: 1 << 50, N: 2},
		"a key that never was": {Key: 0x5eed5eed5eed5eed, N: 2},
	} {
		r.Verb, r.Peer = "view", to
		_, err := a.try(r)
		// A key that never was may look like one of memory in no arena.
		if !errors.Is(err, provider.ErrKey) && (r.Key == m.key || !errors.Is(err, provider.ErrNotSupported)) {
			e.Fatalf("a view %s: %v", what, err)
		}
	}
	closed := b.arena(4096, 1, provider.PeerRead)
	b.do(request{Verb: "unkey", Buf: closed.id})
	if _, err := a.try(request{Verb: "view", Peer: to, Key: closed.key, N: 8}); !errors.Is(err, provider.ErrKey) {
		e.Fatalf("a view of memory that was taken back: %v", err)
	}
	own := b.arena(4096, 1, 0)
	if _, err := a.try(request{Verb: "view", Peer: to, Key: own.key, N: 8}); !errors.Is(err, provider.ErrKey) {
		e.Fatalf("a view of an arena that peers may not read: %v", err)
	}
	private := b.private(4096, 1, provider.PeerRead)
	if _, err := a.try(request{Verb: "view", Peer: to, Key: private.key, N: 8}); !errors.Is(err, provider.ErrNotSupported) {
		e.Fatalf("a view of memory that is in no arena: %v", err)
	}
}

// testLease: memory that was taken back while somebody views it stays as it is until the view is released; then it is used again.
func testLease(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	for _, n := range []int{1000, 70000, 1 << 20} {
		m := b.arena(n, 1, provider.PeerRead)
		v := a.do(request{Verb: "view", Peer: to, Key: m.key, N: n}).N
		b.do(request{Verb: "unkey", Buf: m.id})
		for range 20 {
			b.do(request{Verb: "unkey", Buf: b.arena(n, 9, provider.PeerRead).id})
			b.arena(n/4, 8, provider.PeerRead)
		}
		e.viewed(a, v, m, 0, n)
		a.do(request{Verb: "release", Buf: v})
	}
	// Again and again: nothing is kept back.
	var base uint64
	rounds := testutil.Count(e, 20, 2000)
	for round := range rounds {
		m := b.arena(1<<20, 1, provider.PeerRead)
		v := a.do(request{Verb: "view", Peer: to, Key: m.key, N: 1 << 20}).N
		e.viewed(a, v, m, 0, 4096)
		b.do(request{Verb: "unkey", Buf: m.id})
		a.do(request{Verb: "release", Buf: v})
		if round == rounds/2 {
			base = b.stats().Arena
		}
	}
	if got := b.stats().Arena; got > base+4<<20 {
		e.Fatalf("arenas grow by views that were released: %d bytes, %d before", got, base)
	}
}

// testViewer: a viewer that dies by its fault harms only itself, and its lease ends.
func testViewer(e *env) {
	b := e.side(0)
	b.open(e.spec())
	a := e.side(1)
	a.open(e.spec())
	m := b.arena(1<<20, 1, provider.PeerRead)
	to, from := a.knows(b), b.knows(a)
	e.message(a, b, to, from, 100, false)
	v := a.do(request{Verb: "view", Peer: to, Key: m.key, N: 1 << 20}).N
	a.start(request{Verb: "crash", Buf: v})
	<-a.remote.p.Done()
	a.remote.dead = true
	b.holds("memory that somebody tried to write through a view", m.all(), 1)
	e.refusedGone(b, a, sendOp(from, 1, b.heap(8, 0).all()))
	b.do(request{Verb: "unkey", Buf: m.id})
	base := b.stats().Arena
	for range 50 {
		b.do(request{Verb: "unkey", Buf: b.arena(1<<20, 2, provider.PeerRead).id})
	}
	if got := b.stats().Arena; got > base+2<<20 {
		e.Fatalf("arenas grow after the death of a viewer: %d bytes, %d before", got, base)
	}
}

// testViewOutlives: what is viewed can be read after its owner has died, and after the viewer's domain has closed.
func testViewOutlives(e *env) {
	a := e.side(0)
	a.open(e.spec())
	for _, kill := range []bool{true, false} {
		b := e.side(1)
		b.open(e.spec())
		m := b.arena(1<<20, 1, provider.PeerRead)
		to := a.knows(b)
		v := a.do(request{Verb: "view", Peer: to, Key: m.key, N: 1 << 20}).N
		if kill {
			b.kill()
			e.refusedGone(a, b, sendOp(to, 1, a.heap(8, 0).all()))
		} else {
			a.do(request{Verb: "quiet"})
			a.do(request{Verb: "close-endpoint"})
			a.do(request{Verb: "close-domain"})
		}
		e.viewed(a, v, m, 0, 1<<20)
		a.do(request{Verb: "release", Buf: v})
	}
}

// testArena: what Alloc promises of its memory.
func testArena(e *env) {
	spec := e.spec()
	spec.Memory = 64 << 20
	a := e.side(0)
	a.open(spec)
	for _, access := range []provider.Access{0, provider.PeerRead, readWrite} {
		for _, n := range []int{1, 64, 100, 4096, 65535, 65536, 1 << 20, 5 << 20} {
			for range 3 { // the second time it is used again, and zero again
				m := a.mem("alloc", n, access)
				b := a.local.bufs[m.id]
				if len(b.b) != n || b.mem.Access() != access {
					e.Fatalf("%d bytes with access %v: %d bytes, access %v", n, access, len(b.b), b.mem.Access())
				}
				align := uint64(64)
				if n >= 65536 {
					align = 4096
				}
				if addressOf(b.b)%align != 0 {
					e.Fatalf("%d bytes of arena are not aligned to %d", n, align)
				}
				for i, x := range b.b {
					if x != 0 {
						e.Fatalf("byte %d of fresh arena memory is %#x", i, x)
					}
				}
				a.fill(m.all(), 1)
				a.do(request{Verb: "unkey", Buf: m.id})
			}
		}
	}
	if _, err := a.try(request{Verb: "alloc", N: 65 << 20}); !errors.Is(err, provider.ErrNoMemory) {
		e.Fatalf("65 MiB of arenas where 64 are allowed: %v", err)
	}
	for _, n := range []int{0, -1} {
		if _, err := a.try(request{Verb: "alloc", N: n}); !errors.Is(err, provider.ErrInvalid) {
			e.Fatalf("an arena of %d bytes: %v", n, err)
		}
	}
}
