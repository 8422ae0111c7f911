package testutil

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestRequire(t *testing.T) {
	missing := Capability{Name: "wings", Probe: func() error { return errors.New("none grew") }}
	fixed := missing
	fixed.Fixed = true
	for _, c := range []struct {
		name     string
		required string
		cap      Capability
		skipped  bool
		failed   bool
	}{
		{"there", "1", Program("sh"), false, false},
		{"missing", "", missing, true, false},
		{"missing where peers are required", "1", missing, false, true},
		{"fixed, missing where peers are required", "1", fixed, true, false},
		{"program", "", Program("no-such-program-anywhere"), true, false},
		{"CPUs", "1", CPUs(math.MaxInt), true, false},
		{"CPU", "1", CPUs(1), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(peersEnv, c.required)
			f := &fakeTB{}
			ended := f.run(func() { Require(f, Program("sh"), c.cap) })
			if f.skipped != c.skipped || f.failed != c.failed || ended == (c.skipped || c.failed) {
				t.Errorf("skipped %v, failed %v, ended %v; log %q", f.skipped, f.failed, ended, f.log.String())
			}
			if !ended && !strings.Contains(f.log.String(), c.cap.Name) {
				t.Errorf("%q does not name what is missing", f.log.String())
			}
		})
	}
}

func TestRand(t *testing.T) {
	f := &fakeTB{}
	a := Rand(f).Uint64()
	if !strings.Contains(f.log.String(), "-seed=") {
		t.Errorf("the seed is not told: %q", f.log.String())
	}
	*seedFlag = 42
	defer func() { *seedFlag = 0 }()
	b, c := Rand(t).Uint64(), Rand(t).Uint64()
	if b != c || a == b {
		t.Errorf("one seed, numbers %d and %d; another %d", b, c, a)
	}
}
