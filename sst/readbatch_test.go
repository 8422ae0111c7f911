package sst_test

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestReadBatch: over sockets a reader asks for no more at a time than it was told to, and
// gets the same values.
func TestReadBatch(t *testing.T) {
	const bytes = viewValues * 8
	for batch, requests := range map[int]int64{0: 1, bytes: 1, bytes - 1: 2, 100_000: 6, 1 << 16: 8} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			name := streamName(t)
			x := define(t, create(t, name, sst.WriterConfig{}), viewValues)
			r := attach(t, name, sst.ReaderConfig{ReadBatch: batch, Params: sst.Params{DataTransport: "evpath", SpeculativePreloadMode: "Off"}})
			attachedBy(t, x.w, "evpath")
			x.must(t)
			st, err := r.BeginStep(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			got, err := step.Read[int64](bounded(t), st, "n")
			if err != nil {
				t.Fatal(err)
			}
			if err := alike("n", got, viewValues, func(i int) int64 { return int64(i) }); err != nil {
				t.Error(err)
			}
			if n := r.Info().Writers[0].Requests; n != requests {
				t.Errorf("%d requests, want %d", n, requests)
			}
			st.End()
		})
	}
	_, err := sst.Open(t.Context(), streamName(t), sst.ReaderConfig{ReadBatch: -1})
	wants(t, "a batch of less than nothing", err, sst.ErrParam)
}
