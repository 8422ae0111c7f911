package testutil

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// Capability is something a test needs from the host. Probe returns why the host has it not, or
// nil; it is called at each Require, so a costly one should remember its answer.
type Capability struct {
	Name  string
	Probe func() error

	// Fixed is set for what the machine itself gives or not (its kernel, its number of CPUs), so
	// that no script could install it. Its lack stays a skip where peers are required.
	Fixed bool
}

// peersEnv, set to 1, says that the host was prepared for all tests (.ci/run does): what is missing
// then is a failure, so that a skip cannot hide one.
const peersEnv = "WEFT_REQUIRE_PEERS"

// Require skips the test, saying what is missing and why, if the host lacks one of the
// capabilities. With WEFT_REQUIRE_PEERS=1 it fails the test instead, unless the capability is
// Fixed.
func Require(t testing.TB, caps ...Capability) {
	t.Helper()
	for _, c := range caps {
		err := c.Probe()
		if err == nil {
			continue
		}
		if PeersRequired() && !c.Fixed {
			t.Fatalf("this host lacks %s, and %s=1 forbids to skip: %v", c.Name, peersEnv, err)
		}
		t.Skipf("skipped: this host lacks %s: %v", c.Name, err)
	}
}

// PeersRequired reports whether missing peers are failures in this run.
func PeersRequired() bool { return os.Getenv(peersEnv) == "1" }

// Superuser is the right to chroot and to mount.
func Superuser() Capability {
	return Capability{Name: "superuser", Probe: func() error {
		if uid := os.Geteuid(); uid != 0 {
			return fmt.Errorf("the effective user is %d, not 0", uid)
		}
		return nil
	}}
}

// Program is a command that must be found on PATH.
func Program(name string) Capability {
	return Capability{Name: "the program " + name, Probe: func() error {
		_, err := exec.LookPath(name)
		return err
	}}
}

// CPUs is a number of processors that may run this process at a time.
func CPUs(n int) Capability {
	return Capability{Name: fmt.Sprintf("%d CPUs", n), Fixed: true, Probe: func() error {
		if have := runtime.NumCPU(); have < n {
			return fmt.Errorf("it has %d", have)
		}
		return nil
	}}
}
