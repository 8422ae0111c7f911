package step

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// alloc is Alloc that must succeed.
func alloc(t testing.TB, s *HeapStore, n int) {
	t.Helper()
	if _, _, err := s.Alloc(n, 8); err != nil {
		t.Fatal(err)
	}
}

func finished(t *testing.T, src *storeSource) {
	t.Helper()
	for _, fault := range src.finish() {
		t.Error(fault)
	}
}

func TestSizeClass(t *testing.T) {
	for _, c := range [][2]int{
		{1, 64 << 10},
		{64 << 10, 64 << 10},
		{64<<10 + 1, 128 << 10},
		{600 << 10, 640 << 10},
		{1 << 20, 1 << 20},
		{1<<20 + 1, 1<<20 + 128<<10},
		{2<<20 - 1, 2 << 20},
		{1 << 30, 1 << 30},
		{1<<30 + 1, 1<<30 + 128<<20},
		{1 << 40, 1 << 40},
	} {
		if got := sizeClass(c[0]); got != c[1] {
			t.Errorf("sizeClass(%d) = %d, want %d", c[0], got, c[1])
		}
	}
}

// TestExpect: a store of the expected size lies in one segment, also after small blocks, and
// the next one of that size in the same.
func TestExpect(t *testing.T) {
	for _, n := range []int{8, 100, minSegment, minSegment + 1, 3_000_000, maxSegment + 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			pool, src := memoryPool(0)
			s := pool.NewStore()
			var memory StoreMemory
			for range 3 {
				s.Expect(uint64(n))
				alloc(t, s, min(n, 8))
				alloc(t, s, n-int(s.Size()))
				list := s.Extents()
				if len(list) != 1 || list[0].Length != uint64(n) || list[0].Offset != 0 {
					t.Fatalf("extents %v", list)
				}
				if memory == nil {
					memory = list[0].Memory
				}
				if list[0].Memory != memory {
					t.Error("an equal step got other memory")
				}
				s.Reset()
			}
			if asked, _, _ := src.counts(); asked != 1 {
				t.Errorf("%d segments were got", asked)
			}
			pool.Close()
			finished(t, src)
		})
	}
}

// TestExpectIsAHint: what does not come true, cannot be had, or is no size does no harm.
func TestExpectIsAHint(t *testing.T) {
	pool, src := memoryPool(1 << 20)
	s := pool.NewStore()
	for _, c := range []struct {
		name    string
		expect  uint64
		n       int
		extents int
	}{
		{"less", 500_000, 10, 1},
		{"more", 100_000, 400_000, 1},
		{"beyond the limit", 2 << 20, 100, 1},
		{"beyond any machine", 1<<40 + 1, 100, 1},
		{"no number", 1<<64 - 1, 100, 1},
		{"nothing", 0, 100, 1},
		{"an empty step", 500_000, 0, 0},
	} {
		s.Expect(c.expect)
		if _, _, err := s.Alloc(c.n, 1); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if list := s.Extents(); len(list) != c.extents {
			t.Errorf("%s: extents %v", c.name, list)
		}
		s.Reset()
	}
	s.Expect(100_000)
	s.Expect(0)
	alloc(t, s, 1)
	if used := pool.Stats().Held - pool.Stats().Free; used != minSegment {
		t.Errorf("%d bytes in use after a hint was taken back", used)
	}
	s.Reset()
	pool.Close()
	finished(t, src)
}

// TestExpectTooMuchReuses: equal steps use their memory again also when what they expect is
// never to be had.
func TestExpectTooMuchReuses(t *testing.T) {
	pool, src := memoryPool(1 << 20)
	s := pool.NewStore()
	for range 5 {
		s.Expect(10 << 20)
		alloc(t, s, 100)
		alloc(t, s, 200_000)
		s.Reset()
	}
	if asked, _, _ := src.counts(); asked != 2 {
		t.Errorf("%d segments were got for 2", asked)
	}
	pool.Close()
	finished(t, src)
}

// TestGrowingSteps: steps that grow a little each time rarely get new memory, and leave none
// of what they outgrew.
func TestGrowingSteps(t *testing.T) {
	pool, src := memoryPool(0)
	s := pool.NewStore()
	last := 1 << 20
	for range 200 {
		n := last + last/100
		s.Expect(uint64(last))
		alloc(t, s, n)
		s.Reset()
		if st := pool.Stats(); st.Held > uint64(2*n) {
			t.Fatalf("%d bytes are held for a step of %d", st.Held, n)
		}
		last = n
	}
	if asked, _, _ := src.counts(); asked > 30 {
		t.Errorf("%d segments were got", asked)
	}
	pool.Close()
	finished(t, src)
}

// TestShrunkSteps: small steps do not keep the memory of a large one, though it would do.
func TestShrunkSteps(t *testing.T) {
	pool, src := memoryPool(0)
	s := pool.NewStore()
	for i := range idleSteps + 2 {
		n := 100_000
		if i == 0 {
			n = 8 << 20
		}
		s.Expect(uint64(n))
		alloc(t, s, n)
		s.Reset()
	}
	if st := pool.Stats(); st.Held != 128<<10 {
		t.Errorf("%+v", st)
	}
	pool.Close()
	finished(t, src)
}

// TestMemoryPoolDiscards: what somebody may still look at is freed as it is, in every state
// of the pool.
func TestMemoryPoolDiscards(t *testing.T) {
	for _, closed := range []bool{false, true} {
		pool, src := memoryPool(0)
		s := pool.NewStore()
		_, b, err := s.Alloc(1000, 8)
		if err != nil {
			t.Fatal(err)
		}
		copy(b, "still looked at")
		src.keep(s)
		if closed {
			pool.Close()
		}
		s.Discard()
		if _, live, _ := src.counts(); live != 0 || pool.Stats().Held != 0 {
			t.Errorf("%d pieces are kept, %+v", live, pool.Stats())
		}
		pool.Close()
		finished(t, src)
	}
}

// TestPoolClose: stores that are in use go on, and nothing is kept.
func TestPoolClose(t *testing.T) {
	pool, src := memoryPool(0)
	s, other := pool.NewStore(), pool.NewStore()
	alloc(t, s, 1000)
	alloc(t, other, 1000)
	other.Reset()
	pool.Close()
	pool.Close()
	if _, live, _ := src.counts(); live != 1 {
		t.Errorf("%d pieces are live, want that in use", live)
	}
	alloc(t, s, 200_000)
	if got := contents(t, s, 0, s.Size()); len(got) != 201_000 {
		t.Error("the store has lost something")
	}
	s.Reset()
	finished(t, src)
	heap := NewHeapPool(0)
	h := heap.NewStore()
	alloc(t, h, 1000)
	heap.Close()
	h.Reset()
	if st := heap.Stats(); st.Held != 0 {
		t.Errorf("%+v of a closed pool in the heap", st)
	}
}

// TestHeapExtents: stores in the heap tell where their segments begin and end, without memory.
func TestHeapExtents(t *testing.T) {
	var s HeapStore
	if list := s.Extents(); list != nil {
		t.Errorf("extents %v of nothing", list)
	}
	alloc(t, &s, 60<<10)
	alloc(t, &s, 100<<10)
	want := []Extent{{0, 60 << 10, nil, 0}, {60 << 10, 100 << 10, nil, 0}}
	if list := s.Extents(); !slices.Equal(list, want) {
		t.Errorf("extents %v", list)
	}
}

// TestSourceFails: whichever allocation fails, the step is as it was before, its error says
// why and what was asked for, and the same call succeeds later.
func TestSourceFails(t *testing.T) {
	sizes := []int{100, 70_000, 3, 1_000_000, 200_000, 8}
	for fails := 1; ; fails++ {
		pool, src := memoryPool(0)
		src.fail = func(int) bool { return src.asked == fails }
		s := pool.NewStore()
		failed := false
		for _, n := range sizes {
			size, held := s.Size(), pool.Stats().Held
			_, _, err := s.Alloc(n, 1)
			if err == nil {
				continue
			}
			failed = true
			if !errors.Is(err, errNoMemory) || errors.Is(err, ErrStoreFull) || !bytes.Contains([]byte(err.Error()), []byte("bytes, on top of")) {
				t.Errorf("failure %d: %v", fails, err)
			}
			if s.Size() != size || pool.Stats().Held != held {
				t.Errorf("failure %d changed something", fails)
			}
			alloc(t, s, n)
		}
		if err := extentsAgree(s); err != nil {
			t.Error(err)
		}
		s.Reset()
		pool.Close()
		finished(t, src)
		if !failed {
			return
		}
	}
}

// shortMemory is memory that has fewer bytes than were asked for.
type shortMemory struct{ freed int }

func (*shortMemory) Bytes() []byte { return make([]byte, 100) }
func (m *shortMemory) Free()       { m.freed++ }

func TestSourceGivesLess(t *testing.T) {
	m := &shortMemory{}
	pool := NewMemoryPool(0, func(int) (StoreMemory, error) { return m, nil })
	s := pool.NewStore()
	if _, _, err := s.Alloc(10, 1); !errors.Is(err, errShortMemory) || m.freed != 1 || pool.Stats().Held != 0 {
		t.Errorf("%v, freed %d times, %+v", err, m.freed, pool.Stats())
	}
}

// TestSlowSource: while memory is made for one store, others go on.
func TestSlowSource(t *testing.T) {
	pool, src := memoryPool(0)
	ready := pool.NewStore()
	alloc(t, ready, 10)
	asked, goOn := make(chan struct{}), make(chan struct{})
	pool.alloc = func(n int) (StoreMemory, error) {
		close(asked)
		<-goOn
		return src.alloc(n)
	}
	done := make(chan error, 1)
	slow := pool.NewStore()
	go func() {
		_, _, err := slow.Alloc(10, 1)
		done <- err
	}()
	<-asked
	alloc(t, ready, 10)
	ready.Reset()
	alloc(t, ready, 10)
	if st := pool.Stats(); st.Held != 2*minSegment {
		t.Errorf("%+v, with what is being made", st)
	}
	pool.Close()
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
	slow.Reset()
	ready.Reset()
	finished(t, src)
}

// TestMemoryPoolConcurrent: stores of several goroutines share a pool under a limit that is
// too small for all, while it is closed.
func TestMemoryPoolConcurrent(t *testing.T) {
	pool, src := memoryPool(3 << 20)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			s := pool.NewStore()
			for i := range 60 {
				s.Expect(uint64(100_000 * (g + i%3)))
				if err := fillOne(s, byte(g+1), 40_000*(g+1)); err != nil {
					t.Error(err)
				}
				if i%7 == 0 {
					src.keep(s)
					s.Discard()
				}
				s.Reset()
				if g == 0 && i == 40 {
					pool.Close()
				}
			}
		})
	}
	wg.Wait()
	finished(t, src)
}

// fillOne fills a store until the limit or four blocks, and looks at it.
func fillOne(s *HeapStore, with byte, n int) error {
	for range 4 {
		_, b, err := s.Alloc(n, 64)
		if errors.Is(err, ErrStoreFull) {
			break
		}
		if err != nil {
			return err
		}
		for i := range b {
			b[i] = with
		}
	}
	pieces, err := s.Slices(0, s.Size())
	if err != nil {
		return err
	}
	if all := slices.Concat(pieces...); len(bytes.Trim(all, string([]byte{with, 0}))) != 0 {
		return errors.New("bytes of another store")
	}
	return nil
}

// TestEncoderOnMemory: puts and spans make the same step in any memory, though it had
// something else in it.
func TestEncoderOnMemory(t *testing.T) {
	pool, src := memoryPool(0)
	memory, heap := pool.NewStore(), NewHeapPool(0).NewStore()
	encoders := map[*HeapStore]*Encoder{memory: NewEncoder(EncoderConfig{Stats: true}), heap: NewEncoder(EncoderConfig{Stats: true})}
	for i := range 4 {
		var records, blocks [][]byte
		for _, s := range []*HeapStore{memory, heap} {
			out := encodeOn(t, encoders[s], s, i)
			records, blocks = append(records, out.Metadata), append(blocks, contents(t, s, 0, out.DataSize))
		}
		if !bytes.Equal(records[0], records[1]) || !bytes.Equal(blocks[0], blocks[1]) {
			t.Errorf("step %d differs", i)
		}
		if list := memory.Extents(); i > 0 && len(list) != 1 {
			t.Errorf("step %d: extents %v", i, list)
		}
		if err := extentsAgree(memory); err != nil {
			t.Error(err)
		}
		size := memory.Size()
		memory.Reset()
		heap.Reset()
		memory.Expect(size)
	}
	pool.Close()
	finished(t, src)
}

// encodeOn writes one step of a put, a span and a block of bytes.
func encodeOn(t *testing.T, e *Encoder, s *HeapStore, i int) Output {
	if e.Definition("x") == nil {
		define(t, e, "x", Float64, GlobalArray(10_000))
		define(t, e, "y", Int32, LocalArray(1))
		define(t, e, "z", Uint8, GlobalArray(3))
	}
	must(t, e.Begin(s))
	must(t, PutSlice(e, e.Definition("z"), All, []uint8{1, 2, byte(i)}))
	xs, err := SpanSlice[float64](e, e.Definition("x"), All)
	must(t, err)
	for k := range xs {
		xs[k] = float64(k + i)
	}
	ys, err := SpanSlice[int32](e, e.Definition("y"), Box{Count: []uint64{5}})
	must(t, err)
	for k := range ys {
		ys[k] = int32(k - i)
	}
	return end(t, e)
}

// makeshift is memory that a source gives for want of better.
type makeshift struct{ *storeMemory }

func (makeshift) Makeshift() {}

// TestMakeshift: such memory goes with its step, and the source is asked again.
func TestMakeshift(t *testing.T) {
	src := &storeSource{live: map[*storeMemory]bool{}, keeps: map[*storeMemory][]byte{}}
	short := true
	src.pool = NewMemoryPool(0, func(n int) (StoreMemory, error) {
		m, err := src.alloc(n)
		if short && err == nil {
			return makeshift{m.(*storeMemory)}, nil
		}
		return m, err
	})
	s := src.pool.NewStore()
	for n, want := range []int{1, 2, 3, 3, 3} { // calls of the source
		short = n < 2
		alloc(t, s, minSegment)
		s.Reset()
		if asked, live, _ := src.counts(); asked != want || live != min(max(n-1, 0), 1) {
			t.Errorf("after step %d: asked %d times, want %d; %d pieces are kept", n, asked, want, live)
		}
	}
	src.pool.Close()
	finished(t, src)
}
