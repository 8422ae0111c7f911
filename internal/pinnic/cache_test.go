package pinnic

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// The tables again, through the cache.

// cached is a cache whose registrations the card has.
type cached struct {
	*wired
	cache *mrcache.Cache[Handle]
	a     *memmon.Arbiter
}

// maxCached is how many registrations are kept at most: less than there are slots. What may be locked bounds them as well.
const maxCached = 64

// cachedBy makes a cache for the length of a test.
func cachedBy(t *testing.T, w *wired, a *memmon.Arbiter) *cached {
	t.Helper()
	c, err := mrcache.New(w.Card, mrcache.Config{Arbiter: a, MaxCount: maxCached})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &cached{w, c, a}
}

// with has the cache give a registration of all of k to do.
func (c *cached) with(k memmon.Kind, do func(h Handle, kept bool)) {
	c.t.Helper()
	r, err := c.cache.Acquire(k)
	if err != nil {
		c.t.Fatal(err)
	}
	if r.Range() != memmon.RangeOf(k.Bytes()) { // so that offset 0 of the one is that of the other
		c.t.Fatalf("registered is %v", r.Range())
	}
	do(r.Handle(), r.Why() == mrcache.Kept)
	if err := r.Release(); err != nil {
		c.t.Error(err)
	}
}

// sends is what the wire carries of memory that goes through the cache.
func (c *cached) sends(k memmon.Kind) (carries string, kept bool) {
	c.t.Helper()
	c.with(k, func(h Handle, is bool) { carries, kept = c.carries(h, memoryBytes), is })
	return carries, kept
}

// hit says whether do was a hit.
func (c *cached) hit(do func()) bool {
	before := c.cache.Stats().Hits
	do()
	return c.cache.Stats().Hits > before
}

// silent is an owner who tells nobody anything: what it owns is cached as a cache without validity does.
var silent = answerer{arbiter: newArbiter, shared: true, of: func(*memmon.Arbiter, memmon.Range) (func([]byte) memmon.Kind, func()) {
	o := new(owner)
	return func(b []byte) memmon.Kind { return memmon.Mapped(b, o) }, func() {}
}}

// TestSoakStaleCache plays the table through the cache: with whoever answers for the memory the wire carries what memory shows, and what is
// received is seen. With an owner who tells nobody both are wrong: so the test can fail.
func TestSoakStaleCache(t *testing.T) {
	for who, answer := range answers {
		t.Run(who, func(t *testing.T) {
			cacheTable(t, answer, func(e event) outcome {
				o := outcome{shows: newBytes, carries: newBytes, receives: wireBytes}
				if e.blind {
					o.shows, o.receives = nowhere, nowhere
				}
				if e.blind && !e.keeps {
					o.carries = nowhere // the card refuses what is not there
				}
				return o
			})
		})
	}
	t.Run("forced", func(t *testing.T) {
		cacheTable(t, silent, func(e event) outcome {
			o := expected(e)
			o.again = ""
			return o
		})
	})
}

func cacheTable(t *testing.T, answer answerer, want func(event) outcome) {
	a, rounds, allHits := answer.arbiter(t), 0, 0
	defer func() {
		t.Logf("registration: %d rounds of the table through the cache, %d with a hit before", rounds, allHits)
	}()
	eachEvent(t, func(t *testing.T, w *wired, e event) {
		c, hits, n := cachedBy(t, w, a), 0, e.rounds(w)
		for range n {
			got, hit := c.round(t, e, answer)
			if got != want(e) {
				t.Fatalf("%+v, not %+v", got, want(e))
			}
			if hit {
				hits++
			}
		}
		rounds, allHits = rounds+n, allHits+hits
		// Where nothing happened it was a hit, or the monitor could not tell for a moment. Memory that nobody answers for never was.
		if never := e.shared && !answer.shared; never && hits > 0 || !never && hits < n-n/10 {
			t.Errorf("%d hits in %d rounds", hits, n)
		}
	})
}

// round says what an event did, and whether there was a hit before.
func (c *cached) round(t *testing.T, e event, answer answerer) (o outcome, hit bool) {
	t.Helper()
	var kind func([]byte) memmon.Kind
	var b []byte
	m := e.happens(t, func(m *memory) {
		kind, m.goes = answer.of(c.a, m.where)
		b = m.bytes
		hit = c.hit(func() {
			for range 2 {
				carries, kept := c.sends(kind(b))
				if carries != oldBytes || kept && e.shared && !answer.shared {
					t.Fatalf("at first it carries %s; kept: %v", carries, kept)
				}
			}
		})
	})
	defer m.close()
	defer m.goes()
	o = outcome{shows: shown(m), carries: nowhere, receives: nowhere}
	r, err := c.cache.Acquire(kind(b))
	switch {
	case err == nil:
	case errors.Is(err, syscall.EFAULT) && e.blind:
		return o, hit
	default:
		t.Fatal(err)
	}
	o.carries = c.carries(r.Handle(), memoryBytes)
	c.receive(r.Handle(), memoryBytes)
	o.receives = shown(m)
	if err := r.Release(); err != nil {
		t.Error(err)
	}
	return o, hit
}

// TestSoakStaleCacheArena has an arena drop its pages, and end.
func TestSoakStaleCacheArena(t *testing.T) {
	a := newArbiter(t)
	eachWay(t, func(t *testing.T, w *wired) {
		c, n, hits := cachedBy(t, w, a), w.rounds(20, 1000), 0
		for range n {
			m, err := a.NewArena(memoryBytes)
			if err != nil {
				t.Fatal(err)
			}
			forced := memmon.Mapped(m.Bytes(), new(owner))
			for range 2 {
				fill(m.Bytes(), oldBytes)
				for _, k := range []memmon.Kind{m, m, forced} {
					if c.hit(func() { c.expect(k, oldBytes) }) {
						hits++
					}
				}
				if err := m.Discard(0, memoryBytes); err != nil {
					t.Fatal(err)
				}
				fill(m.Bytes(), newBytes)
				c.expect(forced, oldBytes)
				c.expect(m, newBytes)
				c.cache.Flush() // what is forced as well
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := c.cache.Acquire(m); !errors.Is(err, mrcache.ErrEmpty) {
				t.Fatalf("an arena that is closed: %v", err)
			}
		}
		if hits != 2*n {
			t.Errorf("%d hits in %d rounds", hits, n)
		}
	})
}

func (c *cached) expect(k memmon.Kind, want string) {
	c.t.Helper()
	if carries, _ := c.sends(k); carries != want {
		c.t.Fatalf("carries %s, not %s", carries, want)
	}
}

// TestSoakStaleCacheHeap has objects die, the runtime give pages back, and other objects come to lie there.
func TestSoakStaleCacheHeap(t *testing.T) {
	testutil.Require(t, has(sys.IOUring))
	proper := func() func([]byte) memmon.Kind { return memmon.HeapBytes }
	forced := func() func([]byte) memmon.Kind {
		o := new(owner)
		return func(b []byte) memmon.Kind { return memmon.Mapped(b, o) }
	}
	for name, after := range map[string]func(){"scavenge": func() { runtime.GC(); debug.FreeOSMemory() }, "GC only": runtime.GC} {
		t.Run(name, func(t *testing.T) {
			collecting(t, func(t *testing.T, w *wired) {
				carried := cachedBy(t, w, newArbiter(t)).objects(t, proper, after)
				if carried[newBytes] == 0 || len(carried) != 1 {
					t.Errorf("carries %v", carried)
				}
			})
		})
	}
	t.Run("forced", func(t *testing.T) {
		w := newWired(t, Config{})
		if carried := cachedBy(t, w, newArbiter(t)).objects(t, forced, debug.FreeOSMemory); carried[oldBytes] == 0 {
			t.Errorf("carries %v", carried)
		}
	})
}

// objects counts what the wire carries of objects that lie where dead ones lay.
func (c *cached) objects(t *testing.T, kinds func() func([]byte) memmon.Kind, after func()) map[string]int {
	t.Helper()
	carried := make(map[string]int)
	for range c.rounds(15, 1000) {
		kind := kinds()
		where := c.forgotten(kind)
		after()
		if b := another(where); b != nil {
			fill(b, newBytes)
			carries, _ := c.sends(kind(b))
			carried[carries]++
		}
	}
	t.Logf("registration: objects in memory used again: wire carries %v; %+v", carried, c.cache.Stats())
	return carried
}

// forgotten is where an object was that went through the cache, twice, and that nobody holds.
//
//go:noinline
func (c *cached) forgotten(kind func([]byte) memmon.Kind) memmon.Range {
	c.t.Helper()
	b := make([]byte, objectBytes)
	fill(b, oldBytes)
	if !c.hit(func() { c.expect(kind(b), oldBytes); c.expect(kind(b), oldBytes) }) {
		c.t.Error("a living object was not kept")
	}
	return memmon.RangeOf(b)
}

// TestSoakStaleCacheRemapRace has one thread unmap memory while another maps the address again as soon as it can, and sends what it finds
// there, also while the first one is still inside of its call.
func TestSoakStaleCacheRemapRace(t *testing.T) {
	for who, answer := range answers {
		t.Run(who, func(t *testing.T) {
			a := answer.arbiter(t)
			c := cachedBy(t, newWired(t, Config{}), a)
			early, again, n := 0, 0, testutil.Count(t, 200, 20000)
			for range n {
				m := newMemory(t, false)
				fill(m.bytes, oldBytes)
				kind, goes := answer.of(a, m.where)
				m.goes = goes
				c.expect(kind(m.bytes), oldBytes)
				unmapped := m.unmapBeside()
				if mapped, inside := m.takeBack(unmapped); mapped {
					again++
					fill(m.bytes, newBytes)
					c.expect(kind(m.bytes), newBytes)
					if inside {
						early++
					}
				}
				if err := unmapped.wait(); err != nil {
					t.Fatal(err)
				}
				m.goes()
				m.close()
			}
			t.Logf("registration: %d of %d times the address was mapped again, %d before munmap had returned", again, n, early)
			if again == 0 {
				t.Error("nothing was shown")
			}
		})
	}
}

// TestForeignMemoryIsNotCached has a monitor that claims to see everything, and userfaultfd: memory that other processes can change is not kept.
func TestForeignMemoryIsNotCached(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, filled(memoryBytes, oldBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	for who, arbiter := range map[string]func(*testing.T) *memmon.Arbiter{"monitor": newArbiter, "userfaultfd": userfaultArbiter} {
		t.Run(who, func(t *testing.T) {
			c := cachedBy(t, newWired(t, Config{}), arbiter(t))
			shared := newMemory(t, true)
			defer shared.close()
			fill(shared.bytes, oldBytes)
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			fd := sys.NewFD(int(f.Fd()), "file")
			defer fd.Disown() // it is f's
			view, err := sys.Map(fd, 0, memoryBytes, true)
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			for what, b := range map[string][]byte{"of a memory file": shared.bytes, "of a file": view.Bytes()} {
				for range 3 {
					r, err := c.cache.Acquire(ofNobody(b))
					switch {
					case errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.EFAULT): // nothing of this file system can be pinned
						continue
					case err != nil:
						t.Fatal(err)
					case r.Why() != mrcache.NoMonitor:
						t.Errorf("%s: %v", what, r.Why())
					}
					if carries := c.carries(r.Handle(), memoryBytes); carries != oldBytes {
						t.Errorf("%s: carries %s", what, carries)
					}
					if err := r.Release(); err != nil {
						t.Error(err)
					}
				}
			}
			if s := c.cache.Stats(); s.Hits != 0 || s.NoMonitor < 3 || s.Entries != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}
