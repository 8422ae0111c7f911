package sys

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Eventfd is a counter in the kernel that makes a descriptor readable while it is not zero. It does not block.
type Eventfd struct{ *FD }

// NewEventfd makes one that is zero. It needs EventFD.
func NewEventfd(f Features) (Eventfd, error) {
	if err := f.Check(EventFD); err != nil {
		return Eventfd{}, err
	}
	n, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return Eventfd{}, os.NewSyscallError("eventfd", err)
	}
	return Eventfd{NewFD(n, "eventfd")}, nil
}

// ReceivedEventfd takes a descriptor that a peer sent for one that can be rung. It refuses what is no eventfd, to which a
// write might do anything, and makes it not block; a peer of the same user could undo that, who could as well
// stop this process. The FD stays the caller's after an error. It needs /proc.
func ReceivedEventfd(fd *FD) (Eventfd, error) {
	is, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd.Int()))
	if err != nil {
		return Eventfd{}, err
	}
	if is != "anon_inode:[eventfd]" {
		return Eventfd{}, fmt.Errorf("%w: %s is no eventfd", ErrMessage, is)
	}
	if err := unix.SetNonblock(fd.Int(), true); err != nil {
		return Eventfd{}, os.NewSyscallError("fcntl", err)
	}
	return Eventfd{fd}, nil
}

// one is 1 in the machine's byte order, either way: an eventfd only must not get 0 or the largest number.
var one = [8]byte{1}

// Ring makes the descriptor readable, for whoever holds it. One that was rung often enough already is
// rung as well.
func (e Eventfd) Ring() error {
	for {
		_, err := unix.Write(e.Int(), one[:])
		switch err {
		case nil, unix.EAGAIN:
			return nil
		case unix.EINTR:
		default:
			return os.NewSyscallError("write to eventfd", err)
		}
	}
}

// Drain makes the counter zero and says whether it was rung.
func (e Eventfd) Drain() (rung bool, err error) {
	var b [8]byte
	for {
		_, err := unix.Read(e.Int(), b[:])
		switch err {
		case nil:
			return true, nil
		case unix.EAGAIN:
			return false, nil
		case unix.EINTR:
		default:
			return false, os.NewSyscallError("read from eventfd", err)
		}
	}
}

// SharedEventfd is one that another library of this process has made, by its number. Close closes a copy.
func SharedEventfd(n int) (Eventfd, error) {
	fd, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return Eventfd{}, os.NewSyscallError("fcntl", err)
	}
	own := NewFD(fd, "eventfd of another library")
	e, err := ReceivedEventfd(own)
	if err != nil {
		_ = own.Close()
	}
	return e, err
}
