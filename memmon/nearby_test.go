package memmon

import (
	"slices"
	"testing"
)

func TestNearby(t *testing.T) {
	const granule = 1 << granuleBits
	n := nearby{}
	ranges := []Range{{10 * granule, 4096}, {10*granule + 4096, 4096}, {11*granule - 4096, 8192}, {8 * granule, 4 * granule}, {20 * granule, 4096}}
	var all []*userfaultWatch
	for _, r := range ranges {
		w := &userfaultWatch{r: r}
		all = append(all, w)
		n.add(w)
	}
	for i, c := range []struct {
		r    Range
		want []int
	}{
		{Range{10 * granule, 1}, []int{0, 3}},
		{Range{10*granule + 4095, 2}, []int{0, 1, 3}},
		{Range{11 * granule, 1}, []int{2, 3}},
		{Range{12 * granule, 4096}, nil},
		{Range{0, 100 * granule}, []int{0, 1, 2, 3, 4}},
	} {
		var got []int
		n.overlapping(c.r, func(w *userfaultWatch) { got = append(got, slices.Index(all, w)) })
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%d: %v, not %v", i, got, c.want)
		}
	}
	for _, w := range all {
		n.remove(w)
		n.overlapping(Range{0, 100 * granule}, func(o *userfaultWatch) {
			if o == w {
				t.Errorf("%v is still there", w.r)
			}
		})
	}
	if len(n) != 0 {
		t.Errorf("%d granules are left", len(n))
	}
}
