package bpfixture

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Each dataset has the three metadata files and an expected text, and both ways to get at the files agree.
func TestEveryDatasetIsWhole(t *testing.T) {
	if n := len(Names()); n != 31 {
		t.Fatalf("%d datasets, want 31", n)
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			mem, dir := Files(t, name), Extract(t, name)
			for _, f := range []string{"md.idx", "md.0", "mmd.0"} {
				if len(mem[f]) == 0 {
					t.Errorf("%s is missing or empty", f)
				}
			}
			for f, body := range mem {
				disk, err := os.ReadFile(filepath.Join(dir, f))
				if err != nil || !bytes.Equal(disk, body) {
					t.Errorf("%s: on disk %d bytes (%v), in memory %d", f, len(disk), err, len(body))
				}
			}
			if Expected(t, name) == "" {
				t.Error("no expected text")
			}
		})
	}
}

func TestNamesAreSortedAndWithoutBlobs(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || slices.Contains(names, blocksName) {
		t.Errorf("names = %q", names)
	}
}

func TestBlocks(t *testing.T) {
	dir := Blocks(t)
	for _, sub := range []string{"main-sst-blocks", "main-sst-blocks-onetime"} {
		for _, f := range []string{"md.0.0", "md.2.1", "attr.1.0", "data.2.1", "mmd.0", "mmd.1"} {
			if _, err := os.Stat(filepath.Join(dir, sub, f)); err != nil {
				t.Error(err)
			}
		}
	}
	if BlocksDecoded(t) == "" {
		t.Error("no decoded text")
	}
}
