package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// PeerRoot is a Debian root with the real ADIOS2 in it; interop/README.md says what is inside.
type PeerRoot struct {
	script string
	suite  string
	path   string
}

// Run says how a program is started in a [PeerRoot].
type Run struct {
	Dir   string   // folder to start in, as seen inside; "" means /
	Binds []string // folders shown inside, HOST or HOST:INSIDE; HOST alone keeps its path
	Env   []string // added to the environment of the test

	// Prefix is a command that runs what comes behind it, such as "ip netns exec NAME".
	Prefix []string
}

// Root returns the root of a suite ("trixie"), which it makes first if need be (a minute, and once
// for each machine). Where the host cannot have one the test is skipped, or fails where peers are
// required, as in [Require].
func Root(t testing.TB, suite string) *PeerRoot {
	t.Helper()
	Require(t, Superuser(), Program("unshare"), Program("chroot"))
	script := filepath.Join(ModuleRoot(t), "interop", "root.sh")
	path, err := makeRoot(script, suite)
	if err != nil {
		Require(t, Capability{Name: "a root of Debian " + suite, Probe: func() error { return err }})
	}
	return &PeerRoot{script: script, suite: suite, path: path}
}

// MovingRoot is Root for a suite that moves, such as sid: a root of it can fail to be made for
// reasons that are not ours. Then the test is skipped, loudly, also where peers are required.
func MovingRoot(t testing.TB, suite string) *PeerRoot {
	t.Helper()
	Require(t, Superuser(), Program("unshare"), Program("chroot"))
	script := filepath.Join(ModuleRoot(t), "interop", "root.sh")
	path, err := makeRoot(script, suite)
	if err != nil {
		t.Skipf("NOT TESTED: no root of Debian %s: %v", suite, err)
	}
	return &PeerRoot{script: script, suite: suite, path: path}
}

// roots remembers what root.sh said, so that one test process asks once for each suite.
var roots struct {
	sync.Mutex
	made map[string]madeRoot
}

type madeRoot struct {
	path string
	err  error
}

func makeRoot(script, suite string) (string, error) {
	roots.Lock()
	defer roots.Unlock()
	if m, ok := roots.made[suite]; ok {
		return m.path, m.err
	}
	cmd := exec.Command(script, "make", suite)
	if !PeersRequired() {
		// A test does not install packages on somebody's machine unless told to.
		cmd.Env = append(os.Environ(), "WEFT_ROOT_INSTALL=0")
	}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	m := madeRoot{path: strings.TrimSpace(string(out))}
	if err != nil {
		m.err = fmt.Errorf("%s make %s: %w\n%s", script, suite, err, tail(said.String(), 20))
	}
	if roots.made == nil {
		roots.made = make(map[string]madeRoot)
	}
	roots.made[suite] = m
	return m.path, m.err
}

// tail returns the last n lines of s.
func tail(s string, n int) string {
	l := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(l[max(0, len(l)-n):], "\n")
}

// Path returns where the root lies on the host.
func (r *PeerRoot) Path() string { return r.path }

// Start starts a program inside the root. The process it returns is the program itself: its pid,
// its signals, its output. It sees an empty /tmp and /dev/shm of its own, the host's network, and
// the folders of run.Binds.
func (r *PeerRoot) Start(t testing.TB, run Run, name string, args ...string) *Process {
	t.Helper()
	command := append(slices.Clone(run.Prefix), r.script)
	command = append(command, r.arguments(run, name, args)...)
	return Start(t, "", run.Env, command[0], command[1:]...)
}

func (r *PeerRoot) arguments(run Run, name string, args []string) []string {
	out := []string{"run", r.suite}
	for _, b := range run.Binds {
		out = append(out, "--bind", b)
	}
	if run.Dir != "" {
		out = append(out, "--chdir", run.Dir)
	}
	return append(append(out, "--", name), args...)
}

// ModuleRoot returns the folder of the module's go.mod.
func ModuleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := findUp(dir, "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// findUp returns the nearest folder, from dir upwards, that holds a file called name.
func findUp(dir, name string) (string, error) {
	for d := dir; ; d = filepath.Dir(d) {
		_, err := os.Stat(filepath.Join(d, name))
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no %s in %s or above", name, dir)
		}
	}
}
