//go:build linux

package sys

import (
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls go through Syscall6, never the raw one: a thread that sleeps in a raw call stops the
// garbage collector of the whole process.

const (
	futexWait = 0 // without FUTEX_PRIVATE_FLAG: words of mappings that processes share
	futexWake = 1

	waitvSize32 = 2   // FUTEX2_SIZE_U32
	waitvMax    = 128 // FUTEX_WAITV_MAX
)

// FutexWait sleeps, on a thread, while *word is value and nobody calls FutexWake on it, at most for
// timeout; 0 means for ever. nil says to look at the word again: it changed, or a wake came, or a signal.
// ErrTimeout is the only other common end. The word may be of a read-only mapping.
func FutexWait(word *atomic.Uint32, value uint32, timeout time.Duration) error {
	var limit *unix.Timespec
	if timeout > 0 {
		ts := unix.NsecToTimespec(int64(timeout))
		limit = &ts
	}
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value),
		uintptr(unsafe.Pointer(limit)), 0, 0)
	return waitEnd("futex wait", errno)
}

// FutexWake wakes up to n who sleep on a word, in whatever process and mapping, and returns how many it
// woke. The word may be of a read-only mapping.
func FutexWake(word *atomic.Uint32, n int) (int, error) {
	n = min(n, math.MaxInt32)
	woken, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, uintptr(n), 0, 0, 0)
	if errno != 0 {
		return 0, os.NewSyscallError("futex wake", errno)
	}
	return int(woken), nil
}

// waitvEntry is struct futex_waitv.
type waitvEntry struct {
	value uint64
	addr  uint64
	flags uint32
	_     uint32
}

// FutexWaitAny is FutexWait on up to 128 words at once. It needs FutexWaitv.
func FutexWaitAny(words []WaitWord, timeout time.Duration, f Features) error {
	if err := f.Check(FutexWaitv); err != nil {
		return err
	}
	if len(words) == 0 || len(words) > waitvMax {
		return os.NewSyscallError("futex_waitv", unix.EINVAL)
	}
	var entries [waitvMax]waitvEntry
	for i, w := range words {
		entries[i] = waitvEntry{value: uint64(w.Value), addr: uint64(uintptr(unsafe.Pointer(w.Word))), flags: waitvSize32}
	}
	var limit *unix.Timespec
	if timeout > 0 { // an absolute time, unlike that of FUTEX_WAIT
		limit = new(unix.Timespec)
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, limit); err != nil {
			return os.NewSyscallError("clock_gettime", err)
		}
		*limit = unix.NsecToTimespec(limit.Nano() + int64(timeout))
	}
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX_WAITV, uintptr(unsafe.Pointer(&entries)), uintptr(len(words)), 0,
		uintptr(unsafe.Pointer(limit)), unix.CLOCK_MONOTONIC, 0)
	runtime.KeepAlive(words)
	return waitEnd("futex_waitv", errno)
}

func waitEnd(call string, errno unix.Errno) error {
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR:
		return nil
	case unix.ETIMEDOUT:
		return ErrTimeout
	}
	return os.NewSyscallError(call, errno)
}

// probeWaitv asks for a wait on nothing, which is EINVAL where the call exists.
func probeWaitv() error {
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX_WAITV, 0, 0, 0, 0, 0, 0)
	if errno == unix.EINVAL {
		return nil
	}
	return errno
}

// probeRobust asks for this thread's list.
func probeRobust() error {
	var head, size uintptr
	_, _, errno := unix.Syscall(unix.SYS_GET_ROBUST_LIST, 0, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return errno
	}
	return nil
}
