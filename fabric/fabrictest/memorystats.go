package fabrictest

import (
	"errors"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// testMemoryStats (F93): who owns a program that grows can ask what its memory is held by: arenas, with their greatest size,
// and views of peers' memory, with the age of the oldest; and it can bound it.
func testMemoryStats(e *env) {
	a, b := e.pair()
	to := a.knows(b)
	base := b.stats()
	const n = 300_000
	m := b.arena(n, 1, provider.PeerRead)
	full := b.stats()
	if full.ArenaUsed < base.ArenaUsed+n || full.Arena < full.ArenaUsed || full.ArenaMost < full.Arena {
		e.Errorf("with %d bytes of an arena %+v, before %+v", n, full, base)
	}
	if e.has(provider.Views) {
		e.viewStats(a, to, m)
	}
	b.do(request{Verb: "unkey", Buf: m.id})
	e.eventually("memory that was taken back does not count as used", func() bool {
		b.arena(64, 0, 0) // a provider may look only when it is asked for more
		return b.stats().ArenaUsed < full.ArenaUsed
	})
	if got := b.stats().ArenaMost; got < full.ArenaMost {
		e.Errorf("arenas had %d bytes at most, and then %d", full.ArenaMost, got)
	}
	spec := e.spec()
	spec.Memory = 4 << 20
	c := e.side(0)
	c.open(spec)
	c.arena(1<<20, 1, provider.PeerRead)
	if _, err := c.try(request{Verb: "alloc", N: 16 << 20, Access: provider.PeerRead}); !errors.Is(err, provider.ErrNoMemory) {
		e.Errorf("16 MiB where arenas are bounded by 4 MiB: %v", err)
	}
	if s := c.stats(); s.ArenaMost > spec.Memory {
		e.Errorf("arenas are bounded by %d bytes and had %d", spec.Memory, s.ArenaMost)
	}
	if e.has(provider.Views) {
		e.viewedBound(a, c)
	}
}

// viewedBound closes memory of which a peer has a view: it counts against the bound of c, 4 MiB of which one is taken, until
// the view is released.
func (e *env) viewedBound(a, c *side) {
	const n = 2 << 20
	to := a.knows(c)
	m := c.arena(n, 1, provider.PeerRead)
	v := a.do(request{Verb: "view", Peer: to, Key: m.key, N: 100}).N
	c.do(request{Verb: "unkey", Buf: m.id})
	alloc := func() error {
		_, err := c.try(request{Verb: "alloc", N: n, Access: provider.PeerRead})
		return err
	}
	if err := alloc(); !errors.Is(err, provider.ErrNoMemory) {
		e.Errorf("2 MiB where 1 MiB is used, 2 MiB are viewed, and arenas are bounded by 4 MiB: %v", err)
	}
	a.do(request{Verb: "release", Buf: v})
	e.eventually("memory that was viewed can be had again", func() bool { return alloc() == nil })
}

// viewStats makes and releases views, and compares their ages with the clock.
func (e *env) viewStats(a *side, to provider.Peer, m mem) {
	e.Helper()
	view := func(n int) int { return a.do(request{Verb: "view", Peer: to, Key: m.key, N: n}).N }
	check := func(what string, n, most int, bytes uint64, after, before time.Time) {
		e.Helper()
		least := time.Since(before)
		s := a.stats()
		if s.Views != n || s.ViewsMost != most || s.ViewBytes != bytes {
			e.Errorf("%s: %d views, %d at most, of %d bytes", what, s.Views, s.ViewsMost, s.ViewBytes)
		}
		if n == 0 && s.OldestView != 0 || n > 0 && (s.OldestView < least || s.OldestView > time.Since(after)) {
			e.Errorf("%s: the oldest view is %v old, which must be in %v to %v", what, s.OldestView, least, time.Since(after))
		}
	}
	check("no view", 0, 0, 0, time.Time{}, time.Time{})
	start := time.Now()
	first := view(1000)
	made := time.Now()
	for time.Since(made) < 4*made.Sub(start) { // its age tells it from one that was not measured well
		a.stats()
	}
	second := view(200)
	check("two views", 2, 2, 1200, start, made)
	a.do(request{Verb: "release", Buf: first})
	again := time.Now()
	check("the second alone", 1, 2, 200, made, again)
	third := view(30)
	check("the second and a third", 2, 2, 230, made, again)
	a.do(request{Verb: "release", Buf: third})
	a.do(request{Verb: "release", Buf: third})
	a.do(request{Verb: "release", Buf: second})
	check("all released", 0, 2, 0, time.Time{}, time.Time{})
}
