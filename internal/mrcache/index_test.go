package mrcache

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// everywhere lists what overlapping finds, once each.
func everywhere(x *index[int], r memmon.Range) map[*entry[int]]bool {
	found := map[*entry[int]]bool{}
	x.overlapping(r, func(e *entry[int]) { found[e] = true })
	return found
}

// TestIndex has entries of all sizes come and go, and compares with a list.
func TestIndex(t *testing.T) {
	rnd := testutil.Rand(t)
	var x index[int]
	var list []*entry[int]
	span := func(most int) memmon.Range {
		n := 1 + rnd.Uint64N(1<<rnd.IntN(most))
		return memmon.Range{Addr: 1<<46 + rnd.Uint64N(1<<22), Len: n}
	}
	for step := range 20_000 {
		if len(list) > 0 && rnd.IntN(1000) < len(list) {
			i := rnd.IntN(len(list))
			x.remove(list[i])
			list = slices.Delete(list, i, i+1)
		} else {
			e := &entry[int]{span: span(24)}
			x.add(e)
			list = append(list, e)
		}
		if step%20 != 0 {
			continue
		}
		for _, r := range []memmon.Range{span(24), span(10), memmon.Everything} {
			found := everywhere(&x, r)
			for _, e := range list {
				if e.span.Overlaps(r) != found[e] {
					t.Fatalf("step %d: %v in %v: found %v", step, e.span, r, found[e])
				}
				delete(found, e)
			}
			if len(found) > 0 {
				t.Fatalf("step %d: %d that are not there", step, len(found))
			}
		}
	}
	for _, e := range list {
		x.remove(e)
	}
	if x.used.Load() != 0 || len(everywhere(&x, memmon.Everything)) != 0 {
		t.Error("something is left")
	}
}

// TestIndexStaysSmall has few entries at a time, and many in all.
func TestIndexStaysSmall(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var x index[int]
	var ring [10]*entry[int]
	for i := range 100_000 {
		if e := ring[i%len(ring)]; e != nil {
			x.remove(e)
		}
		e := &entry[int]{span: memmon.Range{Addr: rnd.Uint64N(1<<47) &^ 4095, Len: 4096}}
		ring[i%len(ring)] = e
		x.add(e)
		if n := len(x.tables[12].Load().slots); n > 64 {
			t.Fatalf("%d slots for %d entries", n, len(ring))
		}
	}
}
