package examples_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// The simulation is looked at, and learned from, by programs of their own.
func TestTogether(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", "./simulate", "./look", "./train")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const steps = 6
	for reader, line := range map[string]string{
		"look":  "step 5: min 0, mean 0.02454, max 0.4704 (native)",
		"train": " u + 0.25 D (native)",
	} {
		t.Run(reader, func(t *testing.T) {
			dir := t.TempDir()
			sim := testutil.Start(t, dir, nil, filepath.Join(bin, "simulate"), "-stream", "pond", "-size", "64", "-steps", fmt.Sprint(steps))
			read := testutil.Start(t, dir, nil, filepath.Join(bin, reader), "pond", "u")
			for _, p := range []*testutil.Process{read, sim} {
				if err := p.Wait(); err != nil {
					t.Error(err)
				}
			}
			if got := sim.Stdout(); got != "step 0: readers: native\n" {
				t.Errorf("simulate: %q", got)
			}
			if got := read.Stdout(); !strings.HasSuffix(got, line+"\n") || !strings.HasPrefix(got, "step ") {
				t.Errorf("%s: %q", reader, got)
			}
		})
	}
}
