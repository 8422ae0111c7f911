package ping

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
)

func TestChoose(t *testing.T) {
	core := func(cpu int) string { return strconv.Itoa(cpu / 2) } // two threads each
	for _, c := range []struct {
		pin         Pin
		list        []int
		local, peer int
	}{
		{Same, []int{3, 4}, 3, 3},
		{Same, []int{7}, 7, 7},
		{Apart, []int{2, 3, 4, 5}, 2, 4},
		{Apart, []int{2, 3}, 2, 3}, // better than nothing
		{Apart, []int{0, 9}, 0, 9},
	} {
		if l, p, err := choose(c.pin, c.list, core); l != c.local || p != c.peer || err != nil {
			t.Errorf("%+v: %d, %d, %v", c, l, p, err)
		}
	}
	if _, _, err := choose(Apart, []int{1}, core); !errors.Is(err, ErrPin) {
		t.Errorf("one processor: %v", err)
	}
	if l, p, err := CPUs(Same); err != nil || l != p {
		t.Errorf("%d, %d, %v", l, p, err)
	}
}

// affinities are those of all threads.
func affinities(t *testing.T) (list [][]int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Fatal(err)
		}
		if cpus, err := sys.Affinity(tid); err == nil { // else it has ended
			list = append(list, cpus)
		}
	}
	return list
}

func TestPinProcess(t *testing.T) {
	before, err := sys.Affinity(0)
	if err != nil {
		t.Fatal(err)
	}
	procs, cpu := runtime.GOMAXPROCS(0), before[len(before)-1]
	restore, err := PinProcess(cpu)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range affinities(t) {
		if !slices.Equal(list, []int{cpu}) {
			t.Errorf("a thread may run on %v instead of %d", list, cpu)
		}
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	for _, list := range affinities(t) {
		if !slices.Equal(list, before) {
			t.Errorf("a thread may run on %v instead of %v", list, before)
		}
	}
	if got := runtime.GOMAXPROCS(0); got != procs {
		t.Errorf("%d processors for Go instead of %d", got, procs)
	}
	if _, err := PinProcess(1023); !errors.Is(err, ErrPin) {
		t.Errorf("a processor that is not there: %v", err)
	}
}

func TestStartOn(t *testing.T) {
	_, cpu, err := CPUs(Apart)
	if errors.Is(err, ErrPin) {
		_, cpu, err = CPUs(Same)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("grep", "^Cpus_allowed_list:", "/proc/self/status")
	var out strings.Builder
	cmd.Stdout = &out
	if err := StartOn(cpu, cmd.Start); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if f := strings.Fields(out.String()); len(f) != 2 || f[1] != strconv.Itoa(cpu) {
		t.Errorf("%q, not processor %d", &out, cpu)
	}
	failed := errors.New("no")
	if err := StartOn(cpu, func() error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if err := StartOn(1023, func() error { return nil }); !errors.Is(err, ErrPin) {
		t.Errorf("a processor that is not there: %v", err)
	}
}
