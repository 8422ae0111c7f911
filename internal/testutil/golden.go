package testutil

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the tests got")

// Golden compares got with testdata/name and fails the test with the difference. With -update it
// writes the file instead. A golden file is read by people: review its change as code.
func Golden(t testing.TB, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		if err := writeGolden(path, got); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update to make it)", err)
	}
	if d := difference(want, got); d != "" {
		t.Errorf("%s differs (run with -update if the change is wanted):\n%s", path, d)
	}
}

func writeGolden(path string, got []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, got, 0o644)
}

// difference describes how got differs from want, or returns "". Text is compared by lines, other
// data by the place of the first byte that differs.
func difference(want, got []byte) string {
	if bytes.Equal(want, got) {
		return ""
	}
	if utf8.Valid(want) && utf8.Valid(got) && !bytes.ContainsRune(want, 0) && !bytes.ContainsRune(got, 0) {
		return cmp.Diff(lines(want), lines(got))
	}
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	return fmt.Sprintf("first difference at byte %d (0x%x) of %d wanted and %d gotten\n- % x\n+ % x",
		at, at, len(want), len(got), around(want, at), around(got, at))
}

func lines(b []byte) []string {
	var out []string
	for l := range bytes.Lines(b) {
		out = append(out, string(l))
	}
	return out
}

// around returns up to 16 bytes from at.
func around(b []byte, at int) []byte { return b[min(at, len(b)):min(at+16, len(b))] }
