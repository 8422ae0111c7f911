package shmem

import "unsafe"

// Offset says where inner begins in outer, if all of it lies there. An empty inner lies nowhere.
func Offset(outer, inner []byte) (uint64, bool) {
	if len(inner) == 0 || len(outer) < len(inner) {
		return 0, false
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(inner))) - uintptr(unsafe.Pointer(unsafe.SliceData(outer)))
	return uint64(at), at <= uintptr(len(outer)-len(inner))
}
