//go:build linux

package sys

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CanLend says that a Lender works on this system. What is lent must not share a page
// with other memory; large pieces of the Go heap do not, where pages are no larger
// than the 8 KiB of its own.
var CanLend = os.Getpagesize() <= 8<<10

// lentAtOnce is how much a Lender gives the kernel at a time, in bytes. All pipes of
// an ordinary user together hold 64 MiB before new ones become small.
const lentAtOnce = 256 << 10

// Lender writes memory to sockets without copying it: the kernel keeps the pages
// themselves until the peer has taken them. It is for one goroutine at a time.
type Lender struct {
	in, out int // of a pipe
	held    int // bytes in it
}

// NewLender returns a Lender, to be closed.
func NewLender() (*Lender, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	_, _ = unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, lentAtOnce) // a smaller one works, too
	return &Lender{out: p[0], in: p[1]}, nil
}

// Close gives back what the Lender holds. What the kernel has of a socket's data stays.
// Idempotent.
func (l *Lender) Close() {
	if l.in >= 0 {
		_ = unix.Close(l.in)
		_ = unix.Close(l.out)
	}
	l.in, l.out = -1, -1
}

// WriteNow writes from b to a socket that does not block what there is room for, and
// returns how much. Until all of b is written, the next call must begin where this
// one ended. again is true, without an error, if there was no room left. After an
// error the Lender is of no more use, and the next byte to write is that behind n.
func (l *Lender) WriteNow(fd uintptr, b []byte) (n int, again bool, err error) {
	for n < len(b) {
		if l.held == 0 {
			if err := l.lend(b[n:]); err != nil {
				return n, false, err
			}
		}
		flags := unix.SPLICE_F_NONBLOCK
		if n+l.held < len(b) {
			flags |= unix.SPLICE_F_MORE
		}
		m, err := unix.Splice(l.out, nil, int(fd), nil, l.held, flags)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return n, true, nil
		case err != nil:
			return n, false, os.NewSyscallError("splice", err)
		}
		n += int(m)
		l.held -= int(m)
	}
	return n, false, nil
}

// lend puts pages of b into the empty pipe.
func (l *Lender) lend(b []byte) error {
	b = b[:min(len(b), lentAtOnce)]
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	for {
		n, _, errno := unix.Syscall6(unix.SYS_VMSPLICE, uintptr(l.in), uintptr(unsafe.Pointer(&v)), 1, unix.SPLICE_F_NONBLOCK, 0, 0)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return os.NewSyscallError("vmsplice", errno)
		}
		l.held = int(n)
		return nil
	}
}
