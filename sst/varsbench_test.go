package sst_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// BenchmarkVariables is what a step of many small variables costs, that a reader of the
// same node gets with one Fetch, or views one by one: the time for each variable of it.
func BenchmarkVariables(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		for what, read := range map[string]func(context.Context, *step.Step, []int64) error{"get": getVariables, "view": viewVariables} {
			b.Run(fmt.Sprintf("%d/%s", n, what), func(b *testing.B) { passVariables(b, n, read) })
		}
	}
}

func passVariables(b *testing.B, n int, read func(context.Context, *step.Step, []int64) error) {
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
	done := make(chan error, 1)
	var took time.Duration
	go func() {
		dst := make([]int64, 8*n)
		for st, err := range r.Steps(ctx) {
			begun := time.Now()
			if err == nil {
				err = read(ctx, st, dst)
			}
			if err != nil {
				done <- err
				return
			}
			took += time.Since(begun)
		}
		done <- nil
	}()
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
	if err := <-done; err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/variable")
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*n), "ns/read")
}

// getVariables fetches all variables of a step.
func getVariables(ctx context.Context, st *step.Step, dst []int64) error {
	gets := make([]step.Get, len(dst)/8)
	for i, v := range st.Variables() {
		t, err := step.As[int64](v)
		if err != nil {
			return err
		}
		gets[i] = t.Into(step.All, dst[8*i:][:8])
	}
	return st.Fetch(ctx, gets...)
}

// viewVariables views them one by one.
func viewVariables(ctx context.Context, st *step.Step, dst []int64) error {
	for i, v := range st.Variables() {
		t, err := step.As[int64](v)
		if err != nil {
			return err
		}
		view, err := t.View(ctx, step.All)
		if err != nil {
			return err
		}
		dst[i] = view.Data()[0]
		view.Release()
	}
	return nil
}
