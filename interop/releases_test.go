package interop

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
)

// Two releases of ADIOS2 that do not understand each other, and Weft between them.

// TestSoakReleasesAtOnce: readers of both releases, of one rank and of two, at
// once at one Weft writer of three processes.
func TestSoakReleasesAtOnce(t *testing.T) {
	if !soaking(t) {
		return
	}
	testutil.MovingRoot(t, newer)
	const total = 10
	vars := newerVars()
	for _, preload := range []string{"On", "Off"} {
		t.Run("preload "+preload, func(t *testing.T) {
			dir := t.TempDir()
			w := WeftWriter(t, WriterOptions{
				Stream: Stream{Dir: dir, Ranks: 3, Vars: vars, NoAttributes: true, Params: map[string]string{"RendezvousReaderCount": "4"}},
				Steps:  total, NoLongDouble: true,
			})
			var readers []*Peer
			for _, in := range []string{suite, newer} {
				for _, ranks := range []int{1, 2} {
					readers = append(readers, ADIOS2Reader(t, ReaderOptions{
						Stream:      Stream{Dir: dir, Ranks: ranks, Suite: in, Vars: vars, NoAttributes: true, Params: map[string]string{"SpeculativePreloadMode": preload}},
						WriterRanks: 3, WeftWriter: true, Steps: total,
					}))
				}
			}
			for _, r := range readers {
				wantAll(t, r.Steps(zoo.Check{Ranks: 3, From: zoo.Weft, Prefixes: vars, NoAttributes: true}), total)
			}
			w.OK()
		})
	}
}

// TestSoakPipeBetweenReleases: a writer of the later release, weft pipe, and a
// reader of the earlier one: a hundred steps, exact.
func TestSoakPipeBetweenReleases(t *testing.T) {
	if !soaking(t) {
		return
	}
	testutil.MovingRoot(t, newer)
	const total = 100
	weft := buildWeft(t)
	vars := newerVars()
	for _, c := range []struct{ writers, pipes, readers int }{{1, 1, 1}, {2, 1, 2}, {2, 3, 2}} {
		t.Run(fmt.Sprintf("%d ranks, %d pipes, %d ranks", c.writers, c.pipes, c.readers), func(t *testing.T) {
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Name: "new", Ranks: c.writers, Suite: newer, Vars: vars, NoAttributes: true}, Steps: total})
			pipes := byHand(weftRank)(t, dir, c.pipes, []string{weft, "pipe", "--timeout", "60s", "new", "old"})
			r := ADIOS2Reader(t, ReaderOptions{
				Stream: Stream{Dir: dir, Name: "old", Ranks: c.readers, Vars: vars, NoAttributes: true}, WriterRanks: c.writers, Piped: true, Steps: total,
			})
			wantAll(t, r.Steps(zoo.Check{Ranks: c.writers, From: zoo.ADIOS2File, Prefixes: vars, NoAttributes: true}), total)
			for rank, p := range pipes {
				if err := p.Wait(); err != nil {
					t.Errorf("pipe rank %d: %v", rank, err)
				}
			}
			w.OK()
		})
	}
}

// TestSoakNewerMatrix: Weft cohorts against the later release, both ways.
func TestSoakNewerMatrix(t *testing.T) {
	if !soaking(t) {
		return
	}
	testutil.MovingRoot(t, newer)
	const total = 10
	vars := newerVars()
	for _, ours := range []int{1, 3} {
		for _, theirs := range []int{1, 2} {
			t.Run(fmt.Sprintf("adios%d to weft%d", theirs, ours), func(t *testing.T) {
				s := Stream{Dir: t.TempDir(), Vars: vars, NoAttributes: true}
				from, to := s, s
				from.Suite, from.Ranks, to.Ranks = newer, theirs, ours
				w := ADIOS2Writer(t, WriterOptions{Stream: from, Steps: total})
				wantAll(t, WeftReader(t, ReaderOptions{Stream: to, WriterRanks: theirs, Steps: total}).StepNumbers(), total)
				w.OK()
			})
			t.Run(fmt.Sprintf("weft%d to adios%d", ours, theirs), func(t *testing.T) {
				s := Stream{Dir: t.TempDir(), Vars: vars, NoAttributes: true}
				from, to := s, s
				from.Ranks, to.Suite, to.Ranks = ours, newer, theirs
				w := WeftWriter(t, WriterOptions{Stream: from, Steps: total, NoLongDouble: true})
				r := ADIOS2Reader(t, ReaderOptions{Stream: to, WriterRanks: ours, WeftWriter: true, Steps: total})
				wantAll(t, r.Steps(zoo.Check{Ranks: ours, From: zoo.Weft, Prefixes: vars, NoAttributes: true}), total)
				w.OK()
			})
		}
	}
}

// soaking reports whether this is make soak; else it says that the test is not run.
func soaking(t *testing.T) bool {
	t.Helper()
	if testutil.Count(t, 0, 1) == 1 {
		return true
	}
	t.Logf("NOT RUN: what needs the later release of ADIOS2 (Debian %s) is for make soak", newer)
	return false
}
