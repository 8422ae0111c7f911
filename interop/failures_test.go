package interop

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
)

// Failures that a Weft reader meets at a real writer, and what it must not do to
// that writer. The tests carry the numbers of the reports they answer.

// few are the variables of tests that are not about the data.
var few = []string{"array/"}

// fewCheck checks them.
func fewCheck(ranks int) zoo.Check {
	return zoo.Check{Ranks: ranks, From: zoo.ADIOS2Stream, Prefixes: few, AttributesMayMiss: true}
}

// serveOne steps a writer with StepWait until a real reader has had two steps of
// it, and closes it: proof that the writer is unharmed. ADIOS2 answers a late
// reader in an EndStep.
func serveOne(t *testing.T, w *Peer, o ReaderOptions) {
	t.Helper()
	o.Late, o.Gaps, o.StopAfter = true, true, 2
	r := ADIOS2Reader(t, o)
	for !ended(r) {
		w.Next()
		w.Expect("STEP ")
	}
	if got := r.Steps(zoo.Check{From: zoo.ADIOS2Stream, Prefixes: o.Vars, AttributesMayMiss: true}); len(got) != 2 {
		t.Errorf("the real reader saw steps %v, want two", got)
	}
	w.OK()
}

// stepping is a real writer without end that waits for nobody unless told, and
// keeps no more steps than it must.
func stepping(dir string, extra map[string]string) WriterOptions {
	p := map[string]string{"RendezvousReaderCount": "0", "QueueLimit": "1", "QueueFullPolicy": "Discard"}
	for k, v := range extra {
		p[k] = v
	}
	return WriterOptions{Stream: Stream{Dir: dir, StepWait: true, Vars: few, Params: p}, Steps: 1 << 20}
}

// TestF06PlaneMismatch: a real writer that was not told a data plane takes ucx.
// Open must say so at once, name the cure, and leave no trace.
func TestF06PlaneMismatch(t *testing.T) {
	for _, midRun := range []bool{false, true} {
		t.Run(fmt.Sprintf("mid-run %v", midRun), func(t *testing.T) {
			o := stepping(t.TempDir(), map[string]string{"DataTransport": ""})
			if !midRun {
				o.Params["RendezvousReaderCount"] = "1"
			}
			w := ADIOS2Writer(t, o)
			w.Expect("OPENING")
			if midRun {
				w.Next()
				w.Expect("STEP 0")
			}
			name := filepath.Join(o.Dir, "zoo")
			eventually(t, "a contact file", func() bool { return exists(name + ".sst") })
			for range 2 {
				wantPlaneError(t, name)
			}
			reader := ReaderOptions{Stream: Stream{Dir: o.Dir, Vars: few, Params: map[string]string{"DataTransport": ""}}}
			serveOne(t, w, reader)
		})
	}
}

func wantPlaneError(t *testing.T, name string) {
	t.Helper()
	start := time.Now()
	_, err := sst.Open(t.Context(), name, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 60}})
	if took := time.Since(start); took > soon {
		t.Errorf("it took %v to see the wrong plane", took)
	}
	if !errors.Is(err, sst.ErrPlane) || errors.Is(err, sst.ErrMarshal) {
		t.Fatalf("got %v, want ErrPlane", err)
	}
	for _, word := range []string{"ucx", "evpath", "DataTransport", "WAN"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

// TestF06MarshalMismatch: a writer with another marshalling shows it only after
// the reader has registered, where leaving in the wrong way would hang it
// (docs/wire/sst.md §9.3).
func TestF06MarshalMismatch(t *testing.T) {
	for _, method := range []string{"FFS", "BP"} {
		for _, midRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, mid-run %v", method, midRun), func(t *testing.T) {
				o := stepping(t.TempDir(), map[string]string{"MarshalMethod": method})
				o.NoAttributes, o.Vars = true, []string{"array/f64"} // FFS crashes on char
				if !midRun {
					o.Params["RendezvousReaderCount"] = "1"
				}
				w := ADIOS2Writer(t, o)
				w.Expect("OPENING")
				opened := make(chan error, 1)
				go func() {
					_, err := sst.Open(t.Context(), filepath.Join(o.Dir, "zoo"), sst.ReaderConfig{})
					opened <- err
				}()
				err := stepUntil(w, midRun, opened)
				if !errors.Is(err, sst.ErrMarshal) || errors.Is(err, sst.ErrPlane) {
					t.Errorf("got %v, want ErrMarshal", err)
				}
				serveOne(t, w, ReaderOptions{Stream: Stream{Dir: o.Dir, Vars: o.Vars, NoAttributes: true}})
			})
		}
	}
}

// stepUntil lets a writer that runs make steps until something has come of a
// reader, since it answers it in an EndStep only.
func stepUntil[T any](w *Peer, running bool, done <-chan T) T {
	for running {
		select {
		case v := <-done:
			return v
		default:
			w.Next()
			w.Expect("STEP ")
		}
	}
	return <-done
}

// TestF22WriterKilled kills a real writer at chosen moments: what is waited for
// fails at once with the right error, and what is here stays readable.
func TestF22WriterKilled(t *testing.T) {
	start := func(t *testing.T, preload string) (*Peer, *sst.Reader) {
		dir := t.TempDir()
		w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, StepWait: true, Vars: few}, Steps: 100})
		r := openZoo(t, filepath.Join(dir, "zoo"), sst.Params{SpeculativePreloadMode: preload})
		w.Expect("READY")
		return w, r
	}
	next := func(t *testing.T, w *Peer, n int) {
		t.Helper()
		for range n {
			w.Next()
			w.Expect("STEP ")
		}
	}
	wantLost := func(t *testing.T, what string, err error) {
		t.Helper()
		if !errors.Is(err, sst.ErrWriterFailed) {
			t.Errorf("%s gave %v, want ErrWriterFailed", what, err)
		}
	}

	t.Run("pending BeginStep", func(t *testing.T) {
		w, r := start(t, "On")
		next(t, w, 1)
		first := within(t, "the first step", time.Minute, begin(t.Context(), r))
		if first.err != nil {
			t.Fatal(first.err)
		}
		first.st.End()
		pending := begin(t.Context(), r)
		w.Kill()
		wantLost(t, "BeginStep", within(t, "BeginStep", soon, pending).err)
		wantLost(t, "a later one", within(t, "BeginStep", soon, begin(t.Context(), r)).err)
	})
	t.Run("pending Get", func(t *testing.T) {
		w, r := start(t, "Off")
		next(t, w, 1)
		first := within(t, "the first step", time.Minute, begin(t.Context(), r))
		if first.err != nil {
			t.Fatal(first.err)
		}
		stop(t, w.Process) // nobody answers, but the connection holds
		got := make(chan error, 1)
		go func() {
			_, err := StepJSON(t.Context(), first.st)
			got <- err
		}()
		select {
		case err := <-got:
			t.Fatalf("a stopped writer has answered: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		w.Kill()
		wantLost(t, "Get", within(t, "Get", soon, got))
		first.st.End()
		wantLost(t, "BeginStep", within(t, "BeginStep", soon, begin(t.Context(), r)).err)
	})
	t.Run("steps queued, preload On", func(t *testing.T) {
		w, r := start(t, "On")
		next(t, w, 3)
		eventually(t, "three steps queued", func() bool { return r.Info().Queued == 3 })
		w.Kill()
		<-w.Done()
		got, err := readRest(t.Context(), r, fewCheck(1), nil)
		wantLost(t, "the end", err)
		wantSteps(t, got, upTo(3))
	})
	t.Run("steps queued, preload Off", func(t *testing.T) {
		w, r := start(t, "Off")
		next(t, w, 3)
		eventually(t, "three steps queued", func() bool { return r.Info().Queued == 3 })
		w.Kill()
		<-w.Done()
		began := time.Now()
		for {
			st, err := r.BeginStep(t.Context())
			if err != nil {
				wantLost(t, "BeginStep", err)
				break
			}
			_, err = readStep(t.Context(), st, fewCheck(1))
			wantLost(t, "Get", err)
			st.End()
		}
		if took := time.Since(began); took > soon {
			t.Errorf("it took %v", took)
		}
	})
}

// TestSoakF22WriterRankKilled kills one of the ranks of a real writer at a
// random moment. The reader ends with the typed error within five seconds, or
// with the clean end; every step it got is right.
func TestSoakF22WriterRankKilled(t *testing.T) {
	rng := testutil.Rand(t)
	for i := range testutil.Count(t, 4, 100) {
		after := time.Duration(rng.Int64N(int64(600 * time.Millisecond)))
		preload := []string{"On", "Off"}[i%2]
		t.Run(fmt.Sprintf("%d/preload %s, after %v", i, preload, after), func(t *testing.T) {
			dir := t.TempDir()
			w := ADIOS2Writer(t, WriterOptions{Stream: Stream{Dir: dir, Ranks: 2, StepDelay: 2 * time.Millisecond, Vars: few}, Steps: 1 << 20})
			r := openZoo(t, filepath.Join(dir, "zoo"), sst.Params{SpeculativePreloadMode: preload})
			out := make(chan readOutcome, 1)
			go func() {
				steps, err := readRest(t.Context(), r, fewCheck(2), nil)
				out <- readOutcome{steps, err}
			}()
			<-time.After(after)
			killRank(t, rng, w)
			o := within(t, "seeing that a rank is gone", soon, out)
			if !errors.Is(o.err, sst.ErrWriterFailed) || strings.Contains(o.err.Error(), "zoo: ") {
				t.Errorf("the reader ended with %v, want ErrWriterFailed alone", o.err)
			}
			if len(o.steps) > 0 {
				// The last one may be the one whose Get failed.
				wantRun(t, "the reader", o.steps, 0, o.steps[len(o.steps)-1])
			}
		})
	}
}

func killRank(t *testing.T, rng *rand.Rand, w *Peer) {
	t.Helper()
	ranks := mpiRanks(t, w)
	if len(ranks) != 2 {
		t.Fatalf("the processes %v under mpirun, want two ranks", ranks)
	}
	if err := syscall.Kill(ranks[rng.IntN(len(ranks))], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestF01StaleContactFile: a killed writer leaves its contact file. Alone it is
// an error, after the time-out; a new writer under the name is found.
func TestF01StaleContactFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "zoo")
	stream := Stream{Dir: dir, Vars: few}
	dead := ADIOS2Writer(t, WriterOptions{Stream: stream})
	dead.Expect("OPENING")
	eventually(t, "a contact file", func() bool { return exists(name + ".sst") })
	dead.Kill()
	<-dead.Done()
	if !exists(name + ".sst") {
		t.Fatal("the killed writer took its contact file along")
	}

	t.Run("nobody", func(t *testing.T) {
		const limit = 2 * time.Second
		start := time.Now()
		_, err := sst.Open(t.Context(), name, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: int(limit.Seconds())}})
		if took := time.Since(start); took < limit || took > limit+time.Second {
			t.Errorf("Open took %v, want %v", took, limit)
		}
		if !errors.Is(err, sst.ErrStale) || !errors.Is(err, sst.ErrTimeout) || errors.Is(err, sst.ErrNoStream) {
			t.Errorf("got %v, want ErrStale and ErrTimeout", err)
		}
		for _, word := range []string{name + ".sst", "old)", "nobody of that name at "} {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("the error does not say %q: %v", word, err)
			}
		}
	})
	t.Run("a new writer", func(t *testing.T) {
		got := readBehind(t, name, sst.Params{}, zoo.Check{From: zoo.ADIOS2Stream, Prefixes: few})
		w := ADIOS2Writer(t, WriterOptions{Stream: stream, Steps: 3})
		o := <-got
		if o.err != nil {
			t.Error(o.err)
		}
		wantSteps(t, o.steps, upTo(3))
		w.OK()
	})
}

// TestF29WriterStopped: a writer that hangs accepts connections and answers
// nothing. Open ends in time, and the writer, once it goes on, is unharmed.
func TestF29WriterStopped(t *testing.T) {
	for _, rendezvous := range []string{"1", "0"} {
		t.Run("rendezvous "+rendezvous, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "zoo")
			w := ADIOS2Writer(t, WriterOptions{
				Stream: Stream{Dir: dir, Vars: few, StepDelay: 25 * time.Millisecond, Params: map[string]string{"RendezvousReaderCount": rendezvous}},
				Steps:  80,
			})
			w.Expect("OPENING")
			eventually(t, "a contact file", func() bool { return exists(name + ".sst") })
			if rendezvous == "0" {
				w.Expect("STEP 0")
			}
			stop(t, w.Process)
			start := time.Now()
			_, err := sst.Open(t.Context(), name, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 2}})
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("Open took %v, want two seconds", took)
			}
			if !errors.Is(err, sst.ErrTimeout) || errors.Is(err, sst.ErrNoStream) {
				t.Errorf("got %v, want ErrTimeout", err)
			}
			if err := w.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			survive(t, name, 80)
			w.OK()
		})
	}
}
