package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestSoakAttachCycles: reader cohorts of two ranks attach to a writer of four
// processes, take a step and are killed with SIGKILL, again and again. What each
// rank of the writer holds stays flat: queued bytes, heap, descriptors,
// shared memory, goroutines.
func TestSoakAttachCycles(t *testing.T) {
	const writers, readers = 4, 2
	cycles := testutil.Count(t, 12, 200)
	rng := testutil.Rand(t)
	dir := t.TempDir()
	w := WeftWriter(t, WriterOptions{
		Stream: Stream{Dir: dir, Ranks: writers, Vars: few, StepDelay: 2 * time.Millisecond, Params: map[string]string{
			"RendezvousReaderCount": "0", "QueueLimit": "4", "QueueFullPolicy": "Discard",
		}},
		Steps: 1 << 30, Quiet: true,
	})
	w.Expect("READY")
	var first []RankStats
	for i := range cycles {
		attachAndKill(t, dir, writers, readers, rng.IntN(3))
		if i == cycles/4 { // what is made at first use is made by then
			first = settled(t, w)
		}
	}
	last := settled(t, w)
	for rank := range last {
		a, b := first[rank], last[rank]
		t.Logf("rank %d: after %d cycles %+v, after %d %+v", rank, cycles/4+1, a, cycles, b)
		const heapSlack = 2 << 20
		if b.Files > a.Files+2 || b.Goroutines > a.Goroutines+4 || b.Shared > a.Shared+1<<20 || b.Heap > a.Heap+a.Heap/2+heapSlack || b.Bytes > mostBytes {
			t.Errorf("rank %d: %+v after %d cycles, %+v after %d", rank, b, cycles, a, cycles/4+1)
		}
	}
	wantNoFiles(t, dir, "zoo.sst") // killed readers have left none
	w.Send(wordLeave)
	w.OK()
}

// mostBytes is what a rank holds with a full queue: memory comes in pieces of 64 KiB.
const mostBytes = 5 << 16

// attachAndKill runs a reader cohort until both ranks have read a step, and kills
// one rank, the other, or both at once.
func attachAndKill(t *testing.T, dir string, writers, readers, which int) {
	t.Run(fmt.Sprintf("kill %d", which), func(t *testing.T) {
		r := WeftReader(t, ReaderOptions{
			Stream: Stream{Dir: dir, Ranks: readers, Vars: few}, WriterRanks: writers, WeftWriter: true, Late: true, Gaps: true,
		})
		r.Expect("STEP ")
		if which < readers {
			r.KillRank(which)
			if e := r.End(1-which, killBound); e.Late || e.Leak != "" || !e.Failed("ErrRankFailed") {
				t.Errorf("the other rank: %+v, want ErrRankFailed", e)
			}
			return
		}
		r.Kill()
		<-r.Done()
	})
}

// settled asks the writer's ranks how they are, once no reader is attached.
func settled(t *testing.T, w *WeftPeer) []RankStats {
	t.Helper()
	var all []RankStats
	eventually(t, "a writer without readers", func() bool {
		all = w.Stats()
		return all[0].Readers == 0
	})
	return all
}
