package sst_test

import (
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
)

// TestDealtDiscards: with steps that are dealt out and policy Discard the counts of
// a writer and its only reader agree: whatever was not taken was skipped.
func TestDealtDiscards(t *testing.T) {
	for _, mode := range []string{"RoundRobin", "OnDemand"} {
		t.Run(mode, func(t *testing.T) {
			const steps = 12
			name := streamName(t)
			x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 2, QueueFullPolicy: "Discard", StepDistributionMode: mode}}), 8)
			r := attach(t, name, sst.ReaderConfig{})
			testutil.Eventually(t, "the reader is active", func() bool { i := x.w.Info(); return len(i.Readers) == 1 && i.Readers[0].Active })
			for range steps {
				x.must(t)
			}
			done := async(x.w.Close)
			seen, err := drain(bounded(t), r)
			if err != nil {
				t.Fatal(err)
			}
			if err := next(t, "Close", done); err != nil {
				t.Error(err)
			}
			dropped, skipped := x.w.Info().Dropped, r.Info().Skipped
			if dropped == 0 || dropped != skipped || int64(len(seen))+skipped != steps {
				t.Errorf("%d steps taken, the writer dropped %d, the reader skipped %d", len(seen), dropped, skipped)
			}
		})
	}
}
