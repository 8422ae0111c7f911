//go:build linux

package sys

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Twin is a second mapping of pages that are mapped already: the same memory at another address.
type Twin struct {
	pages, bytes []byte
	ticket       uint64
}

// MapAgain maps the pages of b again, with the same rights. b lies in one shared mapping, of pages of the ordinary
// size; where the kernel does not do it that is an error.
func MapAgain(b []byte) (*Twin, error) {
	if len(b) == 0 {
		return nil, os.NewSyscallError("mremap", unix.EINVAL)
	}
	page := os.Getpagesize()
	whole := wholePages(b, page)
	size := (len(whole) + page - 1) / page * page
	at, err := unix.MremapPtr(address(whole), 0, nil, uintptr(size), unix.MREMAP_MAYMOVE)
	if err != nil {
		return nil, os.NewSyscallError("mremap", err)
	}
	pages := unsafe.Slice((*byte)(at), size)
	first := len(whole) - len(b)
	return &Twin{pages, pages[first : first+len(b) : first+len(b)], track("twin")}, nil
}

// Bytes is the memory.
func (t *Twin) Bytes() []byte { return t.bytes }

// Fault takes the memory away: touching it is a fault from now on. It is called once. The address space stays taken for a
// while, so that what is mapped next does not come to lie where somebody may still look.
func (t *Twin) Fault() {
	pages := t.pages
	t.pages, t.bytes = nil, nil
	untrack(t.ticket)
	const flags = unix.MAP_FIXED | unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	if _, err := unix.MmapPtr(-1, 0, address(pages), uintptr(len(pages)), unix.PROT_NONE, flags); err != nil {
		_ = unix.MunmapPtr(address(pages), uintptr(len(pages))) // a fault as well, until something else lies there
		return
	}
	taken.Lock()
	defer taken.Unlock()
	old := taken.pieces[taken.next]
	taken.pieces[taken.next] = pages
	taken.next = (taken.next + 1) % len(taken.pieces)
	if old != nil {
		_ = unix.MunmapPtr(address(old), uintptr(len(old)))
	}
}

func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// taken are the pieces of address space that faults have taken last.
var taken struct {
	sync.Mutex
	pieces [256][]byte
	next   int
}
