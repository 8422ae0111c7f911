package sst_test

import (
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// BenchmarkSmallSteps passes steps of one small array from a writer to a reader
// of one rank: what a step costs that carries next to nothing.
func BenchmarkSmallSteps(b *testing.B) {
	for _, mode := range []string{"On", "Off"} {
		b.Run("preload "+mode, func(b *testing.B) {
			name := streamName(b)
			x := define(b, create(b, name, sst.WriterConfig{}), 100)
			r := attach(b, name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode}})
			b.ReportAllocs()
			buf := make([]int64, 100)
			for b.Loop() {
				x.must(b)
				st, err := r.BeginStep(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				v, err := step.Lookup[int64](st, "n")
				if err == nil {
					_, err = v.Get(b.Context(), step.All, buf)
				}
				if err != nil {
					b.Fatal(err)
				}
				st.End()
			}
		})
	}
}
