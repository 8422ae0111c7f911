package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOnePageOfEvents has a second library come while it cannot be told whether the page of the first one is there: it has to fail, since
// nobody would read what it posts to a page of its own.
func TestOnePageOfEvents(t *testing.T) {
	memmon, err := filepath.Abs("../memmon")
	if err != nil {
		t.Fatal(err)
	}
	program := compileC(t, t.TempDir(), "second.c", "second", "-D_GNU_SOURCE", "-I", memmon)
	if said, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
