package cli

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/sst"
)

// TestHistory: rates are those of the window, never negative, and never mix two
// writers or the two sides of a clock that was set.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h history
		var past []sst.Stat // since the last break
		now := sst.Stat{Time: time.Unix(1000, 0), Stream: "0x1"}
		for range rapid.IntRange(1, 40).Draw(t, "snapshots") {
			broken := false
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // another writer
				now.Stream += "1"
				now.NextStep, now.Written = 0, 0
				broken = true
			case 1: // the clock is set back, further than the window
				now.Time = now.Time.Add(-time.Hour)
				broken = true
			}
			now.Time = now.Time.Add(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
			now.NextStep += uint64(rapid.IntRange(0, 5).Draw(t, "steps"))
			now.Written += uint64(rapid.IntRange(0, 1<<20).Draw(t, "bytes"))
			if broken {
				past = nil
			}
			past = append(past, now)
			r := h.add(now)
			if len(past) == 1 {
				if r != nil {
					t.Fatalf("rates of one snapshot: %+v", r)
				}
				continue
			}
			for len(past) > 2 && now.Time.Sub(past[0].Time) > rateWindow {
				past = past[1:]
			}
			span := now.Time.Sub(past[0].Time).Seconds()
			if r == nil || r.Seconds != span || r.Steps < 0 || r.Bytes < 0 ||
				math.Abs(r.Steps*span-float64(now.NextStep-past[0].NextStep)) > 1e-6 || math.Abs(r.Bytes*span-float64(now.Written-past[0].Written)) > 1e-3 {
				t.Fatalf("%+v over %v of %d snapshots", r, span, len(past))
			}
		}
	})
}
