package shm

import (
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// lean has blocks get their pages when they are touched.
func lean(c provider.DomainConfig) provider.DomainConfig {
	c.Options = map[string]string{"prefault": "0"}
	return c
}

// made is how many segments a side has made.
func (s *side) made() uint32 {
	s.d.arena.mu.Lock()
	defer s.d.arena.mu.Unlock()
	return s.d.arena.made
}

// round allocates blocks of so many MiB, and closes them: each before the next one is there, or all at the end.
func (s *side) round(a provider.Access, together bool, sizes ...int) {
	s.t.Helper()
	var list []provider.Memory
	for _, mib := range sizes {
		list = append(list, s.alloc(mib<<20, a))
		if !together {
			s.must(list[len(list)-1].Close())
		}
	}
	for _, m := range list {
		s.must(m.Close())
	}
}

// Who has freed all is left with little, whatever sizes he had, and the statistics say so.
func TestFreedMemoryGoesBack(t *testing.T) {
	for _, a := range []provider.Access{provider.PeerRead, peerBoth} {
		s := newSide(t, lean(provider.DomainConfig{}), provider.EndpointConfig{})
		for range testutil.Count(t, 3, 100) {
			s.round(a, false, 10, 20, 30, 40, 50, 60, 70, 80)
			if got := s.d.Stats(); got.Arena > keepIdle || got.ArenaUsed != 0 || got.ArenaMost < 80<<20 || got.ArenaMost > keepIdle+80<<20 {
				t.Fatalf("%d bytes of arenas, %d at most, %d in use", got.Arena, got.ArenaMost, got.ArenaUsed)
			}
		}
		if n := s.made(); n > 8 {
			t.Errorf("%d segments were made", n)
		}
	}
}

// As much is kept as is in use, and no less than what is always kept.
func TestIdleIsKeptUpToWhatIsInUse(t *testing.T) {
	s := newSide(t, lean(provider.DomainConfig{}), provider.EndpointConfig{})
	var list []provider.Memory
	for i := range 4 {
		list = append(list, s.alloc(100<<20, []provider.Access{provider.PeerRead, peerBoth}[i%2])) // both kinds count together
	}
	for i, want := range []uint64{400, 400, 200, 100} {
		s.must(list[i].Close())
		if got := s.d.Stats().Arena >> 20; got != want {
			t.Errorf("%d MiB of arenas after %d blocks are closed, want %d", got, i+1, want)
		}
	}
}

// Rounds that need no more than is kept make no segment once they have what they need.
func TestSteadyRoundsMakeNoSegments(t *testing.T) {
	for what, sizes := range map[string][]int{
		"one block": {64}, "a small one before": {1, 64}, "several": {1, 3, 20, 40}, "some of each": {5, 1, 5, 1, 5, 1, 5, 1, 36},
	} {
		for _, together := range []bool{true, false} {
			s := newSide(t, lean(provider.DomainConfig{}), provider.EndpointConfig{})
			for range 2 {
				s.round(provider.PeerRead, together, sizes...)
			}
			before := s.made()
			for range 4 {
				s.round(provider.PeerRead, together, sizes...)
			}
			if n := s.made() - before; n != 0 {
				t.Errorf("%s: %d segments more", what, n)
			}
		}
	}
}

// Sizes that take turns do not make a segment each time.
func TestAlternatingSizesMakeNoSegments(t *testing.T) {
	s := newSide(t, lean(provider.DomainConfig{}), provider.EndpointConfig{})
	for range 3 {
		s.round(provider.PeerRead, false, 40, 80, 1)
		s.round(provider.PeerRead, false, 100, 2)
	}
	if n := s.made(); n > 3 {
		t.Errorf("%d segments were made", n)
	}
}

// What is made and given back again and again leaves nothing, neither here nor at peers, and not even the knowledge of it.
func TestManySegmentsLeaveNothing(t *testing.T) {
	const rounds, n = 100, 200 << 20
	a, b, ab, _ := twoSides(t, lean(provider.DomainConfig{}))
	for range rounds {
		m := b.alloc(n, peerBoth)
		v := a.view(ab, m, n-8, 8)
		v.Release()
		b.must(m.Close())
	}
	testutil.Eventually(t, "the peer has unmapped all", func() bool {
		a.d.core.Lock()
		defer a.d.core.Unlock()
		return len(a.d.pairs[0].segments) == 0 && a.d.foreign == foreign{}
	})
	ar := b.d.arena
	ar.mu.Lock()
	defer ar.mu.Unlock()
	if ar.total() != 0 || len(ar.segments) != 0 || len(ar.dropped) != 0 || ar.told != rounds || ar.made != rounds {
		t.Errorf("%d bytes, %d segments, %d drops to tell of, %d told, %d segments made", ar.total(), len(ar.segments), len(ar.dropped), ar.told, ar.made)
	}
}

// A segment of which a peer views a block that was closed stays until the view is released, and goes then: its owner, who sleeps,
// is woken.
func TestReleaseGivesBack(t *testing.T) {
	const n = 200 << 20
	for _, how := range []string{"", "eventfd"} {
		c := lean(provider.DomainConfig{})
		c.Options["disable"] = how
		a, b, ab, _ := twoSides(t, c)
		m := b.alloc(n, provider.PeerRead)
		copy(m.Bytes(), "seen")
		views := []provider.View{a.view(ab, m, 0, 4), a.view(ab, m, 0, 4)}
		b.must(m.Close())
		b.alloc(1<<20, provider.PeerRead)
		for _, v := range views {
			if got := b.d.Stats(); got.Arena < n || got.ArenaUsed < n || string(v.Bytes()) != "seen" {
				t.Errorf("%d bytes of arenas, %d in use, in view %q", got.Arena, got.ArenaUsed, v.Bytes())
			}
			v.Release()
		}
		testutil.Eventually(t, "the segment is given back", func() bool { return b.d.Stats().Arena < n })
		testutil.Eventually(t, "the peer has unmapped it", func() bool { return a.d.Peers()[0].Memory < n })
	}
}

// In manual mode a call of the owner does it.
func TestReleaseGivesBackInManualMode(t *testing.T) {
	const n = 200 << 20
	a, b, ab := connected(t, lean(provider.DomainConfig{Progress: provider.Manual}))
	m := b.alloc(n, provider.PeerRead)
	v := a.view(ab, m, 0, 4)
	b.must(m.Close())
	v.Release()
	progress(t, "given back", func() bool { return b.d.Stats().Arena == 0 }, b)
	progress(t, "unmapped", func() bool { return a.d.Peers()[0].Memory < n }, a)
}

// A peer that ends lets go of all.
func TestEndGivesBack(t *testing.T) {
	const n = 200 << 20
	a, b, ab, ba := twoSides(t, lean(provider.DomainConfig{}))
	m := b.alloc(n, provider.PeerRead)
	v := a.view(ab, m, 0, 4)
	b.must(m.Close())
	b.must(b.d.Remove(ba))
	if got := b.d.Stats().Arena; got < n {
		t.Errorf("%d bytes of arenas while a peer that was removed has a view", got)
	}
	v.Release()
	testutil.Eventually(t, "the segment is given back", func() bool { return b.d.Stats().Arena == 0 })
}

// Segments come and go from several goroutines while a peer looks at them.
func TestSegmentsComeAndGo(t *testing.T) {
	const n = 150 << 20
	a, b, ab, _ := twoSides(t, lean(provider.DomainConfig{}))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range testutil.Count(t, 5, 50) {
				m, err := b.d.Alloc(n, provider.PeerRead)
				if err != nil {
					t.Error(err)
					return
				}
				m.Bytes()[n-1] = byte(i + 1)
				v, err := a.d.View(t.Context(), ab, m.Key(), n-1, 1)
				_ = m.Close()
				if err != nil {
					t.Error(err)
					return
				}
				if got := v.Bytes()[0]; got != byte(i+1) {
					t.Errorf("%d instead of %d", got, i+1)
				}
				v.Release()
			}
		})
	}
	all.Wait()
	testutil.Eventually(t, "all is given back", func() bool { return b.d.Stats().Arena <= keepIdle })
}

// Segments of bounce blocks go by the same rule.
func TestBounceBlocksGoBack(t *testing.T) {
	const sets = 3 * idleBlocks / blocksMade
	b, a, ba := connected(t, provider.DomainConfig{})
	left := 0
	b.locked(ba, func(p *pair) {
		var out []*bounce
		for range sets * blocksMade {
			p.blocks = 0 // as if it were many pairs
			block := p.takeBlock(false)
			if block == nil {
				t.Fatal("no block")
			}
			block.bytes[0], block.bytes[blockLen-1] = 1, 1
			out = append(out, block)
		}
		if got := len(b.d.bounces); got != sets || b.d.blocks != len(out) {
			t.Errorf("%d segments, want %d, with %d blocks out of %d", got, sets, b.d.blocks, len(out))
		}
		p.blocks = len(out)
		kept := slices.Clone(out[:3]) // of the first segment
		for _, block := range out[3:] {
			p.giveBlock(block)
		}
		for _, block := range kept {
			block.bytes[0] = 2
			p.giveBlock(block)
		}
		left = len(b.d.bounces)
		if left != idleBlocks/blocksMade || b.d.blocks != 0 || p.blocks != 0 {
			t.Errorf("%d segments are left, %d blocks out", left, b.d.blocks)
		}
	})
	testutil.Eventually(t, "the peer has unmapped the others", func() bool {
		a.d.core.Lock()
		defer a.d.core.Unlock()
		return len(a.d.pairs[0].segments) == left
	})
}
