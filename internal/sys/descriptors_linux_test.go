package sys

import (
	"os"
	"syscall"
	"testing"
)

// What is open does not count, nor what is beyond the limit.
func TestFreeDescriptors(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	const room = 50
	last := uint64(held.Fd())
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: last + 1 + room, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	const many = 1 << 20
	all, err := FreeDescriptors(many)
	if err != nil || all > int(last)+room {
		t.Errorf("%d free below %d: %v", all, last+1+room, err)
	}
	more, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if n, err := FreeDescriptors(many); err != nil || n != all-1 {
		t.Errorf("%d free, one more is open, now %d: %v", all, n, err)
	}
	if n, err := FreeDescriptors(2); err != nil || n != 2 {
		t.Errorf("of 2: %d, %v", n, err)
	}
}
