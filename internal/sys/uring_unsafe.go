//go:build linux

package sys

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel's include/uapi/linux/io_uring.h has, by its names.
const (
	uringOffSQEs     = 0x10000000 // IORING_OFF_SQES
	uringFeatTags    = 1 << 10    // IORING_FEAT_RSRC_TAGS: came with buffers that can be exchanged
	uringGetEvents   = 1          // IORING_ENTER_GETEVENTS
	uringProbeOps    = 8          // IORING_REGISTER_PROBE
	uringSetBuffers  = 15         // IORING_REGISTER_BUFFERS2
	uringSwapBuffers = 16         // IORING_REGISTER_BUFFERS_UPDATE
	uringMore        = 1 << 1     // IORING_CQE_F_MORE
	uringFixedBuffer = 1 << 2     // IORING_RECVSEND_FIXED_BUF, in ioprio
	uringSupported   = 1          // IO_URING_OP_SUPPORTED

	uringSQESize = 64
	uringCQESize = 16
)

// uringParams is struct io_uring_params: what io_uring_setup is asked, and where it says that the rings lie.
type uringParams struct {
	sqEntries, cqEntries, flags, threadCPU, threadIdle, features, workers uint32
	_                                                                     [3]uint32
	sq                                                                    struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

// uringSQE is struct io_uring_sqe.
type uringSQE struct {
	code   uint8
	flags  uint8
	prio   uint16
	fd     int32
	off    uint64
	addr   uint64
	len    uint32
	rw     uint32
	user   uint64
	buffer uint16
	_      uint16
	_      int32
	_      [2]uint64
}

// uringCQE is struct io_uring_cqe.
type uringCQE struct {
	user  uint64
	res   int32
	flags uint32
}

// uringRegisterArg is struct io_uring_rsrc_register.
type uringRegisterArg struct {
	n, flags uint32
	_        uint64
	data     unsafe.Pointer // 64 bits on both machines
	tags     uint64
}

// uringUpdateArg is struct io_uring_rsrc_update2.
type uringUpdateArg struct {
	offset, _ uint32
	data      unsafe.Pointer
	tags      uint64
	n, _      uint32
}

// uringProbe is struct io_uring_probe.
type uringProbe struct {
	last, n uint8
	_       [14]byte
	ops     [256]struct {
		op, _ uint8
		flags uint16
		_     uint32
	}
}

// uringSetup makes a ring. Its descriptor closes on exec.
func uringSetup(entries int, p *uringParams) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(p)), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// uringEnter submits so many operations, and sleeps until so many are done.
func uringEnter(fd, submit, wait int) error {
	flags := uintptr(0)
	if wait > 0 {
		flags = uringGetEvents
	}
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(fd), uintptr(submit), uintptr(wait), flags, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func uringRegister(fd, what int, arg unsafe.Pointer, n uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), uintptr(what), uintptr(arg), n, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// uringMakeTable makes a table of n buffers that are empty.
func uringMakeTable(fd, n int) error {
	empty := make([]unix.Iovec, n)
	arg := &uringRegisterArg{n: uint32(n), data: unsafe.Pointer(unsafe.SliceData(empty))}
	return uringRegister(fd, uringSetBuffers, unsafe.Pointer(arg), unsafe.Sizeof(*arg))
}

// uringSwap puts b, or nothing, in the place of a buffer.
func uringSwap(fd, i int, b []byte) error {
	v := new(unix.Iovec)
	if len(b) > 0 {
		v.Base = unsafe.SliceData(b)
		v.SetLen(len(b))
	}
	arg := &uringUpdateArg{offset: uint32(i), data: unsafe.Pointer(v), n: 1}
	err := uringRegister(fd, uringSwapBuffers, unsafe.Pointer(arg), unsafe.Sizeof(*arg))
	runtime.KeepAlive(b)
	return err
}

// uringKnows says whether a ring's kernel has an operation.
func uringKnows(fd int, code UringCode) (bool, error) {
	p := new(uringProbe)
	err := uringRegister(fd, uringProbeOps, unsafe.Pointer(p), uintptr(len(p.ops)))
	return code <= UringCode(p.last) && p.ops[code].flags&uringSupported != 0, err
}

// uringSQEAt and uringCQEAt are entries of the mapped rings.
func uringSQEAt(b []byte, i uint32) *uringSQE {
	return (*uringSQE)(unsafe.Pointer(unsafe.SliceData(b[int(i)*uringSQESize:][:uringSQESize])))
}

func uringCQEAt(b []byte, i uint32) *uringCQE {
	return (*uringCQE)(unsafe.Pointer(unsafe.SliceData(b[int(i)*uringCQESize:][:uringCQESize])))
}
