package shmem

import (
	"sync/atomic"
	"unsafe"
)

// AtomicUint32 returns the first four bytes of b as an atomic word, sharing memory. It is false if b is shorter or not
// aligned.
func AtomicUint32(b []byte) (*atomic.Uint32, bool) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < 4 || uintptr(p)%4 != 0 {
		return nil, false
	}
	return (*atomic.Uint32)(p), true
}

// AtomicUint64 returns the first eight bytes of b as an atomic word, sharing memory. It is false if b is shorter or
// not aligned to eight bytes.
func AtomicUint64(b []byte) (*atomic.Uint64, bool) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < 8 || uintptr(p)%8 != 0 {
		return nil, false
	}
	return (*atomic.Uint64)(p), true
}
