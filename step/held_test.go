package step

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// heldSource is a memSource that holds the blocks of some ranks.
type heldSource struct {
	*memSource
	holds func(rank int) bool
	fail  int // the how many-th Held fails, from 1; 0: none
	asked int
	open  int
}

var errHeld = errors.New("a reason given by the test")

func (h *heldSource) Held(_ context.Context, rank int, off, n uint64) ([]byte, func(), error) {
	if h.asked++; h.asked == h.fail {
		return nil, nil, errHeld
	}
	if n == 0 || !h.holds(rank) {
		return nil, nil, nil
	}
	h.open++
	return h.data[rank][off : off+n : off+n], func() { h.open-- }, nil
}

// tiles puts one array of 40 x 40 numbers in blocks of 4 x 4, dealt out to ranks.
func tiles(t *testing.T, ranks int) (*synth, [][]byte, [][]byte) {
	t.Helper()
	s := newSynth(t, DecoderConfig{})
	all := make([][]put, ranks)
	for r := range ranks {
		var blocks []synthBlock
		for k := range 100 {
			if k%ranks != r {
				continue
			}
			values := make([]float64, 16)
			for i := range values {
				values[i] = float64(1000*k + i)
			}
			blocks = append(blocks, blockOf(dims{uint64(k / 10 * 4), uint64(k % 10 * 4)}, dims{4, 4}, values...))
		}
		all[r] = []put{array[float64]("x", dims{40, 40}, blocks...)}
	}
	metas, data := s.records(all)
	return s, metas, data
}

// TestHeldIsRead: any boxes read from what the source holds, or holds in part, are
// what they are when it is asked for all.
func TestHeldIsRead(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s, metas, data := tiles(t, 3)
	for _, holds := range []func(int) bool{
		func(int) bool { return true },
		func(rank int) bool { return rank == 1 },
		func(int) bool { return false },
	} {
		held := &heldSource{memSource: &memSource{data: data}, holds: holds}
		for round := range 50 {
			results := make([][][]float64, 2)
			var boxes []Box
			for range 1 + r.IntN(4) {
				boxes = append(boxes, randomBox(r, dims{40, 40}))
			}
			for i, src := range []Source{&memSource{data: data}, held} {
				st, err := s.dec.Step(0, metas, src, nil)
				if err != nil {
					t.Fatal(err)
				}
				x := lookup[float64](t, st, "x")
				var gets []Get
				for _, b := range boxes {
					n, err := Elements(b.Count)
					if err != nil {
						t.Fatal(err)
					}
					results[i] = append(results[i], make([]float64, n))
					gets = append(gets, x.Into(b, results[i][len(results[i])-1]))
				}
				if err := st.Fetch(t.Context(), gets...); err != nil {
					t.Fatal(err)
				}
			}
			for k, want := range results[0] {
				if !slices.Equal(results[1][k], want) {
					t.Fatalf("round %d: box %v differs", round, boxes[k])
				}
			}
		}
		if held.open != 0 {
			t.Errorf("%d ranges were not given back", held.open)
		}
	}
}

// TestHeldStagesNothing: small variables are neither asked for nor put together if
// the source holds them.
func TestHeldStagesNothing(t *testing.T) {
	const n = 1000
	s, metas, data := manyVariables(t, n, 1)
	src := &heldSource{memSource: &memSource{data: data}, holds: func(int) bool { return true }}
	st, err := s.dec.Step(0, metas, src, nil)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float64, n)
	var gets []Get
	for i, v := range st.Variables() {
		gets = append(gets, first(As[float64](v)).Into(nil, dst[i:i+1]))
	}
	if err := st.Fetch(t.Context(), gets...); err != nil {
		t.Fatal(err)
	}
	if src.calls != 0 || src.asked != 1 || src.open != 0 {
		t.Errorf("%d calls of Read, %d of Held, %d open", src.calls, src.asked, src.open)
	}
	for i, v := range dst {
		if v != float64(i) {
			t.Fatalf("variable %d is %v", i, v)
		}
	}
}

// TestHeldFails: an error of the source is that of the read, and what it held
// before is given back.
func TestHeldFails(t *testing.T) {
	s, metas, data := tiles(t, 3)
	for fail := 1; fail <= 3; fail++ {
		src := &heldSource{memSource: &memSource{data: data}, holds: func(int) bool { return true }, fail: fail}
		st, err := s.dec.Step(0, metas, src, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = lookup[float64](t, st, "x").Get(t.Context(), All, nil)
		if !errors.Is(err, errHeld) || src.open != 0 || src.asked != fail {
			t.Errorf("%v, %d open after %d", err, src.open, src.asked)
		}
		if want := fmt.Sprintf("reading %q", "x"); err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}
