package testutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestChildTalks(t *testing.T) {
	p := Child(t, "echo", "one", "two words")
	if got := p.Expect("arguments: "); got != "one two words" {
		t.Errorf("arguments %q", got)
	}
	p.Send("hello")
	if got := p.Expect("got: "); got != "HELLO" {
		t.Errorf("reply %q", got)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if text, ok := p.Line(); !ok || text != "no newline at the end" {
		t.Errorf("last line %q, %v", text, ok)
	}
	if text, ok := p.Line(); ok {
		t.Errorf("a line after the end: %q", text)
	}
	if got, want := p.Stderr(), "a word on stderr\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	if got, want := p.Stdout(), "arguments: one two words\ngot: HELLO\nno newline at the end\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
}

func TestChildFails(t *testing.T) {
	err := Child(t, "fail", "because").Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(err.Error(), "on purpose: because") {
		t.Fatalf("got %v", err)
	}
}

func TestChildOfUnknownRole(t *testing.T) {
	err := Child(t, "nobody").Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 2 || !strings.Contains(err.Error(), `no role "nobody"`) {
		t.Fatalf("got %v", err)
	}
}

func TestExpectFailsWhenTheChildEnds(t *testing.T) {
	f := &fakeTB{}
	p := Child(t, "fail", "early")
	p.t = f
	if f.run(func() { p.Expect("never: ") }) || !strings.Contains(f.log.String(), `starts with "never: "`) {
		t.Errorf("the test went on; log %q", f.log.String())
	}
	p.t = t
}

func TestKill(t *testing.T) {
	p := Child(t, "hang")
	p.Expect("hanging")
	p.Kill()
	exit, ok := errors.AsType[*exec.ExitError](p.Wait())
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("ended with %v", p.err)
	}
	p.Kill() // of one that has ended: nothing
}

func TestSignal(t *testing.T) {
	p := Child(t, "hang")
	p.Expect("hanging")
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to an ended process: %v", err)
	}
}

// A process that has its own session is reached by no signal to the group; it must still go.
func TestCleanupTakesOrphans(t *testing.T) {
	var pid int
	t.Run("starts", func(t *testing.T) {
		p := Child(t, "orphan")
		var err error
		if pid, err = strconv.Atoi(p.Expect("orphan: ")); err != nil {
			t.Fatal(err)
		}
		if processGone(pid) {
			t.Fatal("the orphan did not live")
		}
	})
	if !processGone(pid) {
		t.Errorf("process %d outlives the test", pid)
	}
}

// The test's process may die without any cleanup; its children must die with it.
func TestChildDiesWithItsParent(t *testing.T) {
	p := Child(t, "parent")
	pid, err := strconv.Atoi(p.Expect("child: "))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil { // the parent alone
		t.Fatal(err)
	}
	<-p.Done()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := until(ctx, func() bool { return processGone(pid) }); err != nil {
		t.Errorf("process %d outlives its parent: %v", pid, err)
	}
}

// until asks again and again, yielding, till cond holds.
func until(ctx context.Context, cond func() bool) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

func TestStart(t *testing.T) {
	dir := t.TempDir()
	p := Start(t, dir, []string{"WORD=weft"}, "sh", "-c", `pwd; echo "$WORD"; exit 3`)
	exit, ok := errors.AsType[*exec.ExitError](p.Wait())
	if !ok || exit.ExitCode() != 3 {
		t.Errorf("ended with %v", p.err)
	}
	if got, want := p.Output(), dir+"\nweft\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	f := &fakeTB{}
	if f.run(func() { Start(f, "", nil, "/nonexistent/program") }) {
		t.Error("starting what does not exist went well")
	}
}

func TestCleanupShowsOutputOfFailedTests(t *testing.T) {
	p := Child(t, "echo", "seen")
	p.Expect("arguments:")
	f := &fakeTB{failed: true}
	p.t = f
	p.end()
	if !strings.Contains(f.log.String(), "arguments: seen") {
		t.Errorf("log %q", f.log.String())
	}
}

func TestLineWriter(t *testing.T) {
	const text = "a\nbc\n\nlast"
	want := []line{{"a", true}, {"bc", true}, {"", true}, {"last", true}}
	for size := 1; size <= len(text); size++ {
		to := transcript{news: make(chan struct{})}
		w := lineWriter{to: &to, isErr: true}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if m, err := w.Write([]byte(rest[:n])); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		w.flush()
		if fmt.Sprint(to.lines) != fmt.Sprint(want) {
			t.Errorf("written in pieces of %d: %v, want %v", size, to.lines, want)
		}
	}
}
