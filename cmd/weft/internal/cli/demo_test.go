package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// demoEnv runs the demo with some program in place of its processes.
func demoEnv(t *testing.T, path string) (env Env, out, errs *bytes.Buffer) {
	t.Helper()
	out, errs = new(bytes.Buffer), new(bytes.Buffer)
	t.Setenv("TMPDIR", t.TempDir())
	return Env{Stdout: out, Stderr: errs, Self: [2]string{path, filepath.Base(path)}}, out, errs
}

func mustBeEmpty(t *testing.T) {
	t.Helper()
	list, err := os.ReadDir(os.TempDir())
	if err != nil || len(list) != 0 {
		t.Errorf("left behind: %v %v", list, err)
	}
}

// A process of the demo that dies ends the demo, and nothing stays.
func TestDemoChildDies(t *testing.T) {
	for _, path := range []string{"/bin/false", "/bin/true", "/nothere"} {
		env, _, errs := demoEnv(t, path)
		if code := Run(t.Context(), env, []string{"demo"}); code != exitFailed {
			t.Errorf("%s: exit code %d, stderr %q", path, code, errs)
		}
		mustBeEmpty(t)
	}
}

// Processes that talk nonsense for ever are stopped.
func TestDemoChildTalksNonsense(t *testing.T) {
	script := filepath.Join(t.TempDir(), "child")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n[ $1 = demo-writer ] && exec cat\nwhile echo nonsense; do :; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env, _, errs := demoEnv(t, script)
	begin := time.Now()
	if code := Run(t.Context(), env, []string{"demo"}); code != exitFailed || !strings.Contains(errs.String(), "report of the reading process") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
	if took := time.Since(begin); took > 2*childGrace {
		t.Errorf("took %v", took)
	}
	mustBeEmpty(t)
}

// The output fails: the disk is full, or the reader of a pipe has left. The demo
// ends, tells by its exit code, and leaves nothing.
func TestDemoOutputFails(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	full := openFull(t)
	r, broken, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	r.Close()
	for _, c := range []struct {
		out  *os.File
		code int
		text string
	}{
		{full, exitFailed, "no space left"},
		{broken, exitPipe, ""},
	} {
		env, _, errs := demoEnv(t, self)
		env.Stdout, env.Self[1] = c.out, "weft" // see TestMain
		code := Run(t.Context(), env, []string{"demo", "--steps", "3", "--size", "16", "--interval", "1ms"})
		if code != c.code || !strings.Contains(errs.String(), c.text) || c.text == "" && errs.Len() > 0 {
			t.Errorf("exit code %d, want %d; stderr %q, want %q", code, c.code, errs, c.text)
		}
		mustBeEmpty(t)
	}
}

func TestDemoCancelled(t *testing.T) {
	script := filepath.Join(t.TempDir(), "child")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec cat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env, _, errs := demoEnv(t, script)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errInterrupted) })
	if code := Run(ctx, env, []string{"demo"}); code != exitFailed || errs.String() != "weft: interrupted\n" {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
	mustBeEmpty(t)
}
