package testutil

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Main(m,
		Role{"echo", roleEcho},
		Role{"fail", func(args []string) error { return errors.New("on purpose: " + args[0]) }},
		Role{"hang", roleHang},
		Role{"orphan", roleOrphan},
		Role{"parent", roleParent},
		Role{"leak", roleLeak},
		Role{"race", roleRace},
	)
}

// roleEcho says its arguments, then what it is sent, in capitals.
func roleEcho(args []string) error {
	fmt.Println("arguments:", strings.Join(args, " "))
	fmt.Fprintln(os.Stderr, "a word on stderr")
	sc := bufio.NewScanner(os.Stdin)
	for sc.Scan() {
		fmt.Println("got:", strings.ToUpper(sc.Text()))
	}
	fmt.Print("no newline at the end")
	return sc.Err()
}

// roleHang ends only when it is killed.
func roleHang([]string) error {
	fmt.Println("hanging")
	select {}
}

// roleOrphan leaves a process that has left its group and session behind, and ends.
func roleOrphan([]string) error {
	cmd := exec.Command("setsid", "sleep", "600")
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Println("orphan:", cmd.Process.Pid)
	return nil
}

// roleParent starts a child as a test does, says its pid and hangs.
func roleParent([]string) error {
	p := Child(&fakeTB{}, "hang")
	p.Expect("hanging")
	fmt.Println("child:", p.Pid())
	select {}
}

// roleLeak is a run of tests that passes and leaves something behind.
func roleLeak(args []string) error {
	code := checkedRun(func() int {
		if err := leak(args[0]); err != nil {
			fmt.Fprintln(os.Stderr, "cannot leak:", err)
			return 7
		}
		if args[0] == "failed" {
			return 3
		}
		return 0
	}, 50*time.Millisecond)
	if code != 0 {
		return fmt.Errorf("status %d", code)
	}
	return nil
}

func leak(kind string) error {
	switch kind {
	case "nothing", "failed":
		return nil
	case "goroutine":
		go func() { select {} }()
	case "descriptor":
		_, err := syscall.Open("/dev/zero", syscall.O_RDONLY, 0)
		return err
	case "mapping":
		f, err := os.CreateTemp(os.Getenv("LEAK_DIR"), "ring")
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Truncate(1 << 16); err != nil {
			return err
		}
		_, err = syscall.Mmap(int(f.Fd()), 0, 1<<16, syscall.PROT_READ, syscall.MAP_SHARED)
		return err
	case "child":
		return exec.Command("sleep", "600").Start()
	case "zombie":
		cmd := exec.Command("echo", "gone")
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		_, err = bufio.NewReader(out).ReadString(0)
		if err == nil {
			return errors.New("echo wrote a zero byte")
		}
		return out.Close()
	case "orphan":
		return exec.Command("sh", "-c", "setsid sleep 600 >/dev/null 2>&1 </dev/null &").Run()
	default:
		return errors.New("no such leak")
	}
	return nil
}

func TestMainFindsLeaks(t *testing.T) {
	for _, c := range []struct{ kind, want string }{
		{"nothing", ""},
		{"goroutine", "goroutines: found unexpected goroutines"},
		{"descriptor", "/dev/zero"},
		{"mapping", "shared memory is mapped: "},
		{"child", "sleep 600"},
		{"zombie", "state Z"},
		{"orphan", "sleep 600"},
		{"failed", "status 3"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Setenv("LEAK_DIR", t.TempDir())
			p := Child(t, "leak", c.kind)
			err := p.Wait()
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestFuzzingIsOffInAnOrdinaryRun(t *testing.T) {
	if fuzzing() {
		t.Error("an ordinary run is taken for a fuzzing run: its leaks would not be looked for")
	}
}

// fakeTB stands for a testing.TB in places that must not end the real test.
type fakeTB struct {
	testing.TB
	log     strings.Builder
	skipped bool
	failed  bool
}

// errStop is what the fake's Fatalf and Skipf panic with, in place of Goexit.
var errStop = errors.New("stopped")

func (f *fakeTB) Helper()        {}
func (f *fakeTB) Cleanup(func()) {}
func (f *fakeTB) Failed() bool   { return f.failed }

func (f *fakeTB) Logf(format string, args ...any) { fmt.Fprintf(&f.log, format+"\n", args...) }
func (f *fakeTB) Errorf(format string, args ...any) {
	f.failed = true
	f.Logf(format, args...)
}
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(errStop)
}
func (f *fakeTB) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }
func (f *fakeTB) Skipf(format string, args ...any) {
	f.skipped = true
	f.Logf(format, args...)
	panic(errStop)
}
func (f *fakeTB) Context() context.Context { return context.Background() }

// run calls fn and returns whether it came to its end.
func (f *fakeTB) run(fn func()) (ended bool) {
	defer func() {
		if r := recover(); r != nil && r != any(errStop) {
			panic(r)
		}
	}()
	fn()
	return true
}

// processGone reports whether no process has the pid, a zombie counting as gone.
func processGone(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	if err != nil {
		return true
	}
	_, _, state, _, ok := parseStat(stat)
	return ok && (state == "Z" || state == "X")
}
