package sys

import (
	"errors"
	"syscall"
	"testing"
)

// Calls fail by their number, each kind by itself, for all that share the failures.
func TestFailures(t *testing.T) {
	for list, want := range map[string]string{
		"":                  "......",
		"memfd":             "xxxxxx",
		"memfd@1":           "x.....",
		"memfd@3":           "..x...",
		"memfd@2-4":         ".xxx..",
		" memfd@5- ":        "....xx",
		"process_vm@2":      "......",
		"fallocate,memfd@2": ".x....",
	} {
		f, err := ParseFailures(list)
		if err != nil {
			t.Fatal(err)
		}
		s, other := Features{}.Failing(f), Features{}.Without(PopulatePages).Failing(f)
		got := ""
		for i := range 6 {
			which := s
			if i%2 == 1 {
				which = other
			}
			switch err := which.Injected(CallMemfd); {
			case err == nil:
				got += "."
			case errors.Is(err, syscall.EMFILE):
				got += "x"
			default:
				t.Error(err)
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", list, got, want)
		}
	}
	if err := (Features{}).Injected(CallMemfd); err != nil {
		t.Error(err)
	}
	for _, list := range []string{"memf", "memfd@", "memfd@0", "memfd@x", "memfd@3-2", "memfd@3-x", "memfd,", "@3", "memfd@-3"} {
		if f, err := ParseFailures(list); err == nil {
			t.Errorf("%q: %+v", list, f)
		}
	}
}

// What is asked for a call that fails says so, and leaves nothing behind.
func TestFailuresReachTheCalls(t *testing.T) {
	f, err := ParseFailures("memfd@1,fallocate@1,process_vm@1-2")
	if err != nil {
		t.Fatal(err)
	}
	s := Features{}.Failing(f)
	if _, err := Memfd(MemfdConfig{Name: "x", Size: 4096, Features: s}); !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
	b := make([]byte, 8192)
	if err := Populate(b, true, s); !errors.Is(err, syscall.ENOMEM) {
		t.Error(err)
	}
	if _, err := ReadProcess(1, 0, b, s); !errors.Is(err, syscall.EPERM) {
		t.Error(err)
	}
	if err := ReadGuarded(1, 0, b, Guard{}, s); !errors.Is(err, syscall.EPERM) {
		t.Error(err)
	}
	fd, err := Memfd(MemfdConfig{Name: "x", Size: 4096, Features: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := fd.Close(); err != nil {
		t.Error(err)
	}
}
