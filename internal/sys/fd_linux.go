package sys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// closeFD closes. After EINTR the descriptor is closed nevertheless (close(2)).
func closeFD(fd int) error {
	if err := unix.Close(fd); err != nil && err != unix.EINTR {
		return os.NewSyscallError("close", err)
	}
	return nil
}

// Dup is another descriptor of the same open file.
func (f *FD) Dup() (*FD, error) {
	n, err := retry(func() (int, error) { return unix.FcntlInt(uintptr(f.Int()), unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return NewFD(n, "duplicate"), nil
}

// retry calls until a signal does not interrupt.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// Pollable is a copy of a descriptor that does not block as a file of package os, whose Read waits in the netpoller. Each is closed by itself.
func Pollable(fd *FD, name string) (*os.File, error) {
	n, err := unix.FcntlInt(uintptr(fd.Int()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(n), name), nil
}
