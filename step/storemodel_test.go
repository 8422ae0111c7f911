package step

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelStore is a store beside what it must hold.
type modelStore struct {
	*HeapStore
	want []byte
}

// TestMemoryPoolModel: whatever stores of one pool do, and in whatever order, they hold what
// was written, memory is counted right, and each piece is freed once and left alone.
func TestMemoryPoolModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]uint64{0, 300 << 10, 2 << 20}).Draw(t, "limit")
		pool, src := memoryPool(limit)
		failing, closed := false, false
		src.fail = func(int) bool { return failing }
		stores := make([]*modelStore, 3)
		for i := range stores {
			stores[i] = &modelStore{HeapStore: pool.NewStore()}
		}
		one := func(t *rapid.T) *modelStore { return stores[rapid.IntRange(0, len(stores)-1).Draw(t, "store")] }
		size := rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(0, 100_000), rapid.IntRange(0, 700_000))
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) { one(t).fill(t, size.Draw(t, "size"), failing, limit != 0) },
			"expect": func(t *rapid.T) {
				one(t).Expect(rapid.OneOf(rapid.Uint64Range(0, 1<<21), rapid.Uint64Range(1<<40+1, 1<<64-1)).Draw(t, "expected"))
			},
			"reset": func(t *rapid.T) {
				s := one(t)
				s.Reset()
				s.want = nil
			},
			"discard": func(t *rapid.T) {
				s := one(t)
				src.keep(s.HeapStore)
				s.Discard()
				s.want = nil
			},
			"trim": func(*rapid.T) {
				pool.Trim()
				if free := pool.Stats().Free; free != 0 {
					t.Errorf("%d bytes are free", free)
				}
			},
			"fail": func(t *rapid.T) { failing = !failing },
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "chance") == 0 {
					pool.Close()
					closed = true
				}
			},
			"": func(t *rapid.T) { agree(t, pool, src, stores, closed) },
		})
		for _, s := range stores {
			s.Reset()
		}
		pool.Close()
		pool.Close()
		for _, fault := range src.finish() {
			t.Error(fault)
		}
	})
}

// fill allocates and writes.
func (s *modelStore) fill(t *rapid.T, n int, failing, limited bool) {
	align := rapid.SampledFrom([]int{1, 3, 8, 64, 1000}).Draw(t, "align")
	off, b, err := s.Alloc(n, align)
	switch {
	case failing && errors.Is(err, errNoMemory), limited && errors.Is(err, ErrStoreFull):
		return // and the step goes on
	case err != nil:
		t.Fatal(err)
	}
	for len(s.want)%align != 0 {
		s.want = append(s.want, 0)
	}
	if off != uint64(len(s.want)) || len(b) != n || cap(b) != n {
		t.Fatalf("Alloc(%d, %d) = %d, %d bytes of %d; want %d", n, align, off, len(b), cap(b), len(s.want))
	}
	fill := byte(1 + len(s.want)%200)
	for i := range b {
		b[i] = fill
	}
	s.want = append(s.want, b...)
}

// agree compares everything with what it must be.
func agree(t *rapid.T, pool *HeapPool, src *storeSource, stores []*modelStore, closed bool) {
	used := uint64(0)
	for _, s := range stores {
		pieces, err := s.Slices(0, s.Size())
		if err == nil {
			err = extentsAgree(s.HeapStore)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(slices.Concat(pieces...), s.want) {
			t.Fatal("a store holds something else than was written")
		}
		for _, e := range s.Extents() {
			used += uint64(e.Memory.(*storeMemory).n)
		}
	}
	st := pool.Stats()
	_, _, out := src.counts()
	switch {
	case st.Held != out || st.Held-st.Free != used:
		t.Fatalf("%+v, while %d bytes are out and %d in use", st, out, used)
	case st.Limit != 0 && st.Held > st.Limit:
		t.Fatalf("%+v", st)
	case closed && st.Free != 0:
		t.Fatalf("%+v of a closed pool", st)
	}
	for _, fault := range src.check() {
		t.Fatal(fault)
	}
}
