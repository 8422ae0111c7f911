//go:build race

package testutil

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// raceMarkerEnv names a file that TestRaceDetectorIsOn writes. This file is built only with -race,
// so a script that finds the marker after a run knows that the flag was really on.
const raceMarkerEnv = "WEFT_RACE_MARKER"

// The proof that -race was on: a child with a true race in it must die by the detector.
func TestRaceDetectorIsOn(t *testing.T) {
	p := Child(t, "race")
	exit, ok := errors.AsType[*exec.ExitError](p.Wait())
	if !ok || exit.ExitCode() != 66 || !strings.Contains(p.Stderr(), "DATA RACE") {
		t.Fatalf("a race went unseen: %v", p.err)
	}
	t.Log("race detector: on")
	if path := os.Getenv(raceMarkerEnv); path != "" {
		if err := os.WriteFile(path, []byte("race detector: on\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
