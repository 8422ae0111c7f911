package testutil

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// roleEnv tells a started test binary which role it plays.
const roleEnv = "WEFT_TEST_ROLE"

// Child starts this test binary again as a process that plays the role, which the package's
// TestMain has given to [Main]. The process is killed and waited for when the test ends.
func Child(t testing.TB, role string, args ...string) *Process {
	t.Helper()
	exe, env := RoleCommand(t, role)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), env)
	return start(t, role, cmd)
}

// RoleCommand returns the program and the setting of the environment that make a process play the
// role: for a [Start] by way of another program, "ip netns exec" say.
func RoleCommand(t testing.TB, role string) (program, env string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe, roleEnv + "=" + role
}

// Start starts a program; see [Child] for how it ends. env is added to the environment of the
// test; dir "" means the test's own folder.
func Start(t testing.TB, dir string, env []string, name string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	return start(t, name, cmd)
}

// runRole plays a role in a child process and returns its exit status.
func runRole(name string, roles []Role) int {
	for _, r := range roles {
		if r.Name != name {
			continue
		}
		// What this process starts is no test role, unless it says so again.
		os.Unsetenv(roleEnv)
		if err := r.Run(os.Args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "role %s: %v\n", name, err)
			return 1
		}
		return 0
	}
	fmt.Fprintf(os.Stderr, "testutil: this test binary has no role %q: give it to testutil.Main\n", name)
	return 2
}
