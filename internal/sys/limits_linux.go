package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// DescriptorLimit is how many descriptors this process may have.
func DescriptorLimit() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, os.NewSyscallError("getrlimit", err)
	}
	return l.Cur, nil
}
