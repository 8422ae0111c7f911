package sys

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// ReadGuarded is ReadProcess from a process that must have the guard's mark, else ErrOtherProcess. The mark is read by the
// same call of the kernel as the last bytes, so all of them come from a process that has it: a number that went to
// another process does not come back. After an error local holds anything.
func ReadGuarded(pid int, remote uint64, local []byte, g Guard, f Features) error {
	if err := f.Check(CrossMemory); err != nil {
		return err
	}
	if err := f.Injected(CallProcessVM); err != nil {
		return crossError("process_vm_readv", pid, err)
	}
	var mark [16]byte
	for {
		part := local[:min(len(local), crossChunk)]
		n, err := readGuarded(pid, remote, part, g.At, &mark)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil && n == 0:
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return crossError("process_vm_readv", pid, err)
		}
		if n == len(part)+len(mark) && len(part) == len(local) {
			if mark != g.Mark {
				return crossError("process_vm_readv", pid, ErrOtherProcess)
			}
			return nil
		}
		n = min(n, len(part)) // the mark comes with the last part, or again if it was cut
		remote, local = remote+uint64(n), local[n:]
	}
}

// readGuarded reads some bytes and, if all of them are there, the mark.
func readGuarded(pid int, at uint64, b []byte, markAt uint64, mark *[16]byte) (int, error) {
	if len(b) == 0 {
		return readProcess(pid, markAt, mark[:])
	}
	l := [2]unix.Iovec{{Base: &b[0]}, {Base: &mark[0]}}
	l[0].SetLen(len(b))
	l[1].SetLen(len(mark))
	r := [2]unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}, {Base: uintptr(markAt), Len: len(mark)}}
	return unix.ProcessVMReadv(pid, l[:], r[:], 0)
}
