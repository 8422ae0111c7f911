package shmem

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/sys"
)

// hugePage is the size of a huge page that Linux gives without being set up for it,
// in bytes: on amd64, and on arm64 with pages of 4 KiB.
const hugePage = 2 << 20

// minHuge is the size from which on memory is put on huge pages, in bytes. To begin
// on one, it is allocated with one more, which the garbage collector counts.
const minHuge = 4 * hugePage

// MakeHuge returns n bytes of the Go heap that lie on huge pages, if the kernel has
// some: for memory that is large and copied often. Below 8 MiB it is make.
func MakeHuge(n int) []byte {
	if n < minHuge {
		return make([]byte, n)
	}
	b := make([]byte, n+hugePage)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (hugePage - 1)
	b = b[skip : skip+n : skip+n]
	sys.AdviseHuge(b[:n&^(hugePage-1)])
	return b
}

// CanRenew says that Renew works for large pieces of the Go heap, which share no page
// with others where pages are no larger than the 8 KiB of the heap's own.
var CanRenew = sys.CanLend

// Renew gives b, whole pages, new ones, which are zero. Those that the kernel holds,
// because b was lent to it, stay as they are.
func Renew(b []byte) error { return sys.NewPages(b) }
