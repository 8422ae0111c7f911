package step

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// TestStripIsReading: what is found to be a strip is what a reading of the same selection makes of it, and
// whatever a view can show of one block alone is found.
func TestStripIsReading(t *testing.T) {
	rng := testutil.Rand(t)
	strips := 0
	for range testutil.Count(t, 100, 2000) {
		s := newSynth(t, DecoderConfig{ColumnMajor: rng.IntN(4) == 0})
		shape := dims{uint64(1 + rng.IntN(4)), uint64(1 + rng.IntN(4)), uint64(1 + rng.IntN(4))}[:1+rng.IntN(3)]
		var blocks []synthBlock
		for range 1 + rng.IntN(4) {
			b := randomBox(rng, shape)
			n, _ := Elements(b.Count)
			blocks = append(blocks, blockOf(b.Start, b.Count, seq[float64](100*len(blocks), n)...))
		}
		st := s.step(0, []put{array[float64]("x", shape, blocks...), local[float64]("l", blocks...)})
		for range 50 {
			v, sel := lookup[float64](t, st, "x").Variable, Selector(All)
			given := slices.Clone(v.Shape())
			switch k := rng.IntN(8); {
			case k == 0:
				sel = BlockIndex(rng.IntN(len(blocks)+2) - 1)
			case k == 1:
				v, sel = lookup[float64](t, st, "l").Variable, BlockIndex(rng.IntN(len(blocks)))
			case k > 2:
				box := randomBox(rng, given)
				if rng.IntN(4) == 0 {
					box.Count[0] += uint64(rng.IntN(2))
				}
				if rng.IntN(4) == 0 {
					box.Start = nil
				}
				sel = box
			}
			r, err := v.resolve(sel)
			var want strip
			if err == nil && r.elements > 0 {
				want, err = r.contiguous()
			}
			got, ok := v.strip(sel)
			if ok && (err != nil || got != want) {
				t.Fatalf("%v of %v: %+v, want %+v, %v", sel, st.Variables()[0].Blocks(), got, want, err)
			}
			if alone := err == nil && r.elements > 0 && len(r.parts) == 1; alone && !ok {
				t.Fatalf("%v of %v is no strip, although one block has it alone", sel, st.Variables()[0].Blocks())
			}
			if ok {
				strips++
			}
		}
	}
	if strips < 100 {
		t.Errorf("only %d strips", strips)
	}
}

// TestStripOfMany: one block of many is looked for by a reading.
func TestStripOfMany(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	var blocks []synthBlock
	for i := range uint64(fewBlocks + 1) {
		blocks = append(blocks, blockOf(dims{i}, dims{1}, float64(i)))
	}
	st := s.step(0, []put{array[float64]("x", dims{fewBlocks + 1}, blocks...)})
	x := lookup[float64](t, st, "x")
	box := Box{dims{3}, dims{1}}
	if _, ok := x.strip(box); ok {
		t.Error("it was looked for")
	}
	for _, sel := range []Selector{box, BlockIndex(3), Selection{Box: box}} {
		if got, err := x.Get(t.Context(), sel, nil); err != nil || len(got) != 1 || got[0] != 3 {
			t.Errorf("%v: %v, %v", sel, got, err)
		}
	}
}

// TestFetchOfStrips reads strips in any order with readings among them, from a source that holds what
// some ranks have put: each gets what is its own.
func TestFetchOfStrips(t *testing.T) {
	const n, ranks = 60, 3
	rng := testutil.Rand(t)
	s, metas, data := manyRanksVariables(t, n, ranks)
	for _, holds := range []func(int) bool{
		func(int) bool { return true },
		func(rank int) bool { return rank == 1 },
		func(int) bool { return false },
	} {
		src := &heldSource{memSource: &memSource{data: data}, holds: holds}
		st, err := s.dec.Step(0, metas, src, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			var gets []Get
			var dst, want [][]float64
			for _, i := range rng.Perm(len(st.Variables())) {
				v := first(As[float64](st.Variables()[i]))
				whole, err := v.Get(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				d := make([]float64, len(whole), len(whole)+1)
				dst, want, gets = append(dst, d), append(want, whole), append(gets, v.Into(nil, d))
			}
			if err := st.Fetch(t.Context(), gets...); err != nil {
				t.Fatal(err)
			}
			for i := range dst {
				if !slices.Equal(dst[i], want[i]) || dst[i][:len(dst[i])+1][len(dst[i])] != 0 {
					t.Fatalf("get %d: %v, want %v", i, dst[i], want[i])
				}
			}
		}
		if src.open != 0 {
			t.Errorf("%d ranges were not given back", src.open)
		}
	}
}

// manyRanksVariables returns the records of ranks that put values, small arrays, and a large one each.
func manyRanksVariables(t *testing.T, n, ranks int) (*synth, [][]byte, [][]byte) {
	const large = directMin/8 + 10
	s := newSynth(t, DecoderConfig{})
	var all [][]put
	for r := range ranks {
		var puts []put
		for k := range n {
			name, at := fmt.Sprintf("rank%d.%d", r, k), float64(1000*r+k)
			if k%4 == 0 {
				puts = append(puts, value(name, bp5.GlobalValue, at))
			} else {
				puts = append(puts, array[float64](name, dims{3}, blockOf(dims{0}, dims{3}, at, at+0.25, at+0.5)))
			}
		}
		all = append(all, append(puts, array[float64](fmt.Sprintf("large%d", r), dims{large}, blockOf(dims{0}, dims{large}, seq[float64](r, large)...))))
	}
	metas, data := s.records(all)
	return s, metas, data
}
