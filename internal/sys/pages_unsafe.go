package sys

import (
	"sync/atomic"
	"unsafe"
)

// Address is where b lies in this process, for a peer's ReadProcess and WriteProcess. It says nothing to the
// garbage collector: the caller keeps b alive as long as the peer may use the number.
func Address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// wholePages is b from the start of its first page, as madvise wants it. b is memory of a mapping, so all
// of that page is mapped.
func wholePages(b []byte, page int) []byte {
	p := unsafe.Pointer(unsafe.SliceData(b))
	before := int(uintptr(p) % uintptr(page))
	return unsafe.Slice((*byte)(unsafe.Add(p, -before)), before+len(b))
}

// word32 is the first four bytes of b, which are aligned to four.
func word32(b []byte) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[:4])))
}

// touch reads or writes a word of each page of b without changing it.
func touch(b []byte, page int, write bool) {
	b = wholePages(b, page)
	start := unsafe.Pointer(unsafe.SliceData(b))
	for off := 0; off < len(b); off += page {
		word := (*atomic.Uint32)(unsafe.Add(start, off)) // whole pages are mapped, so b may end inside of the word
		if write {
			word.Or(0)
		} else {
			word.Load()
		}
	}
}
