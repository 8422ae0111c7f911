package sys

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestLockedMemory(t *testing.T) {
	name := filepath.Join(t.TempDir(), "status")
	for text, want := range map[string]uint64{
		"Name:\tx\nVmLck:\t       8 kB\nVmPin:\t      20 kB\nVmHWM:\t 100 kB\n": 28 << 10,
		"Name:\tx\n": 0,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := lockedMemory(name); n != want || err != nil {
			t.Errorf("%q: %d bytes, %v", text, n, err)
		}
	}
	if err := os.WriteFile(name, []byte("VmLck:\tmuch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lockedMemory(name); err == nil {
		t.Error("much is a number")
	}
	if _, err := lockedMemory(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there")
	}
}

// rlimitMemlock is RLIMIT_MEMLOCK, which package syscall does not name.
const rlimitMemlock = 8

func TestLockableMemory(t *testing.T) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(rlimitMemlock, &l); err != nil {
		t.Fatal(err)
	}
	n, err := LockableMemory()
	if err != nil {
		t.Fatal(err)
	}
	if n > l.Cur && !may(14) { // CAP_IPC_LOCK
		t.Errorf("%d bytes of a limit of %d", n, l.Cur)
	}
}
