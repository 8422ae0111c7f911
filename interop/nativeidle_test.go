package interop

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// The native plane needs nobody's help, and does nothing while nothing happens.

// TestNativeWriterComputes: a writer that computes after EndStep and calls nothing is read
// meanwhile, all of it and again; also one that does not run at all, once a step of it was looked at.
func TestNativeWriterComputes(t *testing.T) {
	const total = 6
	job := endlessViews(t.TempDir())
	job.Steps, job.StepWait, job.Compute, job.Delay, job.Quiet = total, true, true, 0, false
	w := startViews(t, job)
	r, err := sst.Open(t.Context(), job.Name, sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: killStart}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	for n := range uint64(total) {
		w.Next()
		w.Expect("STEP ")
		st, err := r.BeginStep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if st.Number() != n {
			t.Fatalf("step %d, want %d", st.Number(), n)
		}
		lookTwice(t, st)
		if n == total-1 {
			stop(t, w.Ranks[0])
			lookTwice(t, st)
			signal(t, w.Ranks[0], syscall.SIGCONT)
		}
		if err := st.End(); err != nil {
			t.Error(err)
		}
	}
	info := r.Info()
	wantReads(t, info, "native")
	if got := info.Writers[0]; got.Views != total+1 || got.Viewed != (total+1)*viewBytes || got.Copied != (total+1)*viewBytes {
		t.Errorf("%+v after %d steps of %d bytes, one of them seen twice", got, total, viewBytes)
	}
	w.CloseInput()
	if _, err := r.BeginStep(t.Context()); err == nil {
		t.Error("a step after the last one")
	}
	r.Close()
	w.OK()
}

// lookTwice reads all of a step by a view, and by a copy.
func lookTwice(t *testing.T, st *step.Step) {
	t.Helper()
	v, err := step.Lookup[uint64](st, viewArray)
	if err != nil {
		t.Fatal(err)
	}
	view, err := v.View(t.Context(), step.All)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Release()
	got, err := v.Get(t.Context(), step.All, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]uint64{view.Data(), got} {
		if err := checkArray(st.Number(), data, viewElements); err != nil {
			t.Error(err)
		}
	}
}

// TestSoakNativeIdle: a reader that waits for a step and a writer that makes none use no
// processor, views held or not; and the next step is seen. In a reader with manual progress
// there is no goroutine of Weft.
func TestSoakNativeIdle(t *testing.T) {
	for _, manual := range []bool{false, true} {
		t.Run(fmt.Sprintf("manual %v", manual), func(t *testing.T) { nativeIdle(t, manual) })
	}
}

func nativeIdle(t *testing.T, manual bool) {
	period := time.Duration(testutil.Count(t, 2, 10)) * time.Second
	job := endlessViews(t.TempDir())
	job.StepWait, job.Delay, job.Quiet = true, 0, false
	w := startViews(t, job)
	looks := job.looksAt(nil)
	looks.Manual = manual
	r := startViews(t, looks)
	both := []*testutil.Process{w.Ranks[0], r.Ranks[0]}
	for n := range 3 {
		w.Next()
		r.Expect("STEP " + strconv.Itoa(n))
	}
	w.Stats() // a collection
	r.Stats()
	// In a short time one interrupt that is counted for a process counts for much.
	bound := period/1000 + time.Duration(testutil.Count(t, 9, 0))*time.Millisecond
	used := make([]time.Duration, len(both))
	for range 3 { // the best of three: the runtime collects when it likes
		before := usages(t, both)
		asking := usages(t, both) // what it costs to be asked
		<-time.After(period)
		after := usages(t, both)
		for i := range both {
			used[i] = after[i] - asking[i] - (asking[i] - before[i])
		}
		if used[0] <= bound && used[1] <= bound {
			break
		}
	}
	r.Ranks[0].Send(wordRuns)
	if runs := r.Ranks[0].Expect("RUNS "); (runs == "") != manual {
		t.Errorf("in the reader runs %q", runs)
	}
	t.Logf("in %v the writer used %v, the reader %v", period, used[0], used[1])
	if used[0] > bound || used[1] > bound {
		t.Errorf("in %v of nothing the writer used %v, the reader %v, want at most %v", period, used[0], used[1], bound)
	}
	w.Next()
	r.Expect("STEP 3")
	w.Send(wordLeave)
	w.CloseInput()
	r.OK()
	w.OK()
}

// usages asks each process what it has used of the processors.
func usages(t *testing.T, list []*testutil.Process) (all []time.Duration) {
	t.Helper()
	for _, p := range list {
		p.Send(wordUsage)
		n, err := strconv.ParseInt(p.Expect("USAGE "), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Duration(n))
	}
	return all
}
