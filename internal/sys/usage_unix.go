//go:build unix

package sys

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is what this process has used of the processors so far, user and system.
func ProcessorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // it fails for wrong arguments only
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// DupFile makes a file of a descriptor that was handed down to this process by its number, and leaves the descriptor as it is.
func DupFile(fd int, name string) (*os.File, error) {
	syscall.ForkLock.RLock() // a child must not get it
	own, err := unix.Dup(fd)
	if err == nil {
		unix.CloseOnExec(own)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(own), name), nil
}
