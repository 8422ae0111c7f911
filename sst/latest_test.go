package sst_test

import (
	"testing"

	"github.com/weft-fabric/weft/sst"
)

// TestLatestHoldsNobodyUp: a reader that wants only the newest step is busy with
// one for long, or has not even begun; a writer with policy Block goes on, and what
// was pushed for steps that nobody gets does not pile up.
func TestLatestHoldsNobodyUp(t *testing.T) {
	const steps = 40
	for _, mode := range []string{"On", "Off"} {
		for name, busy := range map[string]bool{"busy": true, "idle": false} {
			t.Run("preload "+mode+" "+name, func(t *testing.T) {
				stream := streamName(t)
				x := define(t, create(t, stream, sst.WriterConfig{Params: sst.Params{QueueLimit: 3}}), 100)
				r := attach(t, stream, sst.ReaderConfig{Params: sst.Params{AlwaysProvideLatestTimestep: true, SpeculativePreloadMode: mode}})
				taken := 0
				var end func()
				if busy {
					x.must(t)
					st, err := r.BeginStep(bounded(t))
					if err != nil {
						t.Fatal(err)
					}
					taken++
					end = func() {
						if err := verify(bounded(t), st); err != nil {
							t.Errorf("the step that was open all the time: %v", err)
						}
						st.End()
					}
				}
				for range steps - taken {
					x.must(t)
				}
				if held := x.w.Info().Held; held > 3 {
					t.Errorf("the writer holds %d steps", held)
				}
				if busy {
					end()
				}
				done := async(x.w.Close)
				st, err := r.BeginStep(bounded(t))
				if err != nil {
					t.Fatal(err)
				}
				if err := verify(bounded(t), st); err != nil {
					t.Error(err)
				}
				last := st.Number()
				st.End()
				rest, err := drain(bounded(t), r)
				if err != nil {
					t.Fatal(err)
				}
				if len(rest) > 0 {
					last = rest[len(rest)-1]
				}
				if n := taken + 1 + len(rest); last != steps-1 || r.Info().Skipped != int64(steps-n) {
					t.Errorf("%d steps taken, the last is %d, %d skipped", n, last, r.Info().Skipped)
				}
				if err := next(t, "Close", done); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestLatestSlowRank: one rank is several steps behind the others; it still gets
// the blocks that were pushed for the step that all get.
func TestLatestSlowRank(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 5}}), 100)
	c := attachRanks(t, name, 2, sst.ReaderConfig{Params: sst.Params{AlwaysProvideLatestTimestep: true, SpeculativePreloadMode: "On"}})
	take := func(rank int) uint64 {
		t.Helper()
		st, err := c.readers[rank].BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(bounded(t), st); err != nil {
			t.Errorf("rank %d, step %d: %v", rank, st.Number(), err)
		}
		st.End()
		return st.Number()
	}
	var fast []uint64
	for range 3 {
		for range 4 {
			x.must(t)
		}
		fast = append(fast, take(0))
	}
	for i, n := range fast {
		if got := take(1); got != n {
			t.Errorf("rank 1 gets step %d as number %d, rank 0 got %d", got, i, n)
		}
	}
	done := async(x.w.Close)
	c.each(t, func(_ int, r *sst.Reader) error { _, err := drain(bounded(t), r); return err })
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
}
