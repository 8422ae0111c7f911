package shmem

import "unsafe"

// Bytes returns the memory of s as bytes. Both name the same memory.
//
// Preconditions: T has no pointers.
func Bytes[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// As returns b as a slice of T, sharing memory. It is false if b is not aligned
// for T or not a whole number of elements; the caller then copies.
//
// Preconditions: T has no pointers, and every bit pattern is a valid T.
func As[T any](b []byte) ([]T, bool) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(b) == 0 {
		return nil, true
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if size == 0 || len(b)%size != 0 || uintptr(p)%unsafe.Alignof(zero) != 0 {
		return nil, false
	}
	return unsafe.Slice((*T)(p), len(b)/size), true
}
