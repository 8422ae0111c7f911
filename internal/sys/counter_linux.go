package sys

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// NewCounter makes an eventfd that is zero and blocks, for processes that are started with it: whoever waits sleeps in the kernel,
// on a thread of its own, and no netpoller is woken.
func NewCounter() (*os.File, error) {
	n, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return os.NewFile(uintptr(n), "eventfd"), nil
}

// AddCounter adds n, at least 1, to a counter by its descriptor, and so wakes who waits.
func AddCounter(fd int, n uint64) error {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], n)
	for {
		if _, err := unix.Write(fd, b[:]); err != unix.EINTR {
			return os.NewSyscallError("write to eventfd", err)
		}
	}
}

// WaitCounter sleeps until a counter is not zero, makes it zero, and returns what it was.
func WaitCounter(fd int) (uint64, error) {
	var b [8]byte
	for {
		if _, err := unix.Read(fd, b[:]); err != unix.EINTR {
			return binary.NativeEndian.Uint64(b[:]), os.NewSyscallError("read from eventfd", err)
		}
	}
}
