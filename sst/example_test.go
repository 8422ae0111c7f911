package sst_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// A simulation writes three steps of a 2 x 3 array, and an analysis attaches to
// it. In life they are two programs; each side may be an ADIOS2 program.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "weft")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "sim")

	wrote := make(chan error)
	go func() { wrote <- simulate(ctx, name) }()
	if err := analyse(ctx, name); err != nil {
		panic(err)
	}
	if err := <-wrote; err != nil {
		panic(err)
	}
	// Output:
	// step 0: [0 1 2 3 4 5]
	// step 1: [1 2 3 4 5 6]
	// step 2: [2 3 4 5 6 7]
}

func simulate(ctx context.Context, name string) error {
	w, err := sst.Create(ctx, name, sst.WriterConfig{}) // waits for one reader
	if err != nil {
		return err
	}
	defer w.Close()
	T, err := sst.Define[float64](w, "T", step.GlobalArray(2, 3))
	if err != nil {
		return err
	}
	for n := range 3 {
		st, err := w.BeginStep(ctx)
		if err != nil {
			return err
		}
		block, err := T.Span(st, step.Box{Count: []uint64{2, 3}}) // memory to compute into
		if err != nil {
			return err
		}
		for i := range block {
			block[i] = float64(n + i)
		}
		if err := st.End(ctx); err != nil {
			return err
		}
	}
	return w.Close() // when the reader has it all
}

func analyse(ctx context.Context, name string) error {
	r, err := sst.Open(ctx, name, sst.ReaderConfig{}) // waits for the writer
	if err != nil {
		return err
	}
	defer r.Close()
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return err
		}
		T, err := step.Read[float64](ctx, st, "T")
		if err != nil {
			return err
		}
		fmt.Printf("step %d: %v\n", st.Number(), T)
	}
	return nil
}
