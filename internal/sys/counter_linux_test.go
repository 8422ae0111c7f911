package sys

import (
	"errors"
	"os"
	"testing"
	"time"
)

// A counter sums up what is added, wakes who waits, and is unknown to the netpoller.
func TestCounter(t *testing.T) {
	nothingOpen(t)
	f, err := NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetDeadline(time.Time{}); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("it does not block: %v", err)
	}
	fd := int(f.Fd())
	for _, n := range []uint64{3, 1 << 40} {
		if err := Counter(fd).Add(n); err != nil {
			t.Error(err)
		}
	}
	if n, err := Counter(fd).Wait(); n != 3+1<<40 || err != nil {
		t.Error(n, err)
	}
	woken := make(chan uint64)
	go func() {
		n, _ := Counter(fd).Wait()
		woken <- n
	}()
	if err := Counter(fd).Add(7); err != nil {
		t.Error(err)
	}
	if n := <-woken; n != 7 {
		t.Error(n)
	}
	if Counter(-1).Add(1) == nil {
		t.Error("added to nothing")
	}
	if _, err := Counter(-1).Wait(); err == nil {
		t.Error("waited for nothing")
	}
}
