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

// Counter is the descriptor of such an eventfd, as a process has it.
type Counter int

// Add adds n, at least 1, and so wakes who waits.
func (c Counter) Add(n uint64) error {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], n)
	for {
		if _, err := unix.Write(int(c), b[:]); err != unix.EINTR {
			return os.NewSyscallError("write to eventfd", err)
		}
	}
}

// Wait sleeps until the counter is not zero, makes it zero, and returns what it was.
func (c Counter) Wait() (uint64, error) {
	var b [8]byte
	for {
		if _, err := unix.Read(int(c), b[:]); err != unix.EINTR {
			return binary.NativeEndian.Uint64(b[:]), os.NewSyscallError("read from eventfd", err)
		}
	}
}
