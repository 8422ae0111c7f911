package sys

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	maxUringEntries = 4096
	maxUringBuffers = 1 << 14
)

// Uring is an io_uring(7) with a table of buffers: memory whose pages the kernel holds, and reads and writes whatever the
// address means meanwhile, as a network card does. It is for one goroutine at a time.
type Uring struct {
	fd      *FD
	rings   *Mapping
	entries *Mapping // of submissions

	submit, complete struct {
		head, tail *atomic.Uint32
		mask       uint32
	}
	done    []byte // entries of completions
	buffers int
	pending int // operations that are not done
}

// NewUring makes one for so many operations at a time, with a table of empty buffers. It needs IOUring.
func NewUring(entries, buffers int, f Features) (*Uring, error) {
	if err := f.Check(IOUring); err != nil {
		return nil, err
	}
	if entries < 1 || entries > maxUringEntries || buffers < 1 || buffers > maxUringBuffers {
		return nil, fmt.Errorf("sys: an io_uring of %d entries and %d buffers: %w", entries, buffers, unix.EINVAL)
	}
	var p uringParams
	n, err := uringSetup(entries, &p)
	if err != nil {
		return nil, os.NewSyscallError("io_uring_setup", err)
	}
	u := &Uring{fd: NewFD(n, "io_uring"), buffers: buffers}
	if err := u.open(&p); err != nil {
		_ = u.Close()
		return nil, err
	}
	return u, nil
}

// open maps the rings and makes the table.
func (u *Uring) open(p *uringParams) (err error) {
	size := max(p.sq.array+4*p.sqEntries, p.cq.cqes+uringCQESize*p.cqEntries) // one mapping for both (5.4)
	if u.rings, err = Map(u.fd, 0, int(size), true); err != nil {
		return err
	}
	if u.entries, err = Map(u.fd, uringOffSQEs, int(uringSQESize*p.sqEntries), true); err != nil {
		return err
	}
	b := u.rings.Bytes()
	u.submit.head, u.submit.tail, u.submit.mask = word32(b[p.sq.head:]), word32(b[p.sq.tail:]), p.sqEntries-1
	u.complete.head, u.complete.tail, u.complete.mask = word32(b[p.cq.head:]), word32(b[p.cq.tail:]), p.cqEntries-1
	u.done = b[p.cq.cqes:]
	for i := range p.sqEntries { // submission i lies in entry i
		word32(b[p.sq.array+4*i:]).Store(i)
	}
	return os.NewSyscallError("io_uring_register", uringMakeTable(u.fd.Int(), u.buffers))
}

// SetBuffer pins the pages of b and puts them in the place of what the buffer was. The caller may do with the memory what he
// likes; only to use it is to know what lies there. Without the right to lock memory (CAP_IPC_LOCK), all that the user has pinned is below RLIMIT_MEMLOCK,
// else it fails with ENOMEM. Memory that is not mapped is EFAULT, mappings of files are EFAULT or EOPNOTSUPP.
func (u *Uring) SetBuffer(i int, b []byte) error {
	if err := u.check(i); err != nil {
		return err
	}
	if len(b) == 0 || len(b) > maxUringBuffer {
		return fmt.Errorf("sys: a buffer of %d bytes: %w", len(b), unix.EINVAL)
	}
	err := uringSwap(u.fd.Int(), i, b)
	if errors.Is(err, unix.ENOMEM) {
		var l unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) // it is for the text
		return fmt.Errorf("sys: pin %d bytes, of the %d that may be locked (RLIMIT_MEMLOCK): %w", len(b), l.Cur, err)
	}
	if err != nil {
		return fmt.Errorf("sys: pin %d bytes at %#x: %w", len(b), Address(b), os.NewSyscallError("io_uring_register", err))
	}
	return nil
}

// ClearBuffer lets go of a buffer's pages, after the operations that use them. Before Linux 6.13 the kernel may do it a moment later.
func (u *Uring) ClearBuffer(i int) error {
	if err := u.check(i); err != nil {
		return err
	}
	return os.NewSyscallError("io_uring_register", uringSwap(u.fd.Int(), i, nil))
}

func (u *Uring) check(buffer int) error {
	switch {
	case u.rings == nil:
		return ErrClosed
	case buffer < 0 || buffer >= u.buffers:
		return fmt.Errorf("sys: buffer %d of %d: %w", buffer, u.buffers, unix.EINVAL)
	}
	return nil
}

// Submit begins an operation. It fails with ErrWouldBlock when as many as the Uring has entries are not done. What is wrong with
// an operation is mostly in its result: EFAULT if Addr and Len are not inside of the buffer, or if that is empty.
func (u *Uring) Submit(op UringOp) error {
	if err := u.check(op.Buffer); err != nil {
		return err
	}
	if op.Len < 0 || op.Len > math.MaxInt32 {
		return fmt.Errorf("sys: an operation of %d bytes: %w", op.Len, unix.EINVAL)
	}
	tail := u.submit.tail.Load()
	if u.pending > int(u.submit.mask) || tail-u.submit.head.Load() > u.submit.mask {
		return ErrWouldBlock
	}
	*uringSQEAt(u.entries.Bytes(), tail&u.submit.mask) = uringEntry(op)
	u.submit.tail.Store(tail + 1)
	if err := uringEnter(u.fd.Int(), 1, 0); err != nil {
		if u.submit.head.Load() == tail { // the kernel did not take it, and looks only when it is told to
			u.submit.tail.Store(tail)
		}
		return os.NewSyscallError("io_uring_enter", err)
	}
	u.pending++
	return nil
}

// uringEntry is an operation as the kernel takes it.
func uringEntry(op UringOp) uringSQE {
	e := uringSQE{
		code: uint8(op.Code), fd: int32(op.FD), addr: op.Addr, len: uint32(op.Len), user: op.User, buffer: uint16(op.Buffer),
	}
	switch {
	case op.Code == SendFixed:
		e.prio, e.rw = uringFixedBuffer, unix.MSG_NOSIGNAL
		if op.NoWait {
			e.rw |= unix.MSG_DONTWAIT
		}
		return e
	case op.NoWait:
		e.rw = unix.RWF_NOWAIT
	}
	e.off = math.MaxUint64 // a stream has no offset
	return e
}

// Wait sleeps until an operation is done. The results come in any order. With none to wait for it fails with ErrWouldBlock.
func (u *Uring) Wait() (UringResult, error) {
	for {
		switch {
		case u.rings == nil:
			return UringResult{}, ErrClosed
		case u.pending == 0:
			return UringResult{}, ErrWouldBlock
		}
		if r, ok := u.take(); ok {
			return r, nil
		}
		if err := uringEnter(u.fd.Int(), 0, 1); err != nil && !errors.Is(err, unix.EINTR) {
			return UringResult{}, os.NewSyscallError("io_uring_enter", err)
		}
	}
}

func (u *Uring) take() (UringResult, bool) {
	head := u.complete.head.Load()
	if head == u.complete.tail.Load() {
		return UringResult{}, false
	}
	e := *uringCQEAt(u.done, head&u.complete.mask)
	u.complete.head.Store(head + 1)
	r := UringResult{User: e.user, N: int(max(e.res, 0)), More: e.flags&uringMore != 0}
	if e.res < 0 {
		r.Err = os.NewSyscallError("io_uring", unix.Errno(-e.res))
	}
	if !r.More {
		u.pending--
	}
	return r, true
}

// Close ends what is not done, and lets go of all pages; again, it does nothing. The kernel does both a moment later.
func (u *Uring) Close() error {
	for _, m := range []*Mapping{u.entries, u.rings} {
		if m != nil {
			_ = m.Close()
		}
	}
	u.entries, u.rings = nil, nil
	return u.fd.Close()
}

// probeUring makes a ring, and asks for the table.
func probeUring() error {
	var p uringParams
	fd, err := uringSetup(1, &p)
	if err == nil && p.features&uringFeatTags == 0 {
		_ = unix.Close(fd)
		return unix.ENOSYS
	}
	return probeFD(fd, err)
}

// probeUringOp asks for an operation.
func probeUringOp(code UringCode) error {
	if err := probeUring(); err != nil {
		return err
	}
	fd, err := uringSetup(1, new(uringParams))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	knows, err := uringKnows(fd, code)
	if err == nil && !knows {
		return unix.ENOSYS
	}
	return err
}
