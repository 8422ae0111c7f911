package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// CanUring says why this process cannot have an io_uring; nil: it can. The kernel (5.1) may lack it, and administrators and containers forbid it.
func CanUring() error {
	// Who may not is told so before the parameters are looked at, which are nowhere.
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	if errno == unix.EFAULT {
		return nil
	}
	return os.NewSyscallError("io_uring_setup", errno)
}
