package main

import (
	"regexp"
	"testing"
)

func TestSizeString(t *testing.T) {
	for n, want := range map[int]string{0: "0 B", 8: "8 B", 1000: "1000 B", 1024: "1 KiB", 1536: "1536 B", 8 << 20: "8 MiB", 64 << 20: "64 MiB", 1 << 30: "1 GiB", 1 << 40: "1024 GiB"} {
		if got := sizeString(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// The acceptance asks for these: 8 MiB and 8 B, all four paths, in one run.
func TestPlan(t *testing.T) {
	all := plan(regexp.MustCompile(""), true)
	if len(all) != len(rows)*len(paths) {
		t.Errorf("%d jobs", len(all))
	}
	for _, want := range []string{
		"8 MiB, queue 1, put, get, Weft → Weft", "8 MiB, queue 1, put, get, Weft → ADIOS2",
		"8 MiB, queue 1, put, get, ADIOS2 → Weft", "8 MiB, queue 1, put, get, ADIOS2 → ADIOS2",
		"8 B, queue 1, put, get, Weft → Weft", "8 B, queue 4, put, get, ADIOS2 → ADIOS2",
	} {
		if n := len(plan(regexp.MustCompile("^"+want+"$"), true)); n != 1 {
			t.Errorf("%s: %d jobs", want, n)
		}
	}
	for _, j := range plan(regexp.MustCompile(""), false) {
		if j.path != (path{weft, weft}) {
			t.Errorf("without peers: %v", j)
		}
	}
	if n := len(plan(regexp.MustCompile("ADIOS2"), false)); n != 0 {
		t.Errorf("%d jobs without peers", n)
	}
}
