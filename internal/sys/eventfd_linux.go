package sys

import (
	"os"

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
