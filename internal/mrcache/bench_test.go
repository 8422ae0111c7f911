package mrcache

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// cpu-ns/op is what a machine that has other work as well can be judged by: the processor time of the whole process.

var (
	benchEntries    = []int{10, 1000, 100_000}
	benchGoroutines = []int{1, 2, 8}
	benchKinds      = []string{"arena", "heap", "owner", "watched"}
)

// nobody is a registrar that does nothing.
type nobody struct{ n atomic.Uint64 }

func (d *nobody) Register([]byte) (uint64, error) { return d.n.Add(1), nil }
func (d *nobody) Deregister(uint64) error         { return nil }

// filled is a cache with n entries of a kind, a page each, and how to kill one of them.
func filled(b *testing.B, kind string, n int) (*Cache[uint64], []memmon.Kind, func(int)) {
	b.Helper()
	a, err := memmon.NewArbiter()
	if err != nil {
		b.Fatal(err)
	}
	w := newWatcher()
	if err := a.Import(w); err != nil {
		b.Fatal(err)
	}
	c, err := New(&nobody{}, Config{Arbiter: a, MaxCount: n, MaxBytes: ^uint64(0)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = c.Close(), a.Close() })
	kinds, kill := memory(b, a, w, kind, n)
	for _, k := range kinds {
		pass(b, c, k)
	}
	return c, kinds, kill
}

// memory is n pages of a kind in no order, and how to kill one. Each page of an owner has one of its own; the pages of an arena are all of one.
func memory(b *testing.B, a *memmon.Arbiter, w *watcher, kind string, n int) ([]memmon.Kind, func(int)) {
	kinds, size, at := make([]memmon.Kind, n), int(pageSize), rand.Perm(n)
	page := func(m []byte, i int) []byte { return m[at[i]*size : (at[i]+1)*size] }
	switch kind {
	case "arena":
		m := arena(b, a, n)
		for i := range kinds {
			kinds[i] = memmon.Mapped(page(m.Bytes(), i), m)
		}
		return kinds, nil
	case "heap":
		for _, i := range at {
			kinds[i] = memmon.HeapBytes(make([]byte, size))
		}
		return kinds, nil
	case "owner":
		m, owners := pages(b, n).Bytes(), make([]*owner, n)
		for i := range kinds {
			owners[i] = new(owner)
			kinds[i] = memmon.Mapped(page(m, i), owners[i])
		}
		return kinds, func(i int) { owners[i].n.Add(1) }
	}
	m := pages(b, n).Bytes()
	for i := range kinds {
		kinds[i] = memmon.Mapped(page(m, i), nil)
	}
	return kinds, func(i int) { w.goes(memmon.RangeOf(kinds[i].Bytes())) }
}

func pass[H any](b testing.TB, c *Cache[H], k memmon.Kind) {
	r, err := c.Acquire(k)
	if err == nil {
		err = r.Release()
	}
	if err != nil {
		b.Error(err)
	}
}

// spread runs b.N operations in some goroutines, each with random numbers of its own below n.
func spread(b *testing.B, goroutines, n int, do func(i int)) {
	b.ReportAllocs()
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	cpu := sys.ProcessorTime()
	for g := range goroutines {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			for {
				const batch = 100
				rest := left.Add(-batch) + batch
				if rest <= 0 {
					return
				}
				for range min(rest, batch) {
					do(int(rnd.Uint64() % uint64(n)))
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(sys.ProcessorTime()-cpu)/float64(b.N), "cpu-ns/op")
}

func matrix(b *testing.B, kinds []string, entries, goroutines []int, run func(b *testing.B, kind string, entries, goroutines int)) {
	for _, kind := range kinds {
		for _, n := range entries {
			for _, g := range goroutines {
				b.Run(fmt.Sprintf("%s/entries=%d/goroutines=%d", kind, n, g), func(b *testing.B) { run(b, kind, n, g) })
			}
		}
	}
}

// BenchmarkHit is Acquire and Release of what is kept, at random: with many entries none of them is in the processor's caches, nor is what
// the benchmark itself reads of them.
func BenchmarkHit(b *testing.B) {
	matrix(b, benchKinds, benchEntries, benchGoroutines, func(b *testing.B, kind string, n, g int) {
		c, kinds, _ := filled(b, kind, n)
		spread(b, g, n, func(i int) { pass(b, c, kinds[i]) })
	})
}

// BenchmarkHitWarm is the same with ten buffers that are used over and over, among many.
func BenchmarkHitWarm(b *testing.B) {
	matrix(b, benchKinds, benchEntries, benchGoroutines, func(b *testing.B, kind string, n, g int) {
		c, kinds, _ := filled(b, kind, n)
		spread(b, g, 10, func(i int) { pass(b, c, kinds[i]) })
	})
}

// BenchmarkHitFloor is what the benchmark of random hits costs without the cache: the buffer is looked at, and its owner asked.
func BenchmarkHitFloor(b *testing.B) {
	matrix(b, []string{"owner"}, benchEntries, benchGoroutines[:1], func(b *testing.B, kind string, n, g int) {
		_, kinds, _ := filled(b, kind, n)
		spread(b, g, n, func(i int) {
			if memmon.RangeOf(kinds[i].Bytes()).Len == 0 || kinds[i].Generation() != 0 {
				b.Error("not as it was made")
			}
		})
	})
}

// BenchmarkMiss is a look-up of what is not kept, without the registration: memory of other owners, at addresses that are known.
func BenchmarkMiss(b *testing.B) {
	matrix(b, []string{"owner"}, benchEntries, benchGoroutines, func(b *testing.B, kind string, n, g int) {
		c, kinds, _ := filled(b, kind, n)
		others := make([]memmon.Kind, n)
		for i, k := range kinds {
			others[i] = memmon.Mapped(k.Bytes(), new(owner))
		}
		spread(b, g, n, func(i int) {
			if r, _ := c.find(others[i], memmon.RangeOf(others[i].Bytes()), 0); r.entry != nil {
				b.Error("a hit")
			}
		})
	})
}

// BenchmarkInsert registers what is not kept in a cache that is full, so that another one has to go. The registrar does nothing.
func BenchmarkInsert(b *testing.B) {
	matrix(b, []string{"arena", "heap", "owner"}, benchEntries, benchGoroutines, func(b *testing.B, kind string, n, g int) {
		c, _, _ := filled(b, kind, n)
		others, _ := memory(b, c.cfg.Arbiter, nil, kind, 2*n+2*g)
		var next atomic.Uint64
		spread(b, g, n, func(int) { pass(b, c, others[next.Add(1)%uint64(len(others))]) })
	})
}

// BenchmarkInvalidate is the death of an entry, and its return. For watched memory that is mostly to ask the kernel what it is, and the watcher of
// the tests, which looks at all watches.
func BenchmarkInvalidate(b *testing.B) {
	run := func(b *testing.B, kind string, n, g int) {
		c, kinds, kill := filled(b, kind, n)
		spread(b, g, n, func(i int) {
			kill(i)
			pass(b, c, kinds[i])
		})
	}
	matrix(b, []string{"owner"}, benchEntries, benchGoroutines[:1], run)
	matrix(b, []string{"watched"}, benchEntries[:2], benchGoroutines[:1], run)
}

// BenchmarkGone is what it costs to tell of memory of which nothing is kept, until the goroutine has looked.
func BenchmarkGone(b *testing.B) {
	matrix(b, []string{"owner"}, benchEntries, benchGoroutines[:1], func(b *testing.B, kind string, n, g int) {
		c, _, _ := filled(b, kind, n)
		spread(b, g, n, func(i int) { c.look(memmon.Range{Addr: 1<<40 + uint64(i)*pageSize, Len: pageSize}) })
	})
}
