package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// probeFeature asks the kernel for a feature and returns what it said, unwrapped.
func probeFeature(f Feature) error {
	switch f {
	case FutureWrite:
		return probeSeal()
	case NoExecSeal:
		return probeFD(unix.MemfdCreate("probe", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL))
	case PopulatePages:
		return probePopulate()
	case FutexWaitv:
		return probeWaitv()
	case HugeTLB:
		return probeFD(unix.MemfdCreate("probe", unix.MFD_CLOEXEC|unix.MFD_HUGETLB))
	case CrossMemory:
		return probeCrossMemory()
	case EventFD:
		return probeFD(unix.Eventfd(0, unix.EFD_CLOEXEC))
	case RobustList:
		return probeRobust()
	case IOUring:
		return probeUring()
	case SendZC:
		return probeUringOp(uringSendZC)
	}
	return unix.ENOSYS
}

// probeFD closes what a probe has made.
func probeFD(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func probeSeal() error {
	fd, err := unix.MemfdCreate("probe", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE)
	return err
}

func probePopulate() error {
	b, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(b) }()
	return unix.Madvise(b, unix.MADV_POPULATE_WRITE)
}

func probeCrossMemory() error {
	_, err := readProcess(os.Getpid(), Address(one[:]), make([]byte, len(one))) // a variable that stays where it is
	return err
}
