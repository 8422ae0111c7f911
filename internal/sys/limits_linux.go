package sys

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

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

// LockableMemory is how many more bytes of memory this process may lock or have pinned by drivers (RLIMIT_MEMLOCK); the largest number if
// nothing limits it, as for who has CAP_IPC_LOCK. In a user namespace of its own a container only seems to have that.
func LockableMemory() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return 0, os.NewSyscallError("getrlimit", err)
	}
	if l.Cur == unix.RLIM_INFINITY || may(unix.CAP_IPC_LOCK) && inFirstUserSpace("/proc/self/ns/user") {
		return math.MaxUint64, nil
	}
	locked, err := lockedMemory("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("sys: locked memory: %w", err)
	}
	return l.Cur - min(locked, l.Cur), nil
}

// may says whether this process has a capability.
func may(capability uint) bool {
	var sets [2]unix.CapUserData
	if unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]) != nil {
		return false
	}
	return sets[capability/32].Effective>>(capability%32)&1 != 0
}

// firstUserSpace is the user namespace that the system starts with: PROC_USER_INIT_INO of linux/proc_ns.h.
const firstUserSpace = "user:[4026531837]"

// inFirstUserSpace says whether a link is to it. Where there is no link the kernel has no others.
func inFirstUserSpace(link string) bool {
	space, err := os.Readlink(link)
	return space == firstUserSpace || errors.Is(err, os.ErrNotExist)
}

// lockedMemory reads VmLck and VmPin of proc_pid_status(5), in bytes.
func lockedMemory(name string) (locked uint64, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "VmLck:" && f[0] != "VmPin:" {
			continue
		}
		kib, err := strconv.ParseUint(f[1], 10, 54)
		if err != nil {
			return 0, fmt.Errorf("%s: %s %w", name, f[0], err)
		}
		locked += kib << 10
	}
	return locked, nil
}
