package sst_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// BenchmarkNativeSteps passes steps of one number to a reader of the same node, from a
// span to a view: the time and the allocations of both sides.
func BenchmarkNativeSteps(b *testing.B) {
	for _, queue := range []int{1, 16} {
		b.Run(fmt.Sprintf("queue %d", queue), func(b *testing.B) {
			name := streamName(b)
			w := create(b, name, sst.WriterConfig{Params: sst.Params{QueueLimit: queue}})
			x, err := sst.Define[int64](w, "x", step.GlobalArray(1))
			if err != nil {
				b.Fatal(err)
			}
			r := attach(b, name, sst.ReaderConfig{})
			attachedBy(b, w, "native")
			ctx := b.Context()
			read := make(chan error, 1)
			go func() { read <- viewNumbers(ctx, r) }()
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				if err := spanNumber(ctx, w, x, i); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Error(err)
			}
			if err := <-read; err != nil {
				b.Error(err)
			}
		})
	}
}

// spanNumber writes a step of one number.
func spanNumber(ctx context.Context, w *sst.Writer, x *sst.Variable[int64], n int64) error {
	st, err := w.BeginStep(ctx)
	if err != nil {
		return err
	}
	span, err := x.Span(st, step.Box{Start: []uint64{0}, Count: []uint64{1}})
	if err != nil {
		return err
	}
	span[0] = n
	return st.End(ctx)
}

// viewNumbers looks at the number of each step, which is that of the step.
func viewNumbers(ctx context.Context, r *sst.Reader) error {
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return err
		}
		x, err := step.Lookup[int64](st, "x")
		if err != nil {
			return err
		}
		v, err := x.View(ctx, step.All)
		if err != nil {
			return err
		}
		n := v.Data()[0]
		v.Release()
		if n != int64(st.Number()) {
			return fmt.Errorf("step %d has %d", st.Number(), n)
		}
	}
	return nil
}
