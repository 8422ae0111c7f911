package interop

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestSoakF05EightStreams: two processes, four streams each way, opened all at
// once, their names used again in each round, on a busy machine. No round takes
// ten seconds, and there is at most one connection between the two sessions. The
// rounds are in step, or one side may be in the next while the other still closes
// the streams of the last, whose names are the same.
func TestSoakF05EightStreams(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		t.Run(fmt.Sprintf("overlap %v", overlap), func(t *testing.T) {
			Busy(t, 2)
			playPair(t, testutil.Count(t, 10, 200), overlap)
		})
	}
}

func playPair(t *testing.T, rounds int, overlap bool) {
	const streams = 4
	pair := startPair(t, pairJob{Dir: t.TempDir(), Streams: streams, Steps: pairSteps, Rounds: rounds})
	each := func(f func(p *testutil.Process)) {
		for _, p := range pair {
			f(p)
		}
	}
	each(func(p *testutil.Process) { p.Send("begin") })
	most := 0
	for round := range rounds {
		each(func(p *testutil.Process) { p.Expect(fmt.Sprintf("OPEN %d", round)) })
		most = max(most, connections(t, pair[0].Pid(), pair[1].Pid()))
		each(func(p *testutil.Process) { p.Send("pass") })
		if overlap && round+1 < rounds {
			each(func(p *testutil.Process) { p.Send("begin") })
		}
		each(func(p *testutil.Process) { p.Expect(fmt.Sprintf("ROUND %d", round)) })
		if !overlap && round+1 < rounds {
			each(func(p *testutil.Process) { p.Send("begin") })
		}
	}
	each(func(p *testutil.Process) {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	})
	if most != 1 {
		t.Errorf("%d connections between the two processes, want 1", most)
	}
	t.Logf("%d rounds of %d streams", rounds, 2*streams)
}
