package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What README says of a program outside of the clone is so: its commands are run, up to the start of the program.
func TestProgramOutside(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "A program of your own")
	_, rest, _ = strings.Cut(rest, "\n```\n")
	script, _, found := strings.Cut(rest, " && ./hello listen")
	if !found {
		t.Fatal("README has no such commands")
	}
	// The sums are at hand, so that none is asked for over the network.
	script = strings.Replace(script, "go mod tidy", "cp ../weft/go.sum . && go mod tidy", 1)
	dir := t.TempDir()
	if err := os.Symlink(root, filepath.Join(dir, "weft")); err != nil {
		t.Fatal(err)
	}
	sh := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	sh.Dir = dir
	sh.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "hello", "hello")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "usage: ") {
		t.Errorf("%q, %v", out, err)
	}
}
