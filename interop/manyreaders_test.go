package interop

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/interop/zoo"
	_ "github.com/weft-fabric/weft/operator/bzip2" // Debian's ADIOS2 compresses with it
	"github.com/weft-fabric/weft/sst"
)

// Several readers at a time: real ones and Weft's at a Weft writer.

// TestF04TwoADIOS2Readers: with RendezvousReaderCount 1 the second cohort comes
// late and holds nobody up, with 2 both see all.
func TestF04TwoADIOS2Readers(t *testing.T) {
	const total, writers = 10, 4
	for _, c := range []struct{ rendezvous, first, second int }{{1, 2, 1}, {1, 1, 2}, {2, 2, 1}} {
		t.Run(fmt.Sprintf("rendezvous %d, %d and %d ranks", c.rendezvous, c.first, c.second), func(t *testing.T) {
			dir := t.TempDir()
			reader := func(ranks int, late bool) *Peer {
				return ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, Ranks: ranks}, WriterRanks: writers, WeftWriter: true, Late: late})
			}
			check := zoo.Check{Ranks: writers, From: zoo.Weft}
			first := reader(c.first, false)
			var second *Peer
			if c.rendezvous == 2 {
				second = reader(c.second, false)
			}
			z := createZoo(t, filepath.Join(dir, "zoo"), writers, sst.Params{RendezvousReaderCount: count(c.rendezvous)})
			put(t, z, 0, 3)
			latest := 0
			if c.rendezvous == 1 {
				second, latest = reader(c.second, true), 3
				second.Expect("READY")
			}
			put(t, z, 3, total)
			finish(t, z)
			wantAll(t, first.Steps(check), total)
			wantRun(t, "the second", second.Steps(check), latest, total-1)
		})
	}
}

// TestF23ReadersLeave: readers close after some steps, one of them inside an
// open step. The others and the writer do not notice, and Close does not wait
// for who has left.
func TestF23ReadersLeave(t *testing.T) {
	const total, writers = 20, 2
	for _, limit := range []int{0, 1} {
		t.Run(fmt.Sprintf("QueueLimit %d", limit), func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "zoo")
			check := zoo.Check{Ranks: writers, From: zoo.Weft}
			reader := func(stopAfter int) *Peer {
				return ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir}, WriterRanks: writers, WeftWriter: true, StopAfter: stopAfter})
			}
			leaver, stayer := reader(3), reader(0)
			ours := readBehind(t, name, sst.Params{}, check)
			inside := leaveInside(t, name, 2)
			z := createZoo(t, name, writers, sst.Params{RendezvousReaderCount: count(4), QueueLimit: limit})
			put(t, z, 0, total)
			finish(t, z)
			wantAll(t, leaver.Steps(check), 3)
			wantAll(t, stayer.Steps(check), total)
			o := <-ours
			if o.err != nil {
				t.Error(o.err)
			}
			wantAll(t, o.steps, total)
			if err := <-inside; err != nil {
				t.Error(err)
			}
		})
	}
}

// leaveInside opens a Weft reader that closes while it holds step number last.
func leaveInside(t *testing.T, name string, last uint64) <-chan error {
	t.Helper()
	out := make(chan error, 1)
	go func() {
		r, err := sst.Open(t.Context(), name, sst.ReaderConfig{})
		if err != nil {
			out <- err
			return
		}
		for {
			st, err := r.BeginStep(t.Context())
			if err != nil {
				out <- errors.Join(err, r.Close())
				return
			}
			if st.Number() == last {
				out <- r.Close()
				return
			}
			st.End()
		}
	}()
	return out
}

// TestF34ReaderKilled kills a real reader with SIGKILL while it holds a step
// and the writer's queue is full because of it.
func TestF34ReaderKilled(t *testing.T) {
	const total, writers = 10, 2
	for _, ranks := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "zoo")
			check := zoo.Check{Ranks: writers, From: zoo.Weft}
			victim := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, Ranks: ranks, StepWait: true}, WriterRanks: writers, WeftWriter: true})
			real := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir}, WriterRanks: writers, WeftWriter: true})
			ours := readBehind(t, name, sst.Params{}, check)
			z := createZoo(t, name, writers, sst.Params{RendezvousReaderCount: count(3), QueueLimit: 1})
			done := make(chan error, 1)
			go func() { done <- z.Write(t.Context(), total) }()
			victim.Expect("{")
			select {
			case err := <-done:
				t.Fatalf("the writer ran past a full queue: %v", err)
			case <-time.After(200 * time.Millisecond):
			}
			kill(t, victim, ranks)
			if err := within(t, "going on without the killed reader", 20*time.Second, done); err != nil {
				t.Error(err)
			}
			finish(t, z)
			wantAll(t, real.Steps(check), total)
			o := <-ours
			if o.err != nil {
				t.Error(o.err)
			}
			wantAll(t, o.steps, total)
		})
	}
}

// kill kills a peer, or the last of its ranks; mpirun then ends the others.
func kill(t *testing.T, p *Peer, ranks int) {
	t.Helper()
	if ranks == 1 {
		p.Kill()
		return
	}
	pids := mpiRanks(t, p)
	if len(pids) != ranks {
		t.Fatalf("the processes %v under mpirun, want %d ranks", pids, ranks)
	}
	if err := syscall.Kill(pids[ranks-1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestF17WeftDiscards: a slow real reader at a Weft writer that drops what does
// not fit. It sees fewer steps, in order, and everything in them.
func TestF17WeftDiscards(t *testing.T) {
	const total = 60
	dir := t.TempDir()
	r := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, StepDelay: 60 * time.Millisecond}, WeftWriter: true, Gaps: true})
	z := createZoo(t, filepath.Join(dir, "zoo"), 1, sst.Params{QueueLimit: 1, QueueFullPolicy: "Discard"})
	for n := range total {
		put(t, z, n, n+1)
		<-time.After(5 * time.Millisecond)
	}
	finish(t, z)
	got := r.Steps(zoo.Check{From: zoo.Weft})
	if len(got) < 2 || len(got) > total/2 || got[0] != 0 {
		t.Errorf("the slow reader saw steps %v of %d", got, total)
	}
}

// Several Weft readers at a real writer, and slow ones.

// TestADIOS2LateWeftReader: a Weft reader comes when the writer, of two ranks,
// runs already. It gets what comes from then on, without a gap.
func TestADIOS2LateWeftReader(t *testing.T) {
	for _, preload := range []string{"On", "Off"} {
		t.Run("preload "+preload, func(t *testing.T) {
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{
				Stream: Stream{Dir: dir, Ranks: 2, StepWait: true, Params: map[string]string{"RendezvousReaderCount": "0"}},
				Steps:  1 << 20,
			})
			step := -1
			next := func() {
				w.Next()
				step++
				w.Expect(fmt.Sprintf("STEP %d", step))
			}
			for range 3 {
				next()
			}
			type opening struct {
				r   *sst.Reader
				err error
			}
			opened := make(chan opening, 1)
			go func() {
				r, err := sst.Open(t.Context(), filepath.Join(dir, "zoo"), sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: preload}})
				opened <- opening{r, err}
			}()
			var o opening
			for o == (opening{}) {
				select {
				case o = <-opened:
				default:
					next()
				}
			}
			if o.err != nil {
				t.Fatal(o.err)
			}
			defer o.r.Close()
			joined := step + 1 // the next one is ours for certain
			for range 7 {
				next()
			}
			w.CloseInput()
			got, err := readRest(t.Context(), o.r, zoo.Check{Ranks: 2, From: zoo.ADIOS2Stream, AttributesMayMiss: true}, nil)
			if err != nil {
				t.Error(err)
			}
			wantRun(t, "the late reader", got, joined, step)
			if len(got) > 0 && got[0] != int(o.r.Info().FirstStep) {
				t.Errorf("saw steps %v, was told that the first is %d", got, o.r.Info().FirstStep)
			}
			w.OK()
		})
	}
}

// TestADIOS2TwoWeftReaders: both get everything, from one session or from two.
func TestADIOS2TwoWeftReaders(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared session %v", shared), func(t *testing.T) {
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: 2, Params: map[string]string{"RendezvousReaderCount": "2"}}, Steps: 10})
			cfg := sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 60}}
			if shared {
				s, err := sst.NewSession(t.Context(), sst.SessionConfig{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				cfg.Session = s
			}
			out := make(chan readOutcome, 2)
			for _, preload := range []string{"On", "Off"} {
				cfg := cfg
				cfg.Params.SpeculativePreloadMode = preload
				go func() {
					out <- readWith(t.Context(), filepath.Join(dir, "zoo"), cfg, zoo.Check{Ranks: 2, From: zoo.ADIOS2Stream})
				}()
			}
			for range 2 {
				o := <-out
				if o.err != nil {
					t.Error(o.err)
				}
				wantAll(t, o.steps, 10)
			}
			w.OK()
		})
	}
}

// readWith opens a reader and reads to the end.
func readWith(ctx context.Context, name string, cfg sst.ReaderConfig, check zoo.Check) (o readOutcome) {
	r, err := sst.Open(ctx, name, cfg)
	if err != nil {
		return readOutcome{err: err}
	}
	defer r.Close()
	o.steps, o.err = readRest(ctx, r, check, nil)
	return o
}

// TestADIOS2WaitsForSlowWeftReader: with QueueLimit=1 and Block a step that a
// Weft reader holds stops the writer in the EndStep after it, and nothing is
// lost.
func TestADIOS2WaitsForSlowWeftReader(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			const total = 10
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: ranks, Params: map[string]string{"QueueLimit": "1"}}, Steps: total})
			r := openZoo(t, filepath.Join(dir, "zoo"), sst.Params{})
			held := func(n int) {
				<-time.After(30 * time.Millisecond)
				if q := r.Info().Queued; q != 0 {
					t.Errorf("while step %d is held, %d more have come", n, q)
				}
			}
			got, err := readRest(t.Context(), r, zoo.Check{Ranks: ranks, From: zoo.ADIOS2Stream}, held)
			if err != nil {
				t.Error(err)
			}
			wantAll(t, got, total)
			if s := r.Info().Skipped; s != 0 {
				t.Errorf("%d steps were skipped", s)
			}
			w.OK()
		})
	}
}

// TestF17ADIOS2Discards: what a real writer drops is counted: what the reader
// got and what it was told of make up the stream.
func TestF17ADIOS2Discards(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			const total = 60
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{
				Stream: Stream{Dir: dir, Ranks: ranks, StepDelay: 5 * time.Millisecond, Vars: []string{"array/", "value/"}, Params: map[string]string{"QueueLimit": "1", "QueueFullPolicy": "Discard"}},
				Steps:  total,
			})
			r := openZoo(t, filepath.Join(dir, "zoo"), sst.Params{})
			check := zoo.Check{Ranks: ranks, From: zoo.ADIOS2Stream, Prefixes: []string{"array/", "value/"}}
			got, err := readRest(t.Context(), r, check, func(int) { <-time.After(60 * time.Millisecond) })
			if err != nil {
				t.Error(err)
			}
			w.OK()
			skipped := int(r.Info().Skipped)
			if len(got)+skipped != total || skipped == 0 || len(got) < 2 || got[0] != 0 {
				t.Errorf("saw steps %v and %d skipped, together not %d", got, skipped, total)
			}
			for i := 1; i < len(got); i++ {
				if got[i] <= got[i-1] {
					t.Errorf("saw steps %v: out of order", got)
				}
			}
		})
	}
}

// TestF87Operator: one variable of a real stream is compressed, fifty steps.
func TestF87Operator(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		for _, preload := range []string{"On", "Off"} {
			t.Run(fmt.Sprintf("%d ranks, preload %s", ranks, preload), func(t *testing.T) {
				const total = 50
				vars := []string{"shape/big", "shape/rows", "value/f64"}
				dir := t.TempDir()
				w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: ranks, Vars: vars}, Steps: total, Operator: "bzip2"})
				r := openZoo(t, filepath.Join(dir, "zoo"), sst.Params{SpeculativePreloadMode: preload})
				got, err := readRest(t.Context(), r, zoo.Check{Ranks: ranks, From: zoo.ADIOS2Stream, Prefixes: vars}, nil)
				if err != nil {
					t.Error(err)
				}
				wantAll(t, got, total)
				w.OK()
			})
		}
	}
}
