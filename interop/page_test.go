package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// usesHeader compiles a source that includes memmon's header.
func usesHeader(t *testing.T, source, name string, args ...string) string {
	t.Helper()
	memmon, err := filepath.Abs("../memmon")
	if err != nil {
		t.Fatal(err)
	}
	return compileC(t, t.TempDir(), source, name, append([]string{"-D_GNU_SOURCE", "-I", memmon}, args...)...)
}

// runsWell runs a program that says by its exit code what was wrong.
func runsWell(t *testing.T, program string) {
	t.Helper()
	if said, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestOnePageOfEvents has a second library come while it cannot be told whether the page of the first one is there: it has to fail, since
// nobody would read what it posts to a page of its own.
func TestOnePageOfEvents(t *testing.T) { runsWell(t, usesHeader(t, "second.c", "second")) }

// TestPageOfAllFiles has one file of a library open the page, and another one post.
func TestPageOfAllFiles(t *testing.T) {
	post := usesHeader(t, "post.c", "post.o", "-c")
	runsWell(t, usesHeader(t, "files.c", "files", "-x", "none", post))
}

// TestPageOfHint has the kernel take the address for a hint, as those before 4.17 do.
func TestPageOfHint(t *testing.T) { runsWell(t, usesHeader(t, "hint.c", "hint")) }

// TestPageTooLarge has a limit of the size of files (ulimit -f), beyond which a signal ends the process.
func TestPageTooLarge(t *testing.T) { runsWell(t, usesHeader(t, "limited.c", "limited")) }

// TestPageWakesNoOther has somebody else get the number of the descriptor that wakes Weft.
func TestPageWakesNoOther(t *testing.T) { runsWell(t, usesHeader(t, "reused.c", "reused")) }
