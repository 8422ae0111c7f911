package interop

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
)

// Step distribution, queues and locking, with real peers on the other side.

// TestF18Distribution: two reader cohorts share the steps of a writer: each step
// goes to one of them, none is lost. With RoundRobin they take turns.
func TestF18Distribution(t *testing.T) {
	for _, mode := range []string{"RoundRobin", "OnDemand"} {
		for _, c := range []struct{ writer, reader kind }{
			{weftKind(3), adios2Kind(2)}, {weftKind(3), weftKind(2)}, {adios2Kind(2), weftKind(2)}, {adios2Kind(1), weftKind(1)},
		} {
			t.Run(fmt.Sprintf("%s, %v to two of %v", mode, c.writer, c.reader), func(t *testing.T) {
				shareSteps(t, mode, c.writer, c.reader)
			})
		}
	}
}

func shareSteps(t *testing.T, mode string, writer, reader kind) {
	const total = 20
	dir := t.TempDir()
	w := startWriter(t, writer, WriterOptions{
		Stream: Stream{Dir: dir, Vars: few, NoAttributes: !writer.weft, Params: map[string]string{"RendezvousReaderCount": "2", "StepDistributionMode": mode}}, Steps: total,
	})
	// A writer of ADIOS2 sends an attribute with one step, so to one cohort only.
	o := ReaderOptions{Stream: Stream{Dir: dir, Vars: few, NoAttributes: !writer.weft}, Gaps: true}
	var readers [2]side
	for i := range readers {
		readers[i] = startReader(t, reader, writer, o)
	}
	var all []int
	for i, r := range readers {
		got := stepsOf(t, r, writer, o)
		t.Logf("reader %d saw %v", i, got)
		all = append(all, got...)
		if mode == "RoundRobin" && len(got) != total/2 {
			t.Errorf("reader %d saw %d steps, want %d", i, len(got), total/2)
		}
	}
	slices.Sort(all)
	wantAll(t, all, total)
	w.OK()
}

// TestF18RoundRobinOneCohort: the only cohort gets every step, and the writer
// says once that distribution is between cohorts.
func TestF18RoundRobinOneCohort(t *testing.T) {
	dir := t.TempDir()
	writer, reader := weftKind(2), adios2Kind(2)
	w := WeftWriter(t, WriterOptions{
		Stream: Stream{Dir: dir, Ranks: 2, Vars: few, Params: map[string]string{"StepDistributionMode": "RoundRobin"}}, Steps: 10,
	})
	o := ReaderOptions{Stream: Stream{Dir: dir, Vars: few}, Steps: 10}
	wantAll(t, stepsOf(t, startReader(t, reader, writer, o), writer, o), 10)
	w.OK()
	if n := strings.Count(w.Ranks[0].Stderr(), "StepDistributionMode"); n != 1 {
		t.Errorf("rank 0 mentions StepDistributionMode %d times, want once:\n%s", n, w.Ranks[0].Stderr())
	}
}

// TestF18CohortKilled: one of two cohorts dies: the other takes what is still
// to come, and the writer ends in order.
func TestF18CohortKilled(t *testing.T) {
	const total = 20
	for _, mode := range []string{"RoundRobin", "OnDemand"} {
		for _, reader := range []kind{adios2Kind(1), weftKind(2)} {
			t.Run(fmt.Sprintf("%s, %v", mode, reader), func(t *testing.T) {
				dir := t.TempDir()
				writer := weftKind(2)
				w := WeftWriter(t, WriterOptions{
					Stream: Stream{Dir: dir, Ranks: 2, Vars: few, StepWait: true, Params: map[string]string{"RendezvousReaderCount": "2", "StepDistributionMode": mode}},
					Steps:  total,
				})
				o := ReaderOptions{Stream: Stream{Dir: dir, Vars: few}, Gaps: true}
				victim, other := startReader(t, reader, writer, o), startReader(t, reader, writer, o)
				w.Expect("READY")
				for range total / 2 {
					w.Next()
					w.Expect("STEP ")
				}
				killSide(t, victim, 0)
				<-victim.Done()
				for range total / 2 {
					w.Next()
					w.Expect("STEP ")
				}
				w.OK()
				got := stepsOf(t, other, writer, o)
				if len(got) < total/2 || got[len(got)-1] != total-1 || !slices.IsSorted(got) {
					t.Errorf("the other cohort saw %v of %d steps", got, total)
				}
			})
		}
	}
}

// TestF20PreciousAndReserved: a reader that comes late gets step 0 first if it is
// precious, then the reserved steps, then what is new; every attribute is there.
func TestF20PreciousAndReserved(t *testing.T) {
	const reserve, before, after = 3, 50, 5
	for _, c := range []struct{ writer, reader kind }{
		{weftKind(2), adios2Kind(1)}, {weftKind(2), adios2Kind(2)}, {weftKind(2), weftKind(2)}, {adios2Kind(2), weftKind(2)},
	} {
		t.Run(fmt.Sprintf("%v to %v", c.writer, c.reader), func(t *testing.T) {
			dir := t.TempDir()
			w := startWriter(t, c.writer, WriterOptions{
				Stream: Stream{Dir: dir, StepWait: true, NoAttributes: !c.writer.weft, Params: map[string]string{
					"RendezvousReaderCount": "0", "FirstTimestepPrecious": "true", "ReserveQueueLimit": fmt.Sprint(reserve),
				}}, Steps: 1 << 20,
			})
			w.Expect("READY")
			n := 0
			next := func() {
				w.Next()
				w.Expect(fmt.Sprintf("STEP %d", n))
				n++
			}
			for range before {
				next()
			}
			// A writer of ADIOS2 does not send again what has changed meanwhile.
			o := ReaderOptions{Stream: Stream{Dir: dir, NoAttributes: !c.writer.weft}, Late: true, Gaps: true}
			r := startReader(t, c.reader, c.writer, o)
			eventually(t, "a reader that is ready", func() bool {
				if !c.writer.weft {
					next() // it answers a reader in an EndStep
				}
				return strings.Contains(r.Stdout(), "READY")
			})
			last := n + after - 1
			for range after {
				next()
			}
			if p, ok := r.(*WeftPeer); ok && !c.writer.weft {
				// At its close a rank other than 0 of ADIOS2 lets the first step go, whoever reads it.
				for _, rank := range p.Ranks {
					eventually(t, "the first step is read", func() bool { return strings.Contains(rank.Stdout(), "STEP 0\n") })
				}
			}
			w.CloseInput()
			got := stepsOf(t, r, c.writer, o)
			t.Logf("saw %v", got)
			if len(got) == 0 || got[0] != 0 {
				t.Fatalf("saw %v, want step 0 first", got)
			}
			wantRun(t, "after step 0, the reader", got[1:], last-after+1, last)
			if c.writer.weft && (len(got) < 2 || got[1] != before-reserve) {
				t.Errorf("saw %v, want %d reserved steps after step 0", got, reserve)
			}
			w.OK()
		})
	}
}

// TestLearnedPreload: a writer that locks its definitions and a reader that locks
// its selections: from the second step on ADIOS2 pushes what the reader has asked
// for in the first. Both ways, and Weft with itself.
func TestLearnedPreload(t *testing.T) {
	const total = 10
	vars := []string{"array/f64", "array/i32", "shape/rows"}
	for _, c := range []struct{ writer, reader kind }{
		{adios2Kind(1), weftKind(1)}, {adios2Kind(2), weftKind(2)}, {weftKind(2), adios2Kind(1)}, {weftKind(2), adios2Kind(2)}, {weftKind(2), weftKind(2)},
	} {
		for _, preload := range []string{"Off", "Auto"} {
			t.Run(fmt.Sprintf("%v to %v, preload %s", c.writer, c.reader, preload), func(t *testing.T) {
				dir := t.TempDir()
				s := Stream{Dir: dir, Vars: vars, NoAttributes: true, Lock: true, Params: map[string]string{"SpeculativePreloadMode": preload}}
				w := startWriter(t, c.writer, WriterOptions{Stream: s, Steps: total})
				o := ReaderOptions{Stream: s, Steps: total}
				wantAll(t, stepsOf(t, startReader(t, c.reader, c.writer, o), c.writer, o), total)
				w.OK()
			})
		}
	}
}

// TestF12BlockAtBeginStep: with QueueLimit 1 and a real reader that holds a step,
// BeginStep waits, so that one step exists, not two.
func TestF12BlockAtBeginStep(t *testing.T) {
	for _, at := range []string{"EndStep", "BeginStep"} {
		t.Run(at, func(t *testing.T) {
			dir := t.TempDir()
			r := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, StepWait: true, Vars: few}, WeftWriter: true})
			p := sst.Params{QueueLimit: 1}
			if err := p.Set("BlockAt", at); err != nil {
				t.Fatal(err)
			}
			z := createZoo(t, filepath.Join(dir, "zoo"), 1, p)
			z.Skip = func(v zoo.Var) bool { return !zoo.Check{Prefixes: few}.Wants(v.Name) }
			put(t, z, 0, 1)
			began := make(chan error, 1)
			go func() {
				st, err := z.W.BeginStep(t.Context())
				if err == nil {
					began <- nil
					st.Abort()
					return
				}
				began <- err
			}()
			r.Expect("{")
			if at == "EndStep" {
				if err := within(t, "BeginStep", soon, began); err != nil {
					t.Error(err)
				}
			} else {
				select {
				case err := <-began:
					t.Errorf("a second step began while the first is held: %v", err)
				case <-time.After(300 * time.Millisecond):
				}
			}
			r.Next()
			if at == "BeginStep" {
				if err := within(t, "BeginStep after the release", soon, began); err != nil {
					t.Error(err)
				}
			}
			r.CloseInput()
			finish(t, z)
		})
	}
}

// TestF13QueueLimitBytes: steps of different sizes and a slow real reader: the
// bytes that wait stay below the limit, or one step waits alone.
func TestF13QueueLimitBytes(t *testing.T) {
	const total, limit = 30, 100 << 10 // a step of shape/big is 51200 bytes
	dir := t.TempDir()
	vars := []string{"shape/big", "array/"}
	r := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, Vars: vars, StepDelay: 30 * time.Millisecond}, WeftWriter: true, Steps: total})
	p := sst.Params{}
	if err := p.Set("QueueLimitBytes", fmt.Sprint(limit)); err != nil {
		t.Fatal(err)
	}
	z := createZoo(t, filepath.Join(dir, "zoo"), 1, p)
	most := 0
	for n := range total {
		put(t, z, n, n+1)
		info := z.W.Info()
		most = max(most, info.Held)
		if info.Bytes > limit && info.Held > 1 {
			t.Errorf("%d bytes wait in %d steps", info.Bytes, info.Held)
		}
	}
	finish(t, z)
	wantAll(t, r.Steps(ReaderOptions{WeftWriter: true, Stream: Stream{Vars: vars}}.check()), total)
	t.Logf("at most %d steps waited", most)
}

// TestF17EvictedSlowReader: with LagLimit a slow reader is detached. One of Weft's
// is told why; a real one sees its writer go. The others go on.
func TestF17EvictedSlowReader(t *testing.T) {
	const limit = 500 // steps, of which the writer makes no more than that in a second: a quick reader may be kept from running for a while
	for _, slow := range []kind{weftKind(2), adios2Kind(1)} {
		t.Run(slow.String(), func(t *testing.T) {
			dir := t.TempDir()
			writer := weftKind(2)
			o := endless(dir)
			o.Ranks = 2
			o.Params = map[string]string{"RendezvousReaderCount": "2", "QueueLimit": "2", "QueueFullPolicy": "Discard", "LagLimit": fmt.Sprint(limit)}
			w := WeftWriter(t, o)
			ro := ReaderOptions{Stream: Stream{Dir: dir, Vars: few, StepWait: true}, Gaps: true, Timeout: killBound}
			victim := startReader(t, slow, writer, ro)
			quick := WeftReader(t, ReaderOptions{Stream: Stream{Dir: dir, Vars: few}, WriterRanks: 2, WeftWriter: true, Gaps: true})
			quick.Expect("STEP ")
			eventually(t, "an eviction", func() bool { return strings.Contains(w.Ranks[0].Stderr(), "evicted") })
			if p, ok := victim.(*WeftPeer); ok {
				p.Next() // to the next BeginStep
				p.Next()
				p.Next()
				for rank := range p.Ranks {
					if e := p.End(rank, killBound); e.Late || e.Leak != "" || !e.Failed("ErrEvicted") {
						t.Errorf("the slow reader: %+v, want ErrEvicted", e)
					}
				}
			}
			w.Send(wordLeave)
			w.OK()
			got := quick.StepNumbers()
			if len(got) == 0 {
				t.Error("the quick reader saw nothing")
			}
		})
	}
}

// TestObserver: a Weft reader that only looks on does not count for the
// rendezvous, holds nobody up, and a real reader beside it sees everything.
func TestObserver(t *testing.T) {
	const total = 30
	dir := t.TempDir()
	w := WeftWriter(t, WriterOptions{
		Stream: Stream{Dir: dir, Ranks: 2, Vars: few, StepDelay: 5 * time.Millisecond, Params: map[string]string{"QueueLimit": "1"}}, Steps: total,
	})
	look := WeftReader(t, ReaderOptions{
		Stream: Stream{Dir: dir, Vars: few, StepDelay: 50 * time.Millisecond}, WriterRanks: 2, WeftWriter: true, Observer: true, Late: true, Gaps: true,
	})
	look.Expect("READY")
	select {
	case <-w.Ranks[0].Done():
		t.Fatal("the writer has ended")
	case <-time.After(200 * time.Millisecond):
	}
	if strings.Contains(w.Ranks[0].Stdout(), "READY") {
		t.Error("an observer has counted for the rendezvous")
	}
	r := ADIOS2Reader(t, ReaderOptions{Stream: Stream{Dir: dir, Vars: few}, WriterRanks: 2, WeftWriter: true, Steps: total})
	wantAll(t, r.Steps(ReaderOptions{WriterRanks: 2, WeftWriter: true, Stream: Stream{Vars: few}}.check()), total)
	w.OK()
	got := look.StepNumbers()
	if len(got) == 0 || len(got) == total {
		t.Errorf("the observer saw %d steps of %d", len(got), total)
	}
}
