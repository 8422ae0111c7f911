package sys

import (
	"os"
	"runtime/debug"
	"testing"
)

// faults reports whether reading the first byte of b is a fault.
func faults(b []byte) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	read = b[0]
	return false
}

var read byte

// TestTwin: a twin shows the same memory, and when it is taken away the memory itself stays.
func TestTwin(t *testing.T) {
	nothingOpen(t)
	page := os.Getpagesize()
	fd := memory(t, int64(4*page))
	b := mapped(t, fd, 4*page, true).Bytes()[page-3 : 3*page+5]
	for range 2 * len(taken.pieces) {
		twin, err := MapAgain(b)
		if err != nil {
			t.Fatal(err)
		}
		seen := twin.Bytes()
		b[0]++
		b[len(b)-1]++
		if len(seen) != len(b) || cap(seen) != len(b) || seen[0] != b[0] || seen[len(b)-1] != b[len(b)-1] {
			t.Fatalf("%d bytes, %d and %d, want %d, %d and %d", len(seen), seen[0], seen[len(seen)-1], len(b), b[0], b[len(b)-1])
		}
		twin.Fault()
		if !faults(seen) || faults(b) {
			t.Fatal("reading the twin is no fault afterwards, or reading the memory is one")
		}
	}
	if _, err := MapAgain(make([]byte, 4*page)); err == nil {
		t.Error("memory of the heap was mapped again")
	}
}
