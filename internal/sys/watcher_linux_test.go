//go:build amd64 || arm64

package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The thread of a Userfault is shown messages that no kernel has sent, by a pipe in place of the userfaultfd: also those that this kernel, or
// an emulator, does not send.

// uffdMessage is struct uffd_msg: event u8 | nothing u56 | three words of 64 bits.
func uffdMessage(event byte, words ...uint64) []byte {
	b := make([]byte, 32)
	b[0] = event
	for i, w := range words {
		binary.NativeEndian.PutUint64(b[8+8*i:], w)
	}
	return b
}

const someSlots = 4

// told is a thread that reads a pipe.
type told struct {
	t     *testing.T
	u     *Userfault
	by    *FD // the end that is written
	words EventWords
}

func newTold(t *testing.T) *told {
	t.Helper()
	nothingOpen(t)
	wake, err := NewEventfd(Features{})
	if err != nil {
		t.Fatal(err)
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	w := EventWords{Begun: new(uint64), Done: new(uint64), Slots: make([]uint64, 2*someSlots), Wake: wake}
	r := &told{t, &Userfault{fd: NewFD(p[0], "pipe"), control: new(userfaultControl), words: w}, NewFD(p[1], "pipe"), w}
	if err := r.u.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.u.Close(), r.by.Close(), wake.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// tell writes a message and waits until the thread has rung.
func (r *told) tell(message []byte) {
	r.t.Helper()
	if _, err := unix.Write(r.by.Int(), message); err != nil {
		r.t.Fatal(err)
	}
	wait := []unix.PollFd{{Fd: int32(r.words.Wake.Int()), Events: unix.POLLIN}}
	if _, err := retry(func() (int, error) { return unix.Poll(wait, -1) }); err != nil {
		r.t.Fatal(err)
	}
	if rung, err := r.words.Wake.Drain(); !rung || err != nil {
		r.t.Fatal(rung, err)
	}
}

// ended waits for the end of the thread, and says why it has ended.
func (r *told) ended() error {
	for r.u.Err() == nil {
		runtime.Gosched()
	}
	return r.u.Err()
}

// gone waits until the thread has done its last deed.
func (r *told) gone() {
	for atomic.LoadUint32(&r.u.control.thread) != 0 {
		runtime.Gosched()
	}
}

func TestWatcherReads(t *testing.T) {
	r := newTold(t)
	for i, c := range []struct {
		what    string
		message []byte
		addr, n uint64
	}{
		{what: "remap", message: uffdMessage(0x14, 0x7f00_0000_1000, 0x7fff_ffff_f000, 0x3000), addr: 0x7f00_0000_1000, n: 0x3000},
		{what: "remove", message: uffdMessage(0x15, 0x7f00_0000_2000, 0x7f00_0000_7000, 77), addr: 0x7f00_0000_2000, n: 0x5000},
		{what: "unmap", message: uffdMessage(0x16, 1<<40, 1<<41, 77), addr: 1 << 40, n: 1 << 40},
		{what: "a fault: everything", message: uffdMessage(0x12, 1, 0x1000), n: ^uint64(0)},
		{what: "a fork: everything, in the first slot again", message: uffdMessage(0x13, 3), n: ^uint64(0)},
		{what: "an event of another kernel: everything", message: uffdMessage(0xff, 1, 2, 3), n: ^uint64(0)},
		{what: "unmap, after those", message: uffdMessage(0x16, 0x1000, 0x2000), addr: 0x1000, n: 0x1000},
	} {
		r.tell(c.message)
		if begun, done := *r.words.Begun, *r.words.Done; begun != uint64(i+1) || done != begun {
			t.Errorf("%s: %d begun, %d done", c.what, begun, done)
		}
		if slot := r.words.Slots[2*(i%someSlots):]; slot[0] != c.addr || slot[1] != c.n {
			t.Errorf("%s: told of %#x, %#x; not of %#x, %#x", c.what, slot[0], slot[1], c.addr, c.n)
		}
	}
	if err := r.u.Err(); err != nil {
		t.Error(err)
	}
}

// TestWatcherEnds has the thread end: then nobody is alive, as many are done as were begun, and the descriptor it read is closed.
func TestWatcherEnds(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(*told) error
		want syscall.Errno
	}{
		"told to": {func(r *told) error { return r.u.End() }, 0},
		"a short message": {func(r *told) error {
			_, err := unix.Write(r.by.Int(), make([]byte, 16))
			return err
		}, unix.EIO},
		"nobody writes": {func(r *told) error { return r.by.Close() }, unix.EIO},
	} {
		t.Run(what, func(t *testing.T) {
			r := newTold(t)
			if err := c.end(r); err != nil {
				t.Fatal(err)
			}
			if err := r.ended(); !errors.Is(err, c.want) {
				t.Errorf("%v, not %v", err, c.want)
			}
			if *r.words.Begun != *r.words.Done {
				t.Errorf("%d begun, %d done", *r.words.Begun, *r.words.Done)
			}
			r.gone()
			is, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", r.u.fd.Int()))
			if err != nil || !strings.Contains(is, "eventfd") {
				t.Errorf("the descriptor is %s, %v", is, err)
			}
			if flags, err := unix.FcntlInt(uintptr(r.u.fd.Int()), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("it stays open on exec: %#x, %v", flags, err)
			}
		})
	}
}

// unblocked are signals that nobody can block, and those that an emulator (qemu) keeps for itself.
const unblocked = 1<<(unix.SIGKILL-1) | 1<<(unix.SIGSTOP-1) | 1<<(unix.SIGSEGV-1) | 1<<(unix.SIGBUS-1) | 1<<(32-1) | 1<<(33-1)

// TestWatcherSignals: the thread takes no signal, and who starts it takes those that he took before.
func TestWatcherSignals(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	masks := func(thread int) (blocked, name string) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", thread))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			switch {
			case len(f) < 2:
			case f[0] == "SigBlk:":
				blocked = f[1]
			case f[0] == "Name:":
				name = f[1]
			}
		}
		return blocked, name
	}
	before, _ := masks(unix.Gettid())
	r := newTold(t)
	r.tell(uffdMessage(0x16, 0, 0x1000)) // it has named itself before it reads
	after, _ := masks(unix.Gettid())
	if before != after {
		t.Errorf("signals %s were blocked, and are %s", before, after)
	}
	blocked, name := masks(int(r.u.control.thread))
	if is, err := strconv.ParseUint(blocked, 16, 64); err != nil || is|unblocked != ^uint64(0) || name != "weft-uffd" {
		t.Errorf("the thread %q blocks %s, %v", name, blocked, err)
	}
}
