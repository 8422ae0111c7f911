package sys

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// lendAll writes b with a Lender, waiting for room.
func lendAll(t *testing.T, l *Lender, raw syscall.RawConn, b []byte) (n int, err error) {
	t.Helper()
	if rawErr := raw.Write(func(fd uintptr) bool {
		m, again, writeErr := l.WriteNow(fd, b[n:])
		n, err = n+m, writeErr
		return !again
	}); rawErr != nil {
		t.Fatal(rawErr)
	}
	return n, err
}

func newLender(t *testing.T) *Lender {
	t.Helper()
	l, err := NewLender()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// TestLender writes pieces of all sizes and alignments, to a peer that is slow to
// read.
func TestLender(t *testing.T) {
	raw, far := connected(t)
	l := newLender(t)
	mem := make([]byte, 5<<20)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(mem)
	pieces := [][]byte{mem, mem[1:], mem[:0], mem[4095:4097], mem[12345:2345678], mem[:lentAtOnce], mem[:lentAtOnce+1]}
	var all sync.WaitGroup
	all.Go(func() {
		for _, p := range pieces {
			if n, err := lendAll(t, l, raw, p); n != len(p) || err != nil {
				t.Errorf("%d of %d bytes, %v", n, len(p), err)
			}
		}
	})
	defer all.Wait()
	for i, p := range pieces {
		got := make([]byte, len(p))
		if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, p) {
			t.Errorf("piece %d: not what was written, %v", i, err)
		}
	}
}

// TestNewPagesKeepWhatIsLent gives memory new pages while the kernel has it for a peer
// that reads later.
func TestNewPagesKeepWhatIsLent(t *testing.T) {
	raw, far := connected(t)
	mem := make([]byte, 4<<20)
	for i := range mem {
		mem[i] = byte(i ^ i>>8)
	}
	want := bytes.Clone(mem)
	lent := 0
	if err := raw.Write(func(fd uintptr) bool {
		n, _, err := newLender(t).WriteNow(fd, mem)
		if lent = n; err != nil {
			t.Error(err)
		}
		return true
	}); err != nil || lent == 0 {
		t.Fatal(lent, err)
	}
	if err := NewPages(mem); err != nil {
		t.Fatal(err)
	}
	if i := bytes.IndexFunc(mem, func(r rune) bool { return r != 0 }); i >= 0 {
		t.Errorf("byte %d of new pages is %d", i, mem[i])
	}
	for i := range mem {
		mem[i] = 0xee // the next step
	}
	got := make([]byte, lent)
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, want[:lent]) {
		t.Errorf("the peer does not see what was lent, %v", err)
	}
}

// TestNewPagesLocked gives new pages to memory that is locked, which the kernel does not take lightly.
func TestNewPagesLocked(t *testing.T) {
	mem := make([]byte, 1<<20)
	if err := unix.Mlock(mem[:4*unix.Getpagesize()]); err != nil {
		t.Skipf("no right to lock 4 pages (RLIMIT_MEMLOCK): %v", err)
	}
	mem[0] = 1
	if err := NewPages(mem); err != nil || mem[0] != 0 {
		t.Errorf("%v; then %d", err, mem[0])
	}
	_ = unix.Munlock(mem)
}

func TestNewPagesRefuse(t *testing.T) {
	mem := make([]byte, 1<<20)
	if NewPages(mem[1:]) == nil || NewPages(mem[:unix.Getpagesize()+1]) == nil {
		t.Error("parts of pages given new ones")
	}
	if err := NewPages(nil); err != nil {
		t.Error(err)
	}
}

// TestLenderErrors lends to a peer that is gone, and with a closed pipe: where the
// written part ends is known all the same.
func TestLenderErrors(t *testing.T) {
	raw, far := connected(t)
	l := newLender(t)
	mem := make([]byte, 1<<20)
	_ = far.(*net.TCPConn).SetLinger(0)
	_ = far.Close()
	var err error
	for err == nil {
		_, err = lendAll(t, l, raw, mem)
	}
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	broken := &Lender{in: -1, out: -1}
	if n, err := lendAll(t, broken, raw, mem); n != 0 || !errors.Is(err, syscall.EBADF) {
		t.Errorf("%d bytes through no pipe, %v", n, err)
	}
}
