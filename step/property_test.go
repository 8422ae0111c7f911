package step

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// Any box of any variable of any dataset, also into larger memory, equals what
// the whole array has there.
func TestSubBoxesEqualTheWhole(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, name := range bpfixture.Names() {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			for _, s := range openDataset(t, name).decode(t) {
				for _, v := range s.Variables() {
					if v.Type() == String || v.Kind() == GlobalValueKind {
						continue
					}
					for range 6 {
						checkSubBox(t, r, v)
					}
				}
			}
		})
	}
}

func checkSubBox(t *testing.T, r *rand.Rand, v *Variable) {
	t.Helper()
	sel, shape := Selection{}, v.Shape()
	if v.Kind() == LocalArrayKind || r.IntN(3) == 0 {
		b := r.IntN(v.NumBlocks())
		sel.Block, shape = &b, v.Block(b).Box.Count
	}
	elem := v.ElemSize()
	n, err := Elements(shape)
	if err != nil {
		t.Fatal(err)
	}
	whole := fill(n * elem)
	if err := v.Read(t.Context(), sel, whole); err != nil {
		t.Fatal(err)
	}
	sel.Box = randomBox(r, shape)
	mem := Memory{Shape: make([]uint64, len(shape)), Start: make([]uint64, len(shape))}
	for d, c := range sel.Box.Count {
		before, after := r.Uint64N(3), r.Uint64N(3)
		mem.Shape[d], mem.Start[d] = before+c+after, before
	}
	sel.Memory = &mem
	var missing uint64
	sel.Missing = &missing
	m, err := Elements(mem.Shape)
	if err != nil {
		t.Fatal(err)
	}
	got := fill(m * elem)
	if err := v.Read(t.Context(), sel, got); err != nil {
		t.Fatal(err)
	}
	want := fill(m * elem)
	copyBox(want, mem.Shape, mem.Start, whole, shape, sel.Box.Start, sel.Box.Count, elem)
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %v in memory %v differs from the whole", v.Name(), sel.Box, mem)
	}
	checkMissing(t, v, sel, missing)
}

// checkMissing counts element by element which of them no block holds.
func checkMissing(t *testing.T, v *Variable, sel Selection, missing uint64) {
	t.Helper()
	want := uint64(0)
	if sel.Block == nil {
		visit(sel.Box.Count, func(at []uint64) {
			for _, b := range v.Blocks() {
				if inside(b.Box, sel.Box.Start, at) {
					return
				}
			}
			want++
		})
	}
	if missing != want {
		t.Errorf("%s: %v: %d missing, want %d", v.Name(), sel.Box, missing, want)
	}
}

func inside(b Box, start, at []uint64) bool {
	for d := range at {
		if x := start[d] + at[d]; x < b.Start[d] || x >= b.Start[d]+b.Count[d] {
			return false
		}
	}
	return true
}

// visit calls f with each index of an array.
func visit(count []uint64, f func(at []uint64)) {
	at := make([]uint64, len(count))
	var loop func(d int)
	loop = func(d int) {
		if d == len(count) {
			f(at)
			return
		}
		for at[d] = 0; at[d] < count[d]; at[d]++ {
			loop(d + 1)
		}
	}
	loop(0)
}

// copyBox is the plainest copy of a box: one element at a time.
func copyBox(dst []byte, dstShape, dstStart []uint64, src []byte, srcShape, srcStart, count []uint64, elem int) {
	index := func(shape, start, at []uint64) int {
		n := uint64(0)
		for d := range shape {
			n = n*shape[d] + start[d] + at[d]
		}
		return int(n) * elem
	}
	visit(count, func(at []uint64) {
		copy(dst[index(dstShape, dstStart, at):][:elem], src[index(srcShape, srcStart, at):])
	})
}

func randomBox(r *rand.Rand, shape []uint64) Box {
	b := Box{Start: make([]uint64, len(shape)), Count: make([]uint64, len(shape))}
	for d, n := range shape {
		b.Start[d] = r.Uint64N(n + 1)
		b.Count[d] = r.Uint64N(n - b.Start[d] + 1)
	}
	return b
}

// fill returns n bytes that show where nothing was written.
func fill(n int) []byte { return bytes.Repeat([]byte{0xa5}, n) }

// Arrays of random blocks, which overlap and leave holes, through every way of
// cutting reads.
func TestRandomBlocks(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	s := newSynth(t, DecoderConfig{})
	for number := range uint64(150) {
		shape := make([]uint64, 1+r.IntN(4))
		total := uint64(1)
		for d := range shape {
			shape[d] = 1 + r.Uint64N(9)
			total *= shape[d]
		}
		want := make([]int64, total)
		var ranks [][]put
		for range 1 + r.IntN(3) {
			var blocks []synthBlock
			for range r.IntN(4) {
				box := randomBox(r, shape)
				n, _ := box.Elements()
				elems := make([]int64, n)
				for i := range elems {
					elems[i] = 1 + r.Int64N(1000)
				}
				blocks = append(blocks, blockOf(box.Start, box.Count, elems...))
				copyBox(asBytes(want), shape, box.Start, asBytes(elems), box.Count, make([]uint64, len(shape)), box.Count, 8)
			}
			ranks = append(ranks, []put{array[int64]("x", shape, blocks...)})
			if r.IntN(2) == 0 {
				p := &ranks[len(ranks)-1][0]
				p.desc.Operator = true
				for i := range p.blocks {
					p.blocks[i] = p.blocks[i].null()
				}
			}
		}
		x := lookup[int64](t, s.step(number, ranks...), "x")
		got, err := x.Get(t.Context(), All, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(asBytes(got), asBytes(want)) {
			t.Fatalf("step %d: shape %v\n got %v\nwant %v", number, shape, got, want)
		}
		for range 5 {
			checkSubBoxOfArray(t, r, x.Variable)
		}
	}
}

// checkSubBoxOfArray is checkSubBox without selections of blocks.
func checkSubBoxOfArray(t *testing.T, r *rand.Rand, v *Variable) {
	t.Helper()
	box, missing := randomBox(r, v.Shape()), uint64(0)
	n, _ := Elements(v.Shape())
	whole := fill(n * 8)
	if err := v.Read(t.Context(), All, whole); err != nil {
		t.Fatal(err)
	}
	m, _ := box.Elements()
	got, want := fill(m*8), fill(m*8)
	if err := v.Read(t.Context(), Selection{Box: box, Missing: &missing}, got); err != nil {
		t.Fatal(err)
	}
	copyBox(want, box.Count, make([]uint64, len(box.Count)), whole, v.Shape(), box.Start, box.Count, 8)
	if !bytes.Equal(got, want) {
		t.Errorf("%v of %v differs from the whole", box, v.Shape())
	}
	checkMissing(t, v, Selection{Box: box}, missing)
}
