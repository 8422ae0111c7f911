//go:build unix

package sys

import (
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
	for {
		n, err = syscall.Read(int(fd), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, true, nil
		case err != nil:
			return 0, false, os.NewSyscallError("read", err)
		case n == 0 && len(p) > 0:
			return 0, false, io.EOF
		}
		return n, false, nil
	}
}

// CanWriteNow says that WriteNow works on this system.
const CanWriteNow = true

// WriteNow writes once to a descriptor that does not block, as syscall.RawConn
// hands it out: as much as there is room for, which can be nothing. again is true,
// without an error, if there was no room at all.
func WriteNow(fd uintptr, p []byte) (n int, again bool, err error) {
	for {
		n, err = syscall.Write(int(fd), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, true, nil
		case err != nil:
			return 0, false, os.NewSyscallError("write", err)
		}
		return n, false, nil
	}
}
