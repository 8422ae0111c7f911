package interop

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
)

// TestLatestOfADIOS2: a Weft reader that wants only the newest step and is busy
// with one gives the others back as they come, in an order that ADIOS2's writer
// bears: that gets on with a queue of three, and the step in use stays readable.
func TestLatestOfADIOS2(t *testing.T) {
	const total = 30
	for _, ranks := range []int{1, 2} {
		for _, mode := range []string{"Off", "Auto"} {
			t.Run(fmt.Sprintf("%d ranks, preload %s", ranks, mode), func(t *testing.T) {
				dir := t.TempDir()
				w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: ranks, Vars: few, Params: map[string]string{"QueueLimit": "3"}}, Steps: total})
				r := openZoo(t, filepath.Join(dir, "zoo"), sst.Params{AlwaysProvideLatestTimestep: true, SpeculativePreloadMode: mode})
				st, err := r.BeginStep(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w.Expect(fmt.Sprintf("STEP %d", total-1))
				check := zoo.Check{Ranks: ranks, From: zoo.ADIOS2Stream, Prefixes: few}
				if _, err := readStep(t.Context(), st, check); err != nil {
					t.Errorf("the step that was open all the time: %v", err)
				}
				st.End()
				rest, err := readRest(t.Context(), r, check, nil)
				if err != nil || len(rest) == 0 || rest[len(rest)-1] != total-1 {
					t.Errorf("steps %v after that: %v", rest, err)
				}
				if got := r.Info().Skipped; got != int64(total-1-len(rest)) {
					t.Errorf("%d steps skipped, %d read", got, 1+len(rest))
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				w.OK()
			})
		}
	}
}
