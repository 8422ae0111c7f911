package sys

import (
	"errors"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestReadGuarded reads from a process that has the mark: bytes of any number, the mark with them or alone.
func TestReadGuarded(t *testing.T) {
	testutil.Require(t, has(CrossMemory))
	const size, markAt = 3*crossChunk + 8192, 3*crossChunk + 100
	marks := []int{0, crossChunk - 1, crossChunk, size - 1}
	var g Guard
	for i := range g.Mark {
		marks = append(marks, markAt+i)
		g.Mark[i] = byte((markAt+i)*7 + 1)
	}
	child, at := memoryChild(t, size, marks...)
	g.At = at + markAt
	read := func(from uint64, b []byte) error { return ReadGuarded(child.Pid(), from, b, g, Features{}) }
	for _, n := range []int{0, 1, 5000, crossChunk, crossChunk + 1, size} {
		buf := make([]byte, n)
		if err := read(at, buf); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		for _, m := range marks {
			if m < n && buf[m] != byte(m*7+1) {
				t.Errorf("%d bytes: byte %d is %d", n, m, buf[m])
			}
		}
	}
	buf := make([]byte, 100)
	if err := read(16, buf); !errors.Is(err, syscall.EFAULT) {
		t.Errorf("no memory: %v", err)
	}
	// Half is there: the kernel copies that, and says so.
	if err := read(at+size-4096, make([]byte, 1<<20)); !errors.Is(err, syscall.EFAULT) {
		t.Errorf("half of the memory: %v", err)
	}
	g.Mark[15]++
	for _, n := range []int{0, 100, crossChunk + 1} {
		if err := read(at, make([]byte, n)); !errors.Is(err, ErrOtherProcess) {
			t.Errorf("another mark, %d bytes: %v", n, err)
		}
	}
	g.At = 16
	for _, n := range []int{0, 100} {
		if err := read(at, buf[:n]); !errors.Is(err, syscall.EFAULT) {
			t.Errorf("no mark, %d bytes: %v", n, err)
		}
	}
	if err := ReadGuarded(child.Pid(), at, buf, g, Features{}.Without(CrossMemory)); !errors.Is(err, ErrNotSupported) {
		t.Error(err)
	}
	child.Kill()
	<-child.Done()
	if err := read(at, buf); !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}
