package interop

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestSoakF05EightStreams: two processes, four streams each way, opened all at
// once, their names used again in each round, on a busy machine. No round takes
// ten seconds, and there is at most one connection between the two sessions.
func TestSoakF05EightStreams(t *testing.T) {
	const streams = 4
	rounds := testutil.Count(t, 10, 200)
	Busy(t, 2)
	pair := startPair(t, pairJob{Dir: t.TempDir(), Streams: streams, Steps: pairSteps, Rounds: rounds})
	most := 0
	for round := range rounds {
		for _, p := range pair {
			p.Expect(fmt.Sprintf("OPEN %d", round))
		}
		most = max(most, connections(t, pair[0].Pid(), pair[1].Pid()))
		for _, p := range pair {
			p.Send("pass")
		}
		for _, p := range pair {
			p.Expect(fmt.Sprintf("ROUND %d", round))
		}
	}
	for _, p := range pair {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	if most != 1 {
		t.Errorf("%d connections between the two processes, want 1", most)
	}
	t.Logf("%d rounds of %d streams", rounds, 2*streams)
}
