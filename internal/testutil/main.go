package testutil

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Role is what a child process does: the test binary, started again by [Child], runs it instead of
// the tests. Run gets the arguments that Child was given; its error goes to stderr and makes the
// exit status 1.
type Role struct {
	Name string
	Run  func(args []string) error
}

// settle bounds how long Main waits for things to go that are already on their way out: a
// descriptor that a joined goroutine closes last, a killed process that the kernel tears down.
const settle = 2 * time.Second

// Main is the body of a TestMain. It runs the tests and then fails the run if anything is left:
// goroutines, open descriptors, shared mappings, processes. In a child process it runs the role.
// It does not return.
//
//	func TestMain(m *testing.M) { testutil.Main(m, testutil.Role{Name: "peer", Run: peer}) }
//
// When the run itself has failed, what it left is not looked for: a test that stopped in the
// middle leaves things, and they would only hide its message. Fuzzing runs are not checked either,
// since the fuzzing engine keeps workers and mapped files of its own.
func Main(m *testing.M, roles ...Role) {
	if name := os.Getenv(roleEnv); name != "" {
		os.Exit(runRole(name, roles))
	}
	os.Exit(checkedRun(m.Run, settle))
}

// MainExplained is Main for a package whose handles know where they were made (internal/sys does,
// in builds with the tag invariants): if the run fails, it shows what open lists as still open.
func MainExplained(m *testing.M, open func() []string, roles ...Role) {
	if os.Getenv(roleEnv) != "" {
		Main(m, roles...)
	}
	code := checkedRun(m.Run, settle)
	if code != 0 {
		for _, what := range open() {
			fmt.Fprintln(os.Stderr, "testutil: still open:", what)
		}
	}
	os.Exit(code)
}

// checkedRun runs the tests by run and returns the exit status, with leaks counted as a failure.
func checkedRun(run func() int, settle time.Duration) int {
	if err := markDescendants(); err != nil {
		fmt.Fprintln(os.Stderr, "testutil:", err)
		return 1
	}
	before, err := takeSnapshot()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testutil:", err)
		return 1
	}
	code := run()
	if code != 0 || fuzzing() {
		return code
	}
	if err := leftBehind(before, settle); err != nil {
		fmt.Fprintln(os.Stderr, "testutil: the tests passed, but left something behind:")
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// leftBehind returns an error that lists all that has come since before and has not gone within
// settle.
func leftBehind(before snapshot, settle time.Duration) error {
	if err := goleak.Find(); err != nil {
		return fmt.Errorf("goroutines: %w", err)
	}
	deadline := time.Now().Add(settle)
	for pause := time.Millisecond; ; pause *= 2 {
		after, err := takeSnapshot()
		if err != nil {
			return err
		}
		err = after.since(before)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-time.After(pause) // nothing tells us of a descriptor that closes
	}
}

// fuzzing reports whether this process is a fuzzing run, coordinator or worker.
func fuzzing() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" && f.Value.String() != "false" {
			return true
		}
	}
	return false
}
