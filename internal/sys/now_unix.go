//go:build unix

package sys

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// CanReadNow says that ReadNow works on this system.
const CanReadNow = true

// ReadNow reads once from a descriptor that does not block, as syscall.RawConn
// hands it out. again is true, without an error, if nothing is there yet. The end
// of the stream is io.EOF.
func ReadNow(fd uintptr, p []byte) (n int, again bool, err error) {
	n, again, err = once("read", syscall.Read, fd, p)
	if n == 0 && !again && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, again, err
}

// CanWriteNow says that WriteNow works on this system.
const CanWriteNow = true

// WriteNow writes once to a descriptor that does not block, as syscall.RawConn
// hands it out: as much as there is room for, which can be nothing. again is true,
// without an error, if there was no room at all.
func WriteNow(fd uintptr, p []byte) (n int, again bool, err error) {
	return once("write", syscall.Write, fd, p)
}

// once makes a call that does not wait, again if a signal came between.
func once(name string, call func(int, []byte) (int, error), fd uintptr, p []byte) (n int, again bool, err error) {
	for {
		n, err = call(int(fd), p)
		switch {
		case err == nil:
			return n, false, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return 0, true, nil
		}
		return 0, false, os.NewSyscallError(name, err)
	}
}
