package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// What the tests of several readers and of failures share: Weft readers and
// writers that are driven in steps, and waits that are bounded.

// eventually waits until ok, and fails the test when that takes a minute.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !ok() {
		select {
		case <-limit.C:
			t.Fatalf("still not: %s", what)
		case <-tick.C:
		}
	}
}

// openZoo opens a Weft reader that is closed with the test.
func openZoo(t *testing.T, name string, p sst.Params) *sst.Reader {
	t.Helper()
	p.OpenTimeoutSecs = 60
	r, err := sst.Open(t.Context(), name, sst.ReaderConfig{Params: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// readStep reads everything of a step and checks it.
func readStep(ctx context.Context, st *step.Step, check zoo.Check) (int, error) {
	got, err := StepJSON(ctx, st)
	if err != nil {
		return int(st.Number()), err
	}
	return check.Step(got)
}

// readRest reads a stream to its end and checks every step. hold, if any, is
// called while a step is still held. It returns the numbers of the steps.
func readRest(ctx context.Context, r *sst.Reader, check zoo.Check, hold func(step int)) (numbers []int, err error) {
	for st, e := range r.Steps(ctx) {
		if e != nil {
			return numbers, errors.Join(err, e)
		}
		n, e := readStep(ctx, st, check)
		err = errors.Join(err, e)
		numbers = append(numbers, n)
		if hold != nil {
			hold(n)
		}
	}
	return numbers, err
}

// readOutcome is what came of a background reader.
type readOutcome struct {
	steps []int
	err   error
}

// readBehind opens a Weft reader and reads to the end, in the background.
func readBehind(t *testing.T, name string, p sst.Params, check zoo.Check) <-chan readOutcome {
	t.Helper()
	p.OpenTimeoutSecs = 60
	out := make(chan readOutcome, 1)
	go func() {
		var o readOutcome
		defer func() { out <- o }()
		r, err := sst.Open(t.Context(), name, sst.ReaderConfig{Params: p})
		if err != nil {
			o.err = err
			return
		}
		defer r.Close()
		o.steps, o.err = readRest(t.Context(), r, check, nil)
	}()
	return out
}

// createZoo makes a Weft writer of the zoo, once its readers are there. Step it,
// then close it with finish.
func createZoo(t *testing.T, name string, ranks int, p sst.Params) *ZooWriter {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := sst.Create(ctx, name, sst.WriterConfig{Params: p, Ranks: ranks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &ZooWriter{W: w, Ranks: ranks}
}

// put writes the steps from to to-1.
func put(t *testing.T, z *ZooWriter, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := z.Step(ctx, n)
		cancel()
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
	}
}

// finish closes a writer, which must go well.
func finish(t *testing.T, z *ZooWriter) {
	t.Helper()
	if err := z.W.Close(); err != nil {
		t.Error(err)
	}
}

// wantRun checks that steps without a gap were seen, up to last; the first one
// is at most latest.
func wantRun(t *testing.T, who string, got []int, latest, last int) {
	t.Helper()
	if len(got) == 0 || got[0] > latest || got[len(got)-1] != last {
		t.Errorf("%s saw steps %v, want all from %d or before to %d", who, got, latest, last)
		return
	}
	for i, n := range got {
		if n != got[0]+i {
			t.Errorf("%s saw steps %v: a gap", who, got)
			return
		}
	}
}

// count makes a pointer for [sst.Params].RendezvousReaderCount.
func count(n int) *int { return &n }

// mpiRanks returns the process ids of the ranks that an mpirun has started: of
// those that are peers already, and not what root.sh or mpirun run before.
func mpiRanks(t *testing.T, p *Peer) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(p.Pid()) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has ended
		}
		for _, word := range strings.Fields(string(b)) {
			comm, _ := os.ReadFile("/proc/" + word + "/comm")
			if pid, err := strconv.Atoi(word); err == nil && strings.HasPrefix(string(comm), "python") {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids) // as they were started
	return pids
}

// beginOutcome is what came of a BeginStep.
type beginOutcome struct {
	st  *step.Step
	err error
}

// begin calls BeginStep in the background.
func begin(ctx context.Context, r *sst.Reader) <-chan beginOutcome {
	out := make(chan beginOutcome, 1)
	go func() {
		st, err := r.BeginStep(ctx)
		out <- beginOutcome{st, err}
	}()
	return out
}

// within waits for a value, for a bounded time.
func within[T any](t *testing.T, what string, limit time.Duration, c <-chan T) T {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		t.Fatalf("%s took longer than %v", what, limit)
	}
	panic("unreachable")
}

// exists reports whether there is a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// wantError checks an error by its sentinel.
func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s gave %v, want %v", what, err, want)
	}
}

// descendantsOf lists the processes with a name that descend from one.
func descendantsOf(t *testing.T, pid int, name string) (list []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has ended
		}
		for _, word := range strings.Fields(string(b)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				continue
			}
			comm, err := os.ReadFile("/proc/" + word + "/comm")
			if err == nil && strings.TrimSpace(string(comm)) == name {
				list = append(list, child)
			}
			list = append(list, descendantsOf(t, child, name)...)
		}
	}
	return list
}

// stop stops a process, and returns when every thread of it stands still.
func stop(t *testing.T, p *testutil.Process) {
	t.Helper()
	signal(t, p, syscall.SIGSTOP)
	eventually(t, "a process that stands still", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range threads {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // a thread that has ended
			}
			// The state follows the name, which is in brackets and may hold anything.
			if i := strings.LastIndexByte(string(text), ')'); i < 0 || !strings.HasPrefix(string(text[i:]), ") T") {
				return false
			}
		}
		return len(threads) > 0
	})
}

// signal sends a signal to a process.
func signal(t *testing.T, p *testutil.Process, s syscall.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatal(err)
	}
}
