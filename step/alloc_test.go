package step

import (
	"context"
	"testing"

	"github.com/weft-fabric/weft/internal/shmem"
)

// TestFetchAllocates bounds what the reading of a variable costs beside its data:
// a step may have thousands.
func TestFetchAllocates(t *testing.T) {
	const n = 1000
	s, metas, data := manyVariables(t, n, 1)
	src := &memSource{data: data}
	dst := make([]float64, n)
	gets := make([]Get, 0, n)
	got := testing.AllocsPerRun(10, func() {
		src.pieces = src.pieces[:0]
		st, err := s.dec.Step(0, metas, src, nil)
		if err != nil {
			t.Fatal(err)
		}
		gets = gets[:0]
		for i, v := range st.Variables() {
			gets = append(gets, first(As[float64](v)).Into(nil, dst[i:i+1]))
		}
		if err := st.Fetch(t.Context(), gets...); err != nil {
			t.Fatal(err)
		}
	})
	if got > n/2+100 { // each value takes one
		t.Errorf("%v allocations for %d variables", got, n)
	}
}

// TestSmallReadsAllocate bounds what each small array of a step costs that is like the one before: no more
// than the selection takes where it is made.
func TestSmallReadsAllocate(t *testing.T) {
	const n = 200
	s, metas, data := manyVariables(t, n, 1)
	mem := shmem.Bytes(make([]uint64, (len(data[0])+7)/8))
	copy(mem, data[0])
	src := &lender{memSource: &memSource{data: [][]byte{mem}}}
	var st *Step
	for number := range uint64(3) {
		var err error
		if st, err = s.dec.Step(number, metas, src, nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, dst, sel := t.Context(), make([]float64, 1), Selector(All)
	x := lookup[float64](t, st, "v00001")
	gets := make([]Get, 1)
	for what, do := range map[string]func() error{
		"Lookup": func() error {
			_, err := Lookup[float64](st, "v00101")
			return err
		},
		"Into and Fetch": func() error {
			gets[0] = x.Into(sel, dst)
			return st.Fetch(ctx, gets...)
		},
		"Get": func() error {
			_, err := x.Get(ctx, sel, dst)
			return err
		},
		"View": func() error {
			v, err := x.View(ctx, sel)
			if err == nil {
				v.Release()
			}
			return err
		},
	} {
		got := testing.AllocsPerRun(100, func() {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		})
		if got != 0 {
			t.Errorf("%s: %v allocations", what, got)
		}
	}
}

// lender is a memSource that lends what it has, and allocates nothing for it.
type lender struct{ *memSource }

func (l *lender) View(_ context.Context, rank int, off, n uint64) ([]byte, func(), error) {
	return l.data[rank][off : off+n : off+n], func() {}, nil
}

func (l *lender) Held(ctx context.Context, rank int, off, n uint64) ([]byte, func(), error) {
	return l.View(ctx, rank, off, n)
}

// TestSmallReadingsDoNotShare: the memory inside a reading is its own, whatever
// the number of dimensions and of parts.
func TestSmallReadingsDoNotShare(t *testing.T) {
	for dims := 1; dims <= fewDims+2; dims++ {
		r := &reading{}
		r.free = r.numbers[:]
		var all [][]uint64
		for k := range 7 {
			s := r.take(dims)
			if len(s) != dims || cap(s) != dims {
				t.Fatalf("%d numbers of capacity %d", len(s), cap(s))
			}
			for i := range s {
				if s[i] != 0 {
					t.Fatal("not zero")
				}
				s[i] = uint64(k + 1)
			}
			all = append(all, s)
		}
		for k, s := range all {
			for i := range s {
				if s[i] != uint64(k+1) {
					t.Fatalf("%d dimensions: slice %d was overwritten", dims, k)
				}
			}
		}
	}
}

// TestMemoryPoolAllocates: equal steps allocate nothing once their memory is there; only a
// list of extents that is asked for costs one.
func TestMemoryPoolAllocates(t *testing.T) {
	for _, expect := range []uint64{0, 3_000_000} {
		pool, src := memoryPool(0)
		stores := []*HeapStore{pool.NewStore(), pool.NewStore()}
		i := 0
		fill := func() *HeapStore {
			s := stores[i%len(stores)]
			i++
			s.Reset()
			s.Expect(expect)
			for _, n := range []int{100, 70_000, 2_000_000, 3} {
				if _, _, err := s.Alloc(n, 8); err != nil {
					t.Fatal(err)
				}
			}
			return s
		}
		fill()
		fill()
		asked, _, _ := src.counts()
		if got := testing.AllocsPerRun(50, func() { fill() }); got != 0 {
			t.Errorf("expecting %d: %v allocations a step", expect, got)
		}
		if got := testing.AllocsPerRun(50, func() { fill().Extents() }); got > 1 {
			t.Errorf("expecting %d: %v allocations a step with its extents", expect, got)
		}
		if now, _, _ := src.counts(); now != asked {
			t.Errorf("expecting %d: memory was got %d times, then %d", expect, asked, now)
		}
	}
}
