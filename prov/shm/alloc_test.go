package shm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestBlockSize(t *testing.T) {
	for _, c := range []struct{ n, want uint64 }{
		{0, 64}, {1, 64}, {64, 64}, {65, 128}, {129, 192}, {256, 256}, {257, 320}, {512, 512}, {513, 640}, {1024, 1024},
		{1025, 1280}, {32 << 10, 32 << 10}, {32<<10 + 1, 36 << 10}, {64 << 10, 64 << 10}, {64<<10 + 1, 68 << 10}, {5 << 30, 5 << 30},
	} {
		if got := blockSize(c.n); got != c.want {
			t.Errorf("a block of %d bytes takes %d, want %d", c.n, got, c.want)
		}
	}
	for n := uint64(1); n <= smallMax; n++ {
		size := blockSize(n)
		if size < n || size%blockUnit != 0 || blockSize(size) != size || n > 256 && size-n > n/4+blockUnit {
			t.Fatalf("a block of %d bytes takes %d", n, size)
		}
	}
}

func TestSegmentsGrow(t *testing.T) {
	a := newAllocator()
	if got := a.segmentSize(1); got != minSegment {
		t.Errorf("the first segment has %d bytes", got)
	}
	if got := a.segmentSize(3<<30 + 1); got != 3<<30+pageSize {
		t.Errorf("a segment for a large block has %d bytes", got)
	}
	a.add(0, 40<<20)
	if got := a.segmentSize(1); got != 32<<20 {
		t.Errorf("after 40 MiB the next has %d bytes", got)
	}
	a.add(1, 1<<30)
	if got := a.segmentSize(1); got != maxSegment {
		t.Errorf("after 1 GiB the next has %d bytes", got)
	}
}

// Blocks never overlap, are aligned, lie in their segment, and give all their space back.
func TestAllocator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAllocator()
		var out []extent
		next := uint32(0)
		grow := func(n uint64) {
			a.add(next, a.segmentSize(n))
			next++
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.OneOf(rapid.Uint64Range(0, 4096), rapid.Uint64Range(0, 200<<10), rapid.Uint64Range(1<<20, 3<<20)).Draw(t, "n")
				e, ok := a.take(n)
				if !ok {
					grow(n)
					if e, ok = a.take(n); !ok && blockSize(n) > smallMax {
						t.Fatalf("no room for %d bytes in a new segment", n)
					}
				}
				checkBlock(t, a, e, n)
				for _, o := range out {
					if o.seg == e.seg && o.off < e.off+e.len && e.off < o.off+o.len {
						t.Fatalf("%v overlaps %v", e, o)
					}
				}
				out = append(out, e)
			},
			"put": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "i")
				a.put(out[i])
				out = slices.Delete(out, i, i+1)
			},
		})
		for _, e := range out {
			a.put(e)
		}
		if a.used != 0 || len(a.spans) != 0 {
			t.Fatalf("all is back, but %d bytes and %d spans are in use", a.used, len(a.spans))
		}
		if len(a.idle) != int(next) || a.empty != a.total {
			t.Fatalf("all is back, but of %d segments %d are idle, of %d bytes %d", next, len(a.idle), a.total, a.empty)
		}
		for range next {
			a.shed(rapid.Uint64Range(0, 4<<20).Draw(t, "keep"))
		}
		if a.total != 0 || a.empty != 0 || len(a.segs) != 0 {
			t.Fatalf("no segment is left, but %d bytes, %d of them idle", a.total, a.empty)
		}
	})
}

func checkBlock(t *rapid.T, a *allocator, e extent, n uint64) {
	s := a.space(e.seg)
	if s == nil || e.len < n || e.off+e.len > s.size || e.off%blockUnit != 0 {
		t.Fatalf("%d bytes: block %v of a segment %v", n, e, s)
	}
	if n >= 64<<10 && e.off%pageSize != 0 {
		t.Fatalf("%d bytes: block %v is not on a page", n, e)
	}
}

// The size of a program's steps does not creep: equal rounds use equal space.
func TestAllocatorIsSteady(t *testing.T) {
	a := newAllocator()
	a.add(0, 8<<20)
	for range 1000 {
		var out []extent
		for _, n := range []uint64{100, 5000, 300 << 10, 1 << 20, 64, 64 << 10} {
			e, ok := a.take(n)
			if !ok {
				t.Fatalf("no room for %d bytes", n)
			}
			out = append(out, e)
		}
		for _, e := range out {
			a.put(e)
		}
	}
	if len(a.idle) != 1 {
		t.Error("the segment is not idle")
	}
}

// What is shed first is what is larger than all that is kept, then what has been idle for longest.
func TestShedOrder(t *testing.T) {
	a := newAllocator()
	var out []extent
	for i, size := range []uint64{1 << 20, 8 << 20, 2 << 20, 3 << 20} {
		a.add(uint32(i), size)
		e, ok := a.take(size)
		if !ok {
			t.Fatal("no room")
		}
		out = append(out, e)
	}
	if len(a.idle) != 0 || a.empty != 0 {
		t.Errorf("%d segments are idle, %d bytes", len(a.idle), a.empty)
	}
	for _, i := range []int{2, 0, 1, 3} {
		a.put(out[i])
	}
	for _, want := range []uint32{1, 2, 0, 3} {
		if got := a.shed(4 << 20); got != want {
			t.Errorf("segment %d instead of %d", got, want)
		}
	}
}
