package step

import (
	"math/rand/v2"
	"testing"
)

func part(lo, hi []uint64) overlap { return overlap{lo: lo, hi: hi} }

func TestDisjoint(t *testing.T) {
	for _, tc := range []struct {
		name  string
		parts []overlap
		want  bool
	}{
		{"none", nil, true},
		{"one", []overlap{part([]uint64{0}, []uint64{4})}, true},
		{"touching", []overlap{part([]uint64{4}, []uint64{8}), part([]uint64{0}, []uint64{4})}, true},
		{"shared element", []overlap{part([]uint64{0}, []uint64{5}), part([]uint64{4}, []uint64{8})}, false},
		{"equal", []overlap{part([]uint64{0, 0}, []uint64{2, 2}), part([]uint64{0, 0}, []uint64{2, 2})}, false},
		{"L shape", []overlap{
			part([]uint64{0, 0}, []uint64{2, 8}), part([]uint64{2, 0}, []uint64{8, 3}), part([]uint64{2, 3}, []uint64{8, 8}),
		}, true},
		{"inside", []overlap{part([]uint64{0, 0}, []uint64{9, 9}), part([]uint64{3, 3}, []uint64{4, 4})}, false},
	} {
		if got := disjoint(tc.parts); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// A pinwheel cannot be cut: disjoint may not know, covered must.
func TestCoveredPinwheel(t *testing.T) {
	parts := []overlap{
		part([]uint64{0, 0}, []uint64{1, 2}), part([]uint64{0, 2}, []uint64{2, 3}), part([]uint64{2, 1}, []uint64{3, 3}),
		part([]uint64{1, 0}, []uint64{3, 1}), part([]uint64{1, 1}, []uint64{2, 2}),
	}
	if n, _ := covered(t.Context(), parts, []uint64{3, 3}, 9); n != 9 {
		t.Errorf("covered %d, want 9", n)
	}
}

// disjoint never claims it of parts that overlap, and covered counts the union.
func TestCoverAgainstCounting(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		count := make([]uint64, 1+r.IntN(3))
		total := 1
		for d := range count {
			count[d] = 1 + r.Uint64N(12)
			total *= int(count[d])
		}
		var parts []overlap
		sum := uint64(0)
		seen := make(map[[3]uint64]bool)
		for range r.IntN(6) {
			p := overlap{lo: make([]uint64, len(count)), hi: make([]uint64, len(count))}
			for d, n := range count {
				p.lo[d] = r.Uint64N(n)
				p.hi[d] = p.lo[d] + 1 + r.Uint64N(n-p.lo[d])
			}
			sum += p.elements()
			mark(seen, p, 0, [3]uint64{})
			parts = append(parts, p)
		}
		if got, _ := covered(t.Context(), parts, count, total); got != uint64(len(seen)) {
			t.Fatalf("covered %d, want %d: %v of %v", got, len(seen), parts, count)
		}
		if disjoint(parts) && sum != uint64(len(seen)) {
			t.Fatalf("called disjoint: %v of %v", parts, count)
		}
		if len(count) == 1 && !disjoint(parts) && sum == uint64(len(seen)) {
			t.Fatalf("not called disjoint in one dimension: %v", parts)
		}
	}
}

func mark(seen map[[3]uint64]bool, p overlap, d int, at [3]uint64) {
	if d == len(p.lo) {
		seen[at] = true
		return
	}
	for i := p.lo[d]; i < p.hi[d]; i++ {
		at[d] = i
		mark(seen, p, d+1, at)
	}
}

func TestDisjointIsFastForGrids(t *testing.T) {
	var parts []overlap
	for i := range uint64(100) {
		for j := range uint64(100) {
			parts = append(parts, part([]uint64{10 * i, 7 * j}, []uint64{10*i + 10, 7*j + 7}))
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	if !disjoint(parts) {
		t.Error("a grid of blocks was not seen to be disjoint")
	}
}
