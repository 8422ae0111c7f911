//go:build linux

package sys

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Anonymous is private memory of the kernel, zeroed, whole pages. It is for one goroutine at a time.
type Anonymous struct {
	bytes  []byte
	ticket uint64
}

// MapAnonymous maps n bytes, a multiple of the page size.
func MapAnonymous(n int) (*Anonymous, error) {
	if n <= 0 {
		return nil, fmt.Errorf("sys: map %d bytes: %w", n, unix.EINVAL)
	}
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("sys: map %d bytes: %w", n, os.NewSyscallError("mmap", err))
	}
	return &Anonymous{unsafe.Slice((*byte)(at), n), track("private mapping")}, nil
}

// MapAnonymousAt maps n bytes at addr, as a program does that uses an address again, unless something lies there: then taken
// is true.
func MapAnonymousAt(addr uint64, n int) (a *Anonymous, taken bool, err error) {
	b, taken, err := mapAt(addr, -1, n, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if b == nil {
		return nil, taken, err
	}
	return &Anonymous{b, track("private mapping")}, false, nil
}

// mapAt maps at an address, unless something lies there. What does not know MAP_FIXED_NOREPLACE (kernels before 4.17, emulators) takes the
// address for a wish: who gets another one has found it taken.
func mapAt(addr uint64, fd, n, flags int) (b []byte, taken bool, err error) {
	at, err := unix.MmapPtr(fd, 0, pointer(addr), uintptr(n), unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_FIXED_NOREPLACE)
	switch {
	case err == unix.EEXIST:
		return nil, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("sys: map %d bytes at %#x: %w", n, addr, os.NewSyscallError("mmap", err))
	case at != pointer(addr):
		_ = unix.MunmapPtr(at, uintptr(n))
		return nil, true, nil
	}
	return unsafe.Slice((*byte)(at), n), false, nil
}

// Bytes is the memory; nil after Close.
func (a *Anonymous) Bytes() []byte { return a.bytes }

// MapOver maps new memory over all of it, as a program does that reuses addresses.
func (a *Anonymous) MapOver() error {
	const flags = unix.MAP_FIXED | unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	_, err := unix.MmapPtr(-1, 0, address(a.bytes), uintptr(len(a.bytes)), unix.PROT_READ|unix.PROT_WRITE, flags)
	return os.NewSyscallError("mmap", err)
}

// Move moves the memory to another address. Nothing lies at the old one then.
func (a *Anonymous) Move() error {
	n := uintptr(len(a.bytes))
	to, err := unix.MmapPtr(-1, 0, nil, n, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	if _, err := unix.MremapPtr(address(a.bytes), n, to, n, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
		_ = unix.MunmapPtr(to, n)
		return os.NewSyscallError("mremap", err)
	}
	a.bytes = unsafe.Slice((*byte)(to), n)
	return nil
}

// Free lets the kernel take the pages when it needs some: they keep what they hold until then, or until they are written.
func (a *Anonymous) Free() error {
	return os.NewSyscallError("madvise", unix.Madvise(a.bytes, unix.MADV_FREE))
}

// Forbid makes touching the memory a fault.
func (a *Anonymous) Forbid() error {
	return os.NewSyscallError("mprotect", unix.Mprotect(a.bytes, unix.PROT_NONE))
}

// Close unmaps; again, it does nothing.
func (a *Anonymous) Close() error {
	b := a.bytes
	if b == nil {
		return nil
	}
	a.bytes = nil
	untrack(a.ticket)
	return os.NewSyscallError("munmap", unix.MunmapPtr(address(b), uintptr(len(b))))
}

// Claim maps a memory file of n bytes, shared, at a fixed address, unless something lies there: then taken is true. The mapping
// stays for the life of the process.
func Claim(addr uint64, fd *FD, n int) (b []byte, taken bool, err error) {
	return mapAt(addr, fd.Int(), n, unix.MAP_SHARED)
}

// BytesAt is memory at an address of which the caller knows, from MappingsOf, that it is mapped and stays.
func BytesAt(addr uint64, n int) []byte { return unsafe.Slice((*byte)(pointer(addr)), n) }

// pointer is an address that is not of the Go heap.
func pointer(addr uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
