package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestRootRuns(t *testing.T) {
	root := Root(t, "trixie")
	dir := t.TempDir()
	p := root.Start(t, Run{Dir: dir, Binds: []string{dir}, Env: []string{"WORD=weft"}}, "sh", "-c",
		`echo "$WORD" > said; pwd; . /etc/os-release; echo "$VERSION_CODENAME"; touch /usr/x 2>/dev/null || echo read-only; exit 4`)
	exit, ok := errors.AsType[*exec.ExitError](p.Wait())
	if !ok || exit.ExitCode() != 4 {
		t.Fatalf("ended with %v", p.err)
	}
	if got, want := p.Stdout(), dir+"\ntrixie\nread-only\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "said")); err != nil || string(b) != "weft\n" {
		t.Errorf("the bound folder has %q, %v", b, err)
	}
	if again := Root(t, "trixie"); again.Path() != root.Path() {
		t.Errorf("two paths: %s and %s", root.Path(), again.Path())
	}
}

func TestRootBindsElsewhere(t *testing.T) {
	dir := t.TempDir()
	p := Root(t, "trixie").Start(t, Run{Binds: []string{dir + ":/data/in"}}, "touch", "/data/in/here")
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "here")); err != nil {
		t.Error(err)
	}
}

// The pid that the test holds must be the peer's, and its death must take every mount along.
func TestRootKillHitsThePeer(t *testing.T) {
	p := Root(t, "trixie").Start(t, Run{}, "sh", "-c", "echo ready; exec sleep 600")
	p.Expect("ready")
	exe := func() string {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.Pid()))
		return strings.TrimSpace(string(comm))
	}
	if err := until(t.Context(), func() bool { return exe() == "sleep" }); err != nil {
		t.Fatalf("process %d is %q: %v", p.Pid(), exe(), err)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), "weft-root") {
		t.Error("the view is still mounted on the host")
	}
}

func TestRootHasThePeers(t *testing.T) {
	// One rank speaks: mpirun passes on pieces of lines as they come, those of two ranks mixed.
	const ranks = `from mpi4py import MPI
import adios2
comm = MPI.COMM_WORLD
n = comm.allreduce(1)
if comm.rank == 0: print(n, adios2.is_built_with_mpi)`
	p := Root(t, "trixie").Start(t, Run{}, "sh", "-c", `bpls.serial --version && mpirun -n 2 python3 -c "$1"`, "sh", ranks)
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Stdout(), "2.10.2\n2 True\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestRootArguments(t *testing.T) {
	r := &PeerRoot{suite: "s"}
	got := r.arguments(Run{Dir: "/d", Binds: []string{"/a", "/b:/c"}}, "cmd", []string{"--x", "y"})
	want := []string{"run", "s", "--bind", "/a", "--bind", "/b:/c", "--chdir", "/d", "--", "cmd", "--x", "y"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMakeRootSaysWhyNot(t *testing.T) {
	script := filepath.Join(t.TempDir(), "root.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no mirror today >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time from memory
		_, err := makeRoot(script, "no such suite")
		if err == nil || !strings.Contains(err.Error(), "no mirror today") {
			t.Errorf("got %v", err)
		}
		os.Remove(script)
	}
}

func TestFindUp(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "marker-of-this-test"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := findUp(deep, "marker-of-this-test"); err != nil || got != dir {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := findUp(deep, "no-such-file-anywhere"); err == nil {
		t.Error("found what is not there")
	}
	if _, err := os.Stat(filepath.Join(ModuleRoot(t), "interop", "root.sh")); err != nil {
		t.Error(err)
	}
}

func TestTail(t *testing.T) {
	if got := tail("a\nb\nc\n", 2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
	if got := tail("a\n", 5); got != "a" {
		t.Errorf("got %q", got)
	}
}
