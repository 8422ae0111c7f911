package sst_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestStream sends steps from a writer to a reader in one process, over real
// sockets.
func TestStream(t *testing.T) {
	for _, mode := range []string{"On", "Off"} {
		t.Run("preload "+mode, func(t *testing.T) {
			testStream(t, sst.Params{SpeculativePreloadMode: mode})
		})
	}
}

func testStream(t *testing.T, p sst.Params) {
	ctx := t.Context()
	name := filepath.Join(t.TempDir(), "s")
	const steps, n = 10, 1000
	wrote := make(chan error, 1)
	go func() { wrote <- writeSteps(ctx, name, steps, n) }()
	r, err := sst.Open(ctx, name, sst.ReaderConfig{Params: p})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := uint64(0)
	for st, err := range r.Steps(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if st.Number() != seen {
			t.Fatalf("step %d, want %d", st.Number(), seen)
		}
		T, err := step.Lookup[float64](st, "T")
		if err != nil {
			t.Fatal(err)
		}
		got, err := T.Get(ctx, step.All, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, field(seen, n)) {
			t.Fatalf("step %d: wrong values", seen)
		}
		seen++
	}
	if seen != steps {
		t.Fatalf("%d steps, want %d", seen, steps)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
}

func field(number uint64, n int) []float64 {
	f := make([]float64, n)
	for i := range f {
		f[i] = float64(number)*1e6 + float64(i)
	}
	return f
}

func writeSteps(ctx context.Context, name string, steps, n int) error {
	w, err := sst.Create(ctx, name, sst.WriterConfig{})
	if err != nil {
		return err
	}
	defer w.Close()
	T, err := sst.Define[float64](w, "T", step.GlobalArray(uint64(n)))
	if err != nil {
		return err
	}
	for i := range steps {
		st, err := w.BeginStep(ctx)
		if err != nil {
			return err
		}
		if err := T.Put(st, step.Box{Count: []uint64{uint64(n)}}, field(uint64(i), n)); err != nil {
			return err
		}
		if err := st.End(ctx); err != nil {
			return err
		}
	}
	return w.Close()
}
