package sst_test

import (
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// BenchmarkStep is what a small step costs a writer of one rank: with nobody there,
// and with a reader that takes it.
func BenchmarkStep(b *testing.B) {
	for _, readers := range []int{0, 1} {
		b.Run([]string{"no reader", "one reader"}[readers], func(b *testing.B) {
			name := streamName(b)
			x := define(b, create(b, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 16}}), 8)
			ctx := b.Context()
			if readers > 0 {
				r := attach(b, name, sst.ReaderConfig{})
				go func() {
					for st, err := range r.Steps(ctx) {
						if err != nil {
							return
						}
						if _, err := step.Read[int64](ctx, st, "n"); err != nil {
							return
						}
					}
				}()
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := x.write(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
