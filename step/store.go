package step

import "errors"

// ErrStoreFull is wrapped by the error of an allocation that would exceed a
// limit in bytes: of a [HeapPool], or EncoderConfig.MaxBytes.
var ErrStoreFull = errors.New("block store is full")

// Store is the memory of one writer rank's step: one contiguous range of bytes
// [0, Size()), filled front to back. What it hands out never moves and stays
// valid until Reset.
//
// A Store belongs to one goroutine at a time while it is filled. Once nothing
// is allocated any more, Size and Slices are safe for concurrent use until
// Reset.
type Store interface {
	// Alloc rounds Size up to a multiple of align (any number from 1 on, not
	// only powers of two), adds n bytes, and returns where they lie and their
	// memory. The bytes rounded over are zero; the n bytes hold anything. If
	// align is a power of two up to 64, the memory is aligned to it too. n may
	// be 0: then only the rounding is done.
	Alloc(n, align int) (off uint64, b []byte, err error)

	// Size returns the number of bytes allocated so far, gaps included.
	Size() uint64

	// Slices returns the n bytes from off on, in pieces that name the store's
	// own memory, in order, none empty. A range outside [0, Size()) is an
	// error that wraps ErrSelection.
	Slices(off, n uint64) ([][]byte, error)

	// Reset empties the store, and ends the life of all memory it handed out.
	Reset()
}
