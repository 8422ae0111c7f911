package step

import (
	"errors"
	"math"
	"slices"
	"testing"
)

const top = math.MaxUint64

func TestWithin(t *testing.T) {
	for _, tc := range []struct {
		start, count, shape dims
		ok                  bool
	}{
		{dims{0, 0}, dims{3, 4}, dims{3, 4}, true},
		{nil, dims{3, 4}, dims{3, 4}, true},
		{dims{3, 4}, dims{0, 0}, dims{3, 4}, true}, // empty at the upper edge
		{dims{4, 0}, dims{0, 0}, dims{3, 4}, false},
		{dims{2, 0}, dims{2, 1}, dims{3, 4}, false},
		{dims{top, 0}, dims{1, 1}, dims{3, 4}, false},
		{dims{1, 0}, dims{top, 1}, dims{3, 4}, false}, // the sum wraps to 0
		{dims{1 << 63}, dims{1 << 63}, dims{top}, false},
		{dims{1<<63 - 1}, dims{1 << 63}, dims{top}, true},
		{dims{0}, dims{1}, dims{3, 4}, false},
		{dims{0, 0}, dims{1}, dims{3, 4}, false},
		{dims{0}, nil, dims{3}, false},
		{dims{}, dims{}, dims{}, true},
		{nil, nil, nil, true},
	} {
		err := Box{tc.start, tc.count}.Within(tc.shape)
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrSelection) {
			t.Errorf("%v of %v in %v: %v", tc.count, tc.start, tc.shape, err)
		}
	}
}

func TestIntersect(t *testing.T) {
	for _, tc := range []struct {
		a, b, want Box
		ok         bool
	}{
		{Box{dims{0, 0}, dims{3, 4}}, Box{dims{1, 2}, dims{9, 9}}, Box{dims{1, 2}, dims{2, 2}}, true},
		{Box{nil, dims{3}}, Box{dims{1}, dims{1}}, Box{dims{1}, dims{1}}, true},
		{Box{dims{0}, dims{3}}, Box{dims{3}, dims{1}}, Box{}, false},
		{Box{dims{0}, dims{0}}, Box{dims{0}, dims{1}}, Box{}, false},
		// Ends beyond 64 bits.
		{Box{dims{1 << 63}, dims{top}}, Box{dims{0}, dims{top}}, Box{dims{1 << 63}, dims{top - 1<<63}}, true},
		{Box{dims{top}, dims{top}}, Box{dims{top - 1}, dims{2}}, Box{dims{top}, dims{1}}, true},
		{Box{dims{5}, dims{top}}, Box{dims{6}, dims{top}}, Box{dims{6}, dims{top - 1}}, true},
		// All is neutral.
		{All, Box{dims{1}, dims{2}}, Box{dims{1}, dims{2}}, true},
		{All, Box{dims{1}, dims{0}}, Box{dims{1}, dims{0}}, false},
		{All, All, All, true},
		// Boxes of different arrays, or that are none.
		{Box{dims{0}, dims{3}}, Box{dims{0, 0}, dims{1, 1}}, Box{}, false},
		{Box{dims{0, 0}, dims{3}}, Box{dims{0}, dims{3}}, Box{}, false},
		{Box{dims{0}, nil}, Box{dims{0}, dims{3}}, Box{}, false},
	} {
		for _, pair := range [][2]Box{{tc.a, tc.b}, {tc.b, tc.a}} {
			got, ok := pair[0].Intersect(pair[1])
			if ok != tc.ok || ok && !got.Equal(tc.want) {
				t.Errorf("%v and %v: %v, %v; want %v, %v", pair[0], pair[1], got, ok, tc.want, tc.ok)
			}
		}
	}
	a := Box{dims{1}, dims{2}}
	in, _ := All.Intersect(a)
	in.Start[0] = 9
	if a.Start[0] != 1 {
		t.Error("the result shares memory with the box")
	}
}

func TestBoxText(t *testing.T) {
	for _, tc := range []struct {
		b    Box
		text string
		dims int
	}{
		{All, "all", 0},
		{Box{dims{2, 0}, dims{4, 8}}, "{2, 0} {4, 8}", 2},
		{Box{nil, dims{4, 8}}, "{0, 0} {4, 8}", 2},
		{Box{dims{}, dims{}}, "{} {}", 0},
	} {
		if got := tc.b.String(); got != tc.text || tc.b.Dims() != tc.dims {
			t.Errorf("%q with %d dimensions, want %q and %d", got, tc.b.Dims(), tc.text, tc.dims)
		}
	}
	if (Box{nil, dims{2}}).Equal(All) || !(Box{nil, dims{2}}).Equal(Box{dims{0}, dims{2}}) || !All.Equal(Box{}) {
		t.Error("Equal")
	}
}

func TestElements(t *testing.T) {
	for _, tc := range []struct {
		dims []uint64
		n    int
		ok   bool
	}{
		{nil, 1, true},
		{dims{3, 4}, 12, true},
		{dims{top, top, 0}, 0, true}, // nothing is not too much
		{dims{math.MaxInt64}, math.MaxInt64, true},
		{dims{1 << 63}, 0, false},
		{dims{1 << 32, 1 << 32}, 0, false}, // wraps to 0
		{dims{1 << 31, 1 << 32}, 0, false},
		{slices.Repeat(dims{2}, 62), 1 << 62, true},
		{slices.Repeat(dims{2}, 64), 0, false},
	} {
		n, err := Elements(tc.dims)
		if n != tc.n || (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrSelection) {
			t.Errorf("%v: %d, %v", tc.dims, n, err)
		}
	}
}
