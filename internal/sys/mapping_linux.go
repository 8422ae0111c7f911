package sys

import (
	"fmt"
	"os"

	"github.com/weft-fabric/weft/internal/invariants"
	"golang.org/x/sys/unix"
)

// Map maps n bytes of a file from off, a multiple of the page size. n may end inside of a page; of a
// file of huge pages it is a multiple of their size. Another mapping of the same file is the same memory
// at another address.
func Map(fd *FD, off int64, n int, writable bool) (*Mapping, error) {
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	b, err := unix.Mmap(fd.Int(), off, n, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("sys: map %d bytes from %d: %w", n, off, os.NewSyscallError("mmap", err))
	}
	m := &Mapping{bytes: b, writable: writable}
	if invariants.Enabled { // else nobody reads the text
		m.ticket = track(fmt.Sprintf("mapping of %d bytes", n))
	}
	return m, nil
}

func unmap(b []byte) error { return os.NewSyscallError("munmap", unix.Munmap(b)) }

// Populate brings the pages of b, memory of a mapping, into this process's page table, so that touching
// them costs nothing later: for writing if the mapping is writable. b keeps its content, also beside
// others who write it. With Populate of the kernel, want of memory is an error; without, the pages are
// touched, and it is SIGBUS: call [Allocate] before.
func Populate(b []byte, writable bool, f Features) error {
	if len(b) == 0 {
		return nil
	}
	if err := f.Injected(CallAllocate); err != nil {
		return err
	}
	if !f.Has(PopulatePages) {
		touch(b, os.Getpagesize(), writable)
		return nil
	}
	advice := unix.MADV_POPULATE_READ
	if writable {
		advice = unix.MADV_POPULATE_WRITE
	}
	_, err := retry(func() (int, error) { return 0, unix.Madvise(wholePages(b, os.Getpagesize()), advice) })
	return os.NewSyscallError("madvise", err)
}
