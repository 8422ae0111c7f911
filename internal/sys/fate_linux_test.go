package sys

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestFateOf(t *testing.T) {
	child := testutil.Child(t, "memory", "4096")
	for pid, want := range map[int]Fate{
		os.Getpid(): FateLives, child.Pid(): FateLives, 1 << 30: FateGone, 0: FateUnknown, -1: FateUnknown,
	} {
		if got := FateOf(pid); got != want {
			t.Errorf("process %d: %d, want %d", pid, got, want)
		}
	}
	if got := fateOf(filepath.Join(t.TempDir(), "no proc"), os.Getpid()); got != FateUnknown {
		t.Errorf("without /proc: %d", got)
	}
	// What nobody has waited for has ended all the same.
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 100))
	testutil.Eventually(t, "it has ended", func() bool { return FateOf(cmd.Process.Pid) == FateGone })
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A process dies thread by thread, and its first thread may end before the others in one that lives on.
func TestFateOfThreads(t *testing.T) {
	const (
		lives  = "S 1 1 1 0 -1 4194560 0"
		exits  = "R 1 1 1 0 -1 4194564 0"
		zombie = "Z 1 1 1 0 -1 4227084 0"
		none   = "0000000000000000"
		killed = "0000000000000100"
	)
	type thread struct{ stat, pending string }
	for what, c := range map[string]struct {
		want    Fate
		threads []thread
	}{
		"one that lives":                {FateLives, []thread{{lives, none}}},
		"one that exits":                {FateExits, []thread{{exits, none}}},
		"killed, and not run since":     {FateExits, []thread{{lives, killed}}},
		"another signal":                {FateLives, []thread{{lives, "0000000000000200"}}},
		"some exit already":             {FateExits, []thread{{lives, killed}, {exits, none}, {lives, killed}}},
		"one of two ends":               {FateLives, []thread{{lives, none}, {exits, none}}},
		"the first has ended":           {FateLives, []thread{{zombie, none}, {lives, none}}},
		"the first has ended, the rest": {FateExits, []thread{{zombie, none}, {exits, none}}},
		"a zombie":                      {FateGone, []thread{{zombie, none}}},
		"nothing there":                 {FateGone, nil},
	} {
		proc := t.TempDir()
		write := func(name, text string) {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("self/x", "")
		for i, th := range c.threads {
			n := strconv.Itoa(7 + i)
			write("7/task/"+n+"/stat", n+" (a) Z (b) "+th.stat+"\n")
			write("7/task/"+n+"/status", "Name:\ta) Z (b\nSigQ:\t0/1\nSigPnd:\t"+th.pending+"\nShdPnd:\t0000000000000100\n")
		}
		if got := fateOf(proc, 7); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}
