package step

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/shmem"
)

// aligned8 reports whether b starts at a multiple of 8 in memory.
func aligned8(b []byte) bool {
	_, ok := shmem.As[uint64](b[:len(b)&^7])
	return ok
}

// contents reads a range of a store in one piece.
func contents(t testing.TB, s Store, off, n uint64) []byte {
	t.Helper()
	pieces, err := s.Slices(off, n)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, p := range pieces {
		if len(p) == 0 {
			t.Error("an empty piece")
		}
		out = append(out, p...)
	}
	if uint64(len(out)) != n {
		t.Fatalf("%d bytes in pieces, want %d", len(out), n)
	}
	return out
}

// Random allocations: what is written is read back at its offset, gaps are
// zero, also on memory that had something else in it, and nothing moves.
func TestStoreModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	pool := NewHeapPool(0)
	s := pool.NewStore()
	for step := range 30 {
		var model []byte
		var blocks [][]byte
		var offs []uint64
		for i := range 1 + rng.IntN(40) {
			n := rng.IntN(3000)
			if rng.IntN(8) == 0 {
				n = rng.IntN(300_000)
			}
			align := []int{1, 2, 3, 8, 16, 24, 64, 1000}[rng.IntN(8)]
			off, b, err := s.Alloc(n, align)
			if err != nil {
				t.Fatal(err)
			}
			for len(model)%align != 0 {
				model = append(model, 0)
			}
			if off != uint64(len(model)) || len(b) != n || cap(b) != n {
				t.Fatalf("step %d: Alloc(%d, %d) = offset %d, %d bytes of %d; want offset %d", step, n, align, off, len(b), cap(b), len(model))
			}
			if align%8 == 0 && align <= 64 && !aligned8(b) {
				t.Errorf("Alloc(%d, %d) is not aligned in memory", n, align)
			}
			for k := range b {
				b[k] = byte(i + k + step + 1)
			}
			model = append(model, b...)
			blocks, offs = append(blocks, b), append(offs, off)
			if s.Size() != uint64(len(model)) {
				t.Fatalf("Size() = %d, want %d", s.Size(), len(model))
			}
		}
		if got := contents(t, s, 0, s.Size()); !bytes.Equal(got, model) {
			t.Fatalf("step %d: contents differ", step)
		}
		for i, b := range blocks {
			if !bytes.Equal(b, model[offs[i]:][:len(b)]) {
				t.Errorf("step %d: block %d changed", step, i)
			}
		}
		for range 20 {
			off := uint64(rng.IntN(len(model) + 1))
			n := uint64(rng.IntN(len(model) + 1 - int(off)))
			if got := contents(t, s, off, n); !bytes.Equal(got, model[off:off+n]) {
				t.Fatalf("step %d: bytes %d..%d differ", step, off, off+n)
			}
		}
		s.Reset()
		if s.Size() != 0 {
			t.Fatal("Size() after Reset")
		}
	}
}

func TestStoreZeroValue(t *testing.T) {
	var s HeapStore
	s.Reset()
	off, b, err := s.Alloc(10, 4)
	if err != nil || off != 0 || len(b) != 10 {
		t.Fatalf("offset %d, %d bytes, %v", off, len(b), err)
	}
	if off, b, err = s.Alloc(0, 16); err != nil || off != 16 || len(b) != 0 || s.Size() != 16 {
		t.Errorf("padding: offset %d, %d bytes, size %d, %v", off, len(b), s.Size(), err)
	}
	if off, _, err = s.Alloc(0, 16); err != nil || off != 16 {
		t.Errorf("padding twice: offset %d, %v", off, err)
	}
	if p, err := s.Slices(16, 0); err != nil || p != nil {
		t.Errorf("nothing at the end: %v, %v", p, err)
	}
	var empty HeapStore
	if off, _, err := empty.Alloc(0, 16); err != nil || off != 0 || empty.Size() != 0 {
		t.Errorf("padding of nothing: %d, %v", off, err)
	}
}

func TestStoreRefuses(t *testing.T) {
	var s HeapStore
	if _, _, err := s.Alloc(100, 1); err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]uint64{{0, 101}, {101, 0}, {100, 1}, {1, ^uint64(0)}, {^uint64(0), 1}, {^uint64(0), ^uint64(0)}} {
		if _, err := s.Slices(r[0], r[1]); !errors.Is(err, ErrSelection) {
			t.Errorf("Slices(%d, %d): %v", r[0], r[1], err)
		}
	}
	for _, a := range [][2]int{{-1, 1}, {1, 0}, {1, -8}} {
		if _, _, err := s.Alloc(a[0], a[1]); !errors.Is(err, ErrSelection) {
			t.Errorf("Alloc(%d, %d): %v", a[0], a[1], err)
		}
	}
	if _, _, err := s.Alloc(1<<62, 1); !errors.Is(err, ErrStoreFull) {
		t.Errorf("a block larger than any memory: %v", err)
	}
	if s.Size() != 100 {
		t.Errorf("Size() = %d after refusals", s.Size())
	}
}

func TestPoolLimit(t *testing.T) {
	pool := NewHeapPool(1 << 20)
	a, b := pool.NewStore(), pool.NewStore()
	if _, _, err := a.Alloc(600<<10, 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Alloc(600<<10, 1); !errors.Is(err, ErrStoreFull) {
		t.Errorf("over the limit: %v", err)
	}
	if b.Size() != 0 {
		t.Errorf("Size() = %d after a refusal", b.Size())
	}
	if _, _, err := b.Alloc(100, 1); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	a.Reset()
	if st := pool.Stats(); st.Free != 640<<10 || st.Held != 704<<10 || st.Limit != 1<<20 {
		t.Errorf("stats %+v", st)
	}
	// The free segment is too small for this one and gives way to it.
	if _, _, err := a.Alloc(900<<10, 1); err != nil {
		t.Errorf("in place of a free segment: %v", err)
	}
	if st := pool.Stats(); st.Free != 0 || st.Held > st.Limit {
		t.Errorf("stats %+v", st)
	}
	b.Reset()
	a.Reset()
	if st := pool.Stats(); st.Free != st.Held {
		t.Errorf("stats %+v after everything was given back", st)
	}
}

// Near the limit a segment is as small as it can be.
func TestPoolTightLimit(t *testing.T) {
	pool := NewHeapPool(2*minSegment + 100)
	s := pool.NewStore()
	for i, n := range []int{minSegment, 10, minSegment - 20} {
		if _, _, err := s.Alloc(n, 1); err != nil {
			t.Fatalf("block %d: %v", i, err)
		}
	}
	if _, _, err := s.Alloc(100, 1); !errors.Is(err, ErrStoreFull) {
		t.Errorf("over the limit: %v", err)
	}
	if s.Size() != 2*minSegment-10 {
		t.Errorf("Size() = %d", s.Size())
	}
}

// Equal steps use the same memory again, also when several are alive at a time.
func TestPoolRecycles(t *testing.T) {
	pool := NewHeapPool(0)
	stores := []*HeapStore{pool.NewStore(), pool.NewStore(), pool.NewStore()}
	fill := func(s *HeapStore) {
		s.Reset()
		for _, n := range []int{100, 70_000, 8 << 20, 3, 200_000, 1 << 20} {
			if _, _, err := s.Alloc(n, 8); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 2 * len(stores) {
		fill(stores[i%len(stores)])
	}
	held := pool.Stats().Held
	i := 0
	allocs := testing.AllocsPerRun(50, func() {
		fill(stores[i%len(stores)])
		i++
	})
	if allocs > 0 {
		t.Errorf("%v allocations a step", allocs)
	}
	if now := pool.Stats().Held; now != held {
		t.Errorf("pool holds %d bytes, then %d", held, now)
	}
}

// The memory of one large step does not stay for ever.
func TestPoolForgetsLargeSteps(t *testing.T) {
	pool := NewHeapPool(0)
	s := pool.NewStore()
	for _, n := range []int{10, 16 << 20} {
		if _, _, err := s.Alloc(n, 1); err != nil {
			t.Fatal(err)
		}
	}
	s.Reset()
	if pool.Stats().Held < 16<<20 {
		t.Fatalf("stats %+v", pool.Stats())
	}
	for range idleSteps + 1 {
		if _, _, err := s.Alloc(10, 1); err != nil {
			t.Fatal(err)
		}
		s.Reset()
	}
	if held := pool.Stats().Held; held > 1<<20 || held == 0 {
		t.Errorf("pool holds %d bytes", held)
	}
}

func TestPoolConcurrent(t *testing.T) {
	pool := NewHeapPool(64 << 20)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for g := range errs {
		wg.Go(func() {
			s := pool.NewStore()
			for i := range 30 {
				for k := range 5 {
					_, b, err := s.Alloc(10_000*(k+g+1), 8)
					if err != nil {
						errs[g] = err
						return
					}
					for j := range b {
						b[j] = byte(g)
					}
				}
				pieces, err := s.Slices(0, s.Size())
				for _, p := range pieces {
					if len(bytes.Trim(p, string([]byte{byte(g), 0}))) != 0 {
						err = fmt.Errorf("step %d has bytes of another store", i)
					}
				}
				if err != nil {
					errs[g] = err
					return
				}
				s.Reset()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if st := pool.Stats(); st.Free != st.Held {
		t.Errorf("stats %+v after everything was given back", st)
	}
}

func BenchmarkStoreAlloc(b *testing.B) {
	var s HeapStore
	b.ReportAllocs()
	for b.Loop() {
		for range 16 {
			if _, _, err := s.Alloc(1<<20, 64); err != nil {
				b.Fatal(err)
			}
		}
		s.Reset()
	}
}

// TestLendingPool: memory that may be lent goes to nobody as it is: not to a step
// after its store was discarded, and not to the heap.
func TestLendingPool(t *testing.T) {
	if !shmem.CanRenew {
		t.Skip("this system gives no new pages (shmem.CanRenew)")
	}
	const n = 4 << 20
	pool := NewLendingPool(0)
	fill := func(pool *HeapPool) (*HeapStore, []byte) {
		s := pool.NewStore()
		_, b, err := s.Alloc(n, 64)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] = 'x'
		}
		return s, b
	}
	s, b := fill(pool)
	s.Discard()
	if bytes.IndexByte(b, 'x') >= 0 {
		t.Error("a discarded store left its bytes to the next")
	}
	if st := pool.Stats(); st.Free < n || st.Held != st.Free {
		t.Errorf("%+v", st)
	}
	_, forgotten := fill(NewLendingPool(0)) // with its store, in use, and its pool
	deadline := time.Now().Add(time.Minute)
	for bytes.IndexByte(forgotten, 'x') >= 0 {
		if time.Now().After(deadline) {
			t.Fatal("memory that nobody has is left as it is")
		}
		runtime.GC()
	}
}
