package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
)

// Faults other than a death: a side that stops, a connection that breaks, a
// contact file that goes or stays.

// TestReaderRankStopped: one rank of a reader is stopped (SIGSTOP). Under Block
// the writer waits for it and nothing is lost; with Discard it goes on, and what
// it dropped is counted. Another reader is not harmed.
func TestReaderRankStopped(t *testing.T) {
	const total = 40
	for _, policy := range []string{"Block", "Discard"} {
		t.Run(policy, func(t *testing.T) {
			dir := t.TempDir()
			w := WeftWriter(t, WriterOptions{
				Stream: Stream{Dir: dir, Ranks: 2, Vars: few, StepDelay: 5 * time.Millisecond, Params: map[string]string{
					"RendezvousReaderCount": "2", "QueueLimit": "2", "QueueFullPolicy": policy,
				}}, Steps: total,
			})
			o := ReaderOptions{Stream: Stream{Dir: dir, Ranks: 2, Vars: few}, WriterRanks: 2, WeftWriter: true, Gaps: policy == "Discard"}
			stopped := WeftReader(t, o)
			o.Ranks = 1
			other := WeftReader(t, o)
			stopped.Expect("STEP ")
			stop(t, stopped.Ranks[1])
			if policy == "Block" {
				wantStandstill(t, w)
			} else {
				w.Ranks[0].Expect(fmt.Sprintf("STEP %d", total-1))
			}
			signal(t, stopped.Ranks[1], syscall.SIGCONT)
			for i, r := range []*WeftPeer{stopped, other} {
				got := r.StepNumbers()
				if n := len(got) + r.Skipped(0); n != total {
					t.Errorf("reader %d: %d steps and %d skipped, together not %d", i, len(got), r.Skipped(0), total)
				}
				if policy == "Block" {
					wantAll(t, got, total)
				}
			}
			w.OK()
		})
	}
}

// wantStandstill checks that a writer comes to a stop, with its queue full.
func wantStandstill(t *testing.T, w *WeftPeer) {
	t.Helper()
	last := -1
	eventually(t, "a writer that waits", func() bool {
		n := len(stepLines(w.Ranks[0].Stdout()))
		still := n == last
		last = n
		<-time.After(300 * time.Millisecond)
		return still
	})
}

// TestConnectionReset: the network between rank 0 of a reader and the writer
// breaks. Every reader rank sees a typed error at once, and the writer goes on.
func TestConnectionReset(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d reader ranks", ranks), func(t *testing.T) {
			dir := t.TempDir()
			o := endless(dir)
			o.Ranks = 2
			o.Params = withParam(o.Params, "RendezvousReaderCount", "0", "QueueFullPolicy", "Discard")
			w := WeftWriter(t, o)
			w.Expect("READY")
			p := behindProxy(t, filepath.Join(dir, "zoo"), filepath.Join(dir, "far"))
			r := WeftReader(t, ReaderOptions{
				Stream: Stream{Dir: dir, Name: "far", Ranks: ranks, Vars: few}, WriterRanks: 2, WeftWriter: true, Late: true, Gaps: true,
			})
			r.Expect("STEP ")
			if n := p.reset(); n == 0 {
				t.Error("nothing went through the proxy")
			}
			for rank := range r.Ranks {
				if e := r.End(rank, killBound); e.Late || e.Leak != "" || !e.Failed("ErrWriterFailed") {
					t.Errorf("reader rank %d: %+v, want ErrWriterFailed", rank, e)
				}
			}
			writerGoesOn(t, w, filepath.Join(dir, "zoo"))
		})
	}
}

// TestContactFile: the file is deleted, or replaced by that of another writer,
// while the stream runs. Readers that are attached do not notice; one that comes
// later finds nothing, or the other writer; a writer removes no file but its own.
func TestContactFile(t *testing.T) {
	start := func(t *testing.T) (w *WeftPeer, r *WeftPeer, path string) {
		dir := t.TempDir()
		o := endless(dir)
		o.Ranks = 2
		w = WeftWriter(t, o)
		r = WeftReader(t, ReaderOptions{Stream: Stream{Dir: dir, Ranks: 2, Vars: few}, WriterRanks: 2, WeftWriter: true})
		r.Expect("STEP ")
		return w, r, filepath.Join(dir, "zoo.sst")
	}
	leave := func(t *testing.T, w, r *WeftPeer) {
		w.Send(wordLeave)
		got := r.StepNumbers()
		wantRun(t, "the attached reader", got, 0, len(got)-1)
		w.OK()
	}
	t.Run("deleted", func(t *testing.T) {
		w, r, path := start(t)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		_, err := sst.Open(t.Context(), path, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 1}})
		wantError(t, "opening a stream without a file", err, sst.ErrNoStream)
		leave(t, w, r)
	})
	t.Run("replaced", func(t *testing.T) {
		w, r, path := start(t)
		other := WeftWriter(t, WriterOptions{Stream: Stream{Dir: filepath.Dir(path), Vars: few}, Steps: 3})
		eventually(t, "another contact file", func() bool { return strings.Contains(other.Ranks[0].Stderr(), "replacing a contact file") })
		leave(t, w, r)
		if !exists(path) {
			t.Error("the first writer has removed the file of the second")
		}
		late := WeftReader(t, ReaderOptions{Stream: Stream{Dir: filepath.Dir(path), Vars: few}, WeftWriter: true, Steps: 3})
		wantAll(t, late.StepNumbers(), 3)
		other.OK()
	})
	t.Run("left behind", func(t *testing.T) {
		w, r, path := start(t)
		w.Kill()
		for rank := range r.Ranks {
			if e := r.End(rank, killBound); !e.Failed("ErrWriterFailed") || e.Leak != "" {
				t.Errorf("reader rank %d: %+v, want ErrWriterFailed", rank, e)
			}
		}
		if !exists(path) {
			t.Fatal("a killed writer has removed its file")
		}
		_, err := sst.Open(t.Context(), path, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 1}})
		wantError(t, "opening what is left", err, sst.ErrStale)
		o := ReaderOptions{Stream: Stream{Dir: filepath.Dir(path), Ranks: 2, Vars: few}, WriterRanks: 3, WeftWriter: true, Steps: 3}
		next := WeftReader(t, o)
		again := WeftWriter(t, WriterOptions{Stream: Stream{Dir: filepath.Dir(path), Ranks: 3, Vars: few}, Steps: 3})
		wantAll(t, next.StepNumbers(), 3)
		again.OK()
		if exists(path) {
			t.Error("the file is still there")
		}
	})
}

// TestSoakLateActivation: a real reader that answers the writer's response only
// twenty seconds later is not harmed, and sees every step.
func TestSoakLateActivation(t *testing.T) {
	delay := time.Duration(testutil.Count(t, 2, 20)) * time.Second
	for _, suite := range testutil.Pick(t, []string{suite}, []string{suite, newer}) {
		for _, ranks := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d ranks", suite, ranks), func(t *testing.T) {
				dir := t.TempDir()
				w := WeftWriter(t, WriterOptions{
					Stream: Stream{Dir: dir, Ranks: 2, Vars: newerVars(), NoAttributes: true}, Steps: 10, NoLongDouble: true,
				})
				w.Expect("OPENING")
				eventually(t, "a contact file", func() bool { return exists(filepath.Join(dir, "zoo.sst")) })
				p := behindProxy(t, filepath.Join(dir, "zoo"), filepath.Join(dir, "far"))
				release := p.hold()
				time.AfterFunc(delay, release)
				o := ReaderOptions{
					Stream:      Stream{Dir: dir, Name: "far", Ranks: ranks, Vars: newerVars(), NoAttributes: true, Suite: suite},
					WriterRanks: 2, WeftWriter: true, Steps: 10,
				}
				began := time.Now()
				r := ADIOS2Reader(t, o)
				r.Expect("READY")
				if took := time.Since(began); took < delay {
					t.Errorf("it was ready after %v", took)
				}
				wantAll(t, r.Steps(zoo.Check{Ranks: 2, From: zoo.Weft, Prefixes: o.Vars, NoAttributes: true}), 10)
				w.OK()
			})
		}
	}
}
