package shmem

import (
	"sync/atomic"
	"unsafe"
)

// aligned says whether b begins at a multiple of to.
func aligned(b []byte, to uint64) bool {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))%to == 0
}

// word64 is the word at off of b, which panics if b ends before.
//
// Preconditions: it is aligned to 8.
func word64(b []byte, off uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b[off : off+8]))) // no read of b: others store there
}

// word32 is the word at off of b, which panics if b ends before.
//
// Preconditions: it is aligned to 4.
func word32(b []byte, off uint64) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[off : off+4])))
}
