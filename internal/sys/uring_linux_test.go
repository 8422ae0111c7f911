package sys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"golang.org/x/sys/unix"
)

// lockable is the right to pin what the tests pin.
var lockable = testutil.Capability{Name: "2 MiB of memory that may be locked (RLIMIT_MEMLOCK)", Fixed: true, Probe: func() error {
	n, err := LockableMemory()
	if err == nil && n < 2<<20 {
		err = fmt.Errorf("it is %d bytes", n)
	}
	return err
}}

func newUring(t *testing.T, entries, buffers int) *Uring {
	t.Helper()
	testutil.Require(t, has(IOUring), lockable)
	nothingOpen(t)
	u, err := NewUring(entries, buffers, Features{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(u.Close(), u.Close()); err != nil {
			t.Error(err)
		}
	})
	return u
}

// do is one operation, to its end.
func (u *Uring) do(t *testing.T, op UringOp) (int, error) {
	t.Helper()
	op.User = 0xabcd_0123_4567_89ef
	if err := u.Submit(op); err != nil {
		t.Fatal(err)
	}
	first, err := u.Wait()
	for r := first; r.More && err == nil; {
		r, err = u.Wait()
	}
	if err != nil || first.User != op.User {
		t.Fatal(first, err)
	}
	return first.N, first.Err
}

// pipe is a pipe that blocks.
func pipe(t *testing.T) (r, w *FD) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r, w = NewFD(p[0], "pipe"), NewFD(p[1], "pipe")
	t.Cleanup(func() { CloseAll([]*FD{r, w}) })
	return r, w
}

func anonymous(t *testing.T, pages int) *Anonymous {
	t.Helper()
	m, err := MapAnonymous(pages * osPageSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestUringPins reads and writes through pages that are not at their address any more.
func TestUringPins(t *testing.T) {
	u := newUring(t, 4, 3)
	m := anonymous(t, 2)
	r, w := pipe(t)
	b := m.Bytes()
	copy(b[100:], "old")
	if err := u.SetBuffer(2, b); err != nil {
		t.Fatal(err)
	}
	if err := m.MapOver(); err != nil {
		t.Fatal(err)
	}
	copy(b[100:], "new")
	write := UringOp{Code: WriteFixed, FD: w.Int(), Buffer: 2, Addr: Address(b) + 100, Len: 3}
	got := make([]byte, 3)
	if n, err := u.do(t, write); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := unix.Read(r.Int(), got); err != nil || string(got) != "old" {
		t.Errorf("%q, %v: not what was pinned", got, err)
	}
	if _, err := unix.Write(w.Int(), []byte("came")); err != nil {
		t.Fatal(err)
	}
	if n, err := u.do(t, UringOp{Code: ReadFixed, FD: r.Int(), Buffer: 2, Addr: Address(b) + 100, Len: 1000}); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	if string(b[100:103]) != "new" {
		t.Errorf("%q lies there: the read went to the address", b[100:103])
	}
	if err := u.SetBuffer(2, b); err != nil { // the new pages, in the same place
		t.Fatal(err)
	}
	if n, err := u.do(t, write); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := unix.Read(r.Int(), got); err != nil || string(got) != "new" {
		t.Errorf("%q, %v: not what was pinned later", got, err)
	}
	if err := u.ClearBuffer(2); err != nil {
		t.Fatal(err)
	}
	if n, err := u.do(t, write); !errors.Is(err, syscall.EFAULT) {
		t.Errorf("%d bytes of an empty buffer, %v", n, err)
	}
}

// TestUringSend sends from pages without copying.
func TestUringSend(t *testing.T) {
	testutil.Require(t, has(SendZC))
	u := newUring(t, 4, 1)
	raw, far := connected(t)
	m := anonymous(t, 4)
	for i := range m.Bytes() {
		m.Bytes()[i] = byte(i ^ i>>8)
	}
	want := bytes.Clone(m.Bytes())
	if err := u.SetBuffer(0, m.Bytes()); err != nil {
		t.Fatal(err)
	}
	at := Address(m.Bytes())
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := raw.Write(func(fd uintptr) bool {
		n, err := u.do(t, UringOp{Code: SendFixed, FD: int(fd), Addr: at + 1, Len: len(want) - 1})
		if n != len(want)-1 || err != nil {
			t.Error(n, err)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want)-1)
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, want[1:]) {
		t.Errorf("not what is pinned, %v", err)
	}
}

// TestUringWaits has a read that is done when something is written, beside others.
func TestUringWaits(t *testing.T) {
	u := newUring(t, 2, 1)
	m := anonymous(t, 1)
	if err := u.SetBuffer(0, m.Bytes()); err != nil {
		t.Fatal(err)
	}
	var ends [3]*FD
	for i := range ends {
		r, w := pipe(t)
		ends[i] = w
		err := u.Submit(UringOp{Code: ReadFixed, FD: r.Int(), Addr: Address(m.Bytes()) + uint64(i), Len: 1, User: uint64(i)})
		if want := i == 2; errors.Is(err, ErrWouldBlock) != want {
			t.Fatalf("operation %d of at most two: %v", i, err)
		}
	}
	for _, i := range []int{1, 0} {
		go func() { _, _ = unix.Write(ends[i].Int(), []byte{byte(i + 1)}) }()
		r, err := u.Wait()
		if err != nil || r != (UringResult{User: uint64(i), N: 1}) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if got := m.Bytes()[:2]; !slices.Equal(got, []byte{1, 2}) {
		t.Errorf("read %v", got)
	}
	if r, err := u.Wait(); !errors.Is(err, ErrWouldBlock) {
		t.Errorf("waited for nothing: %+v, %v", r, err)
	}
}

// TestUringNoWait asks for what cannot be had now.
func TestUringNoWait(t *testing.T) {
	u := newUring(t, 1, 1)
	m := anonymous(t, (1<<20)/osPageSize)
	if err := u.SetBuffer(0, m.Bytes()); err != nil {
		t.Fatal(err)
	}
	raw, _ := connected(t)
	for _, code := range []UringCode{ReadFixed, WriteFixed} { // the far end sends and takes nothing
		if err := raw.Control(func(fd uintptr) {
			op := UringOp{Code: code, FD: int(fd), NoWait: true, Addr: Address(m.Bytes()), Len: len(m.Bytes())}
			err := error(nil)
			for err == nil {
				_, err = u.do(t, op)
			}
			if !errors.Is(err, syscall.EAGAIN) {
				t.Errorf("operation %d: %v", code, err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUringRounds goes around the rings several times.
func TestUringRounds(t *testing.T) {
	u := newUring(t, 2, 1)
	m := anonymous(t, 1)
	r, w := pipe(t)
	if err := u.SetBuffer(0, m.Bytes()); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1)
	for i := range 1000 {
		m.Bytes()[i] = byte(i)
		if n, err := u.do(t, UringOp{Code: WriteFixed, FD: w.Int(), Addr: Address(m.Bytes()) + uint64(i), Len: 1}); n != 1 || err != nil {
			t.Fatal(i, n, err)
		}
		if _, err := unix.Read(r.Int(), got); err != nil || got[0] != byte(i) {
			t.Fatal(i, got, err)
		}
	}
}

func TestUringRefuses(t *testing.T) {
	u := newUring(t, 1, 1)
	m := anonymous(t, 1)
	b := m.Bytes()
	for _, bad := range [][2]int{{0, 1}, {1, 0}, {-1, 1}, {maxUringEntries + 1, 1}, {1, maxUringBuffers + 1}} {
		if u, err := NewUring(bad[0], bad[1], Features{}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%v: %v, %v", bad, u, err)
		}
	}
	for _, i := range []int{-1, 1} {
		if err := u.SetBuffer(i, b); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("buffer %d: %v", i, err)
		}
		if err := u.ClearBuffer(i); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("buffer %d: %v", i, err)
		}
		if err := u.Submit(UringOp{Code: WriteFixed, Buffer: i}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("buffer %d: %v", i, err)
		}
	}
	if err := u.SetBuffer(0, nil); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a buffer of nothing: %v", err)
	}
	hidden := anonymous(t, 1) // an address that was unmapped could be somebody's again
	if err := hidden.Forbid(); err != nil {
		t.Fatal(err)
	}
	if err := u.SetBuffer(0, hidden.Bytes()); !errors.Is(err, syscall.EFAULT) {
		t.Errorf("memory that cannot be touched: %v", err)
	}
	for _, n := range []int{-1, math.MaxInt32 + 1} {
		if err := u.Submit(UringOp{Code: WriteFixed, Len: n}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if err := u.SetBuffer(0, b[:100]); err != nil {
		t.Fatal(err)
	}
	_, w := pipe(t)
	at := Address(b)
	for _, bad := range []UringOp{{Addr: at - 1, Len: 1}, {Addr: at, Len: 101}, {Addr: at + 100, Len: 1}, {Addr: math.MaxUint64, Len: 1}} {
		bad.Code, bad.FD = WriteFixed, w.Int()
		if n, err := u.do(t, bad); !errors.Is(err, syscall.EFAULT) {
			t.Errorf("%+v: %d, %v", bad, n, err)
		}
	}
	if _, err := u.do(t, UringOp{Code: WriteFixed, FD: -1, Addr: at, Len: 1}); !errors.Is(err, syscall.EBADF) {
		t.Errorf("no descriptor: %v", err)
	}
	if _, err := u.do(t, UringOp{Code: 255, FD: w.Int()}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("an operation that is none: %v", err)
	}
	u.Close()
	_, err := u.Wait()
	for what, err := range map[string]error{
		"SetBuffer": u.SetBuffer(0, b), "ClearBuffer": u.ClearBuffer(0), "Submit": u.Submit(UringOp{Code: WriteFixed}), "Wait": err,
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

// withoutLockRight calls f without CAP_IPC_LOCK, which frees a process from RLIMIT_MEMLOCK.
func withoutLockRight(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var was [2]unix.CapUserData
	if err := unix.Capget(&head, &was[0]); err != nil {
		t.Fatal(err)
	}
	less := was
	less[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	if err := unix.Capset(&head, &less[0]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Capset(&head, &was[0]); err != nil {
			t.Error(err)
		}
	}()
	f()
}

// TestUringMemlock pins what an ordinary user may, and no more.
func TestUringMemlock(t *testing.T) {
	testutil.Require(t, has(IOUring))
	const maxTried = 64 << 20
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		t.Fatal(err)
	}
	testutil.Require(t, testutil.Capability{Name: "a small RLIMIT_MEMLOCK", Fixed: true, Probe: func() error {
		if l.Cur > maxTried || l.Cur < uint64(osPageSize) {
			return fmt.Errorf("it is %d", l.Cur)
		}
		return nil
	}})
	m := anonymous(t, int(l.Cur)/osPageSize+1)
	withoutLockRight(t, func() {
		u := newUring(t, 1, 1)
		if err := u.SetBuffer(0, m.Bytes()[:osPageSize]); err != nil {
			t.Error(err)
		}
		err := u.SetBuffer(0, m.Bytes())
		if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), fmt.Sprintf("%d that may be locked (RLIMIT_MEMLOCK)", l.Cur)) {
			t.Errorf("%d bytes pinned, of %d: %v", len(m.Bytes()), l.Cur, err)
		}
	})
}

// TestUringForbidden is as in a container that forbids io_uring, or with the sysctl kernel.io_uring_disabled: EPERM in both.
func TestUringForbidden(t *testing.T) {
	p := testutil.Child(t, "forbidden")
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := NewUring(1, 1, Features{}.Without(IOUring)); !errors.Is(err, ErrNotSupported) {
		t.Errorf("turned off: %v", err)
	}
}

// denied is a filter of system calls (seccomp(2)). It is global so that it does not move.
var denied struct{ program, filter []byte }

// deny has the kernel refuse a call of this thread with EPERM from now on, in a process that is a role.
func deny(call uint32) error {
	const load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	for _, i := range []unix.SockFilter{
		{Code: load}, // the number of the call comes first in what a filter sees
		{Code: equal, K: call, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	} {
		denied.filter = binary.NativeEndian.AppendUint16(denied.filter, i.Code)
		denied.filter = append(denied.filter, i.Jt, i.Jf)
		denied.filter = binary.NativeEndian.AppendUint32(denied.filter, i.K)
	}
	denied.program = binary.NativeEndian.AppendUint64(nil, uint64(len(denied.filter)/8)) // a u16 with six bytes behind it
	denied.program = binary.NativeEndian.AppendUint64(denied.program, Address(denied.filter))
	runtime.LockOSThread() // the filter is the thread's
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(Address(denied.program)), 0, 0)
}

func roleForbidden([]string) error {
	if err := deny(unix.SYS_IO_URING_SETUP); err != nil {
		return err
	}
	for _, f := range []Feature{IOUring, SendZC} {
		err := Features{}.Check(f)
		u, ok := errors.AsType[*UnsupportedError](err)
		if !ok || u.Feature != f || !errors.Is(err, syscall.EPERM) {
			return fmt.Errorf("%v: %w", f, err)
		}
	}
	if _, err := NewUring(1, 1, Features{}); !errors.Is(err, ErrNotSupported) {
		return fmt.Errorf("made where it is forbidden: %w", err)
	}
	return nil
}
