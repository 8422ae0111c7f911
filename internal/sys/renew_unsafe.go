//go:build linux

package sys

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AdviseHuge asks the kernel to put b on huge pages. It is a wish.
func AdviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// NewPages gives b new pages, which are zero. Those that the kernel holds for a
// [Lender] stay as they are. b must consist of whole pages.
func NewPages(b []byte) error {
	page := os.Getpagesize()
	if len(b) == 0 {
		return nil
	}
	at := unsafe.Pointer(unsafe.SliceData(b))
	if int(uintptr(at))%page != 0 || len(b)%page != 0 {
		return fmt.Errorf("new pages for %d bytes at %#x: not whole pages of %d", len(b), at, page)
	}
	if unix.Madvise(b, unix.MADV_DONTNEED) == nil {
		return nil
	}
	// The program has locked its memory. (unix.Mmap would not take the address.)
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_FIXED | unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if _, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(at), uintptr(len(b)), prot, flags, ^uintptr(0), 0); errno != 0 {
		return os.NewSyscallError("mmap", errno)
	}
	return nil
}
