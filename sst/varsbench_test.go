package sst_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// BenchmarkVariables is what a step of many small variables costs, that a reader of the
// same node gets with one Fetch: the time for each variable of it.
func BenchmarkVariables(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			name := streamName(b)
			w := create(b, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 1}})
			vars := make([]*sst.Variable[int64], n)
			for i := range vars {
				v, err := sst.Define[int64](w, fmt.Sprintf("variable%05d", i), step.GlobalArray(8))
				if err != nil {
					b.Fatal(err)
				}
				vars[i] = v
			}
			r := attach(b, name, sst.ReaderConfig{})
			attachedBy(b, w, "native")
			ctx := b.Context()
			read := make(chan error, 1)
			go func() { read <- readVariables(ctx, r, n) }()
			box, data := step.Box{Start: []uint64{0}, Count: []uint64{8}}, make([]int64, 8)
			b.ReportAllocs()
			for b.Loop() {
				st, err := w.BeginStep(ctx)
				if err != nil {
					b.Fatal(err)
				}
				for _, v := range vars {
					if err := v.Put(st, box, data); err != nil {
						b.Fatal(err)
					}
				}
				if err := st.End(ctx); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Error(err)
			}
			if err := <-read; err != nil {
				b.Error(err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/variable")
		})
	}
}

// readVariables fetches all variables of all steps.
func readVariables(ctx context.Context, r *sst.Reader, n int) error {
	dst := make([]int64, 8*n)
	fetches := make([]step.Get, n)
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return err
		}
		for i, v := range st.Variables() {
			t, err := step.As[int64](v)
			if err != nil {
				return err
			}
			fetches[i] = t.Into(step.All, dst[8*i:][:8])
		}
		if err := st.Fetch(ctx, fetches...); err != nil {
			return err
		}
	}
	return nil
}
