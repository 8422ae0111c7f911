package shmem

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/sys"
)

var (
	// ErrBounds is a range that does not lie in its region, or a word that is not aligned there.
	ErrBounds = errors.New("shmem: outside of the region")
	// ErrReadOnly refuses to write a region that only others write.
	ErrReadOnly = errors.New("shmem: region is read-only")
)

// Region is memory that other processes may see: a mapping or a part of one, or plain memory in tests and
// within one process. Its methods check offsets, which may come from a peer. The zero value is empty. A region
// of a mapping must not be used after the mapping's Close.
type Region struct {
	bytes    []byte
	writable bool
}

// RegionOf is the memory of a mapping.
func RegionOf(m *sys.Mapping) Region { return Region{m.Bytes(), m.Writable()} }

// NewRegion is a region of memory of this process, aligned to 8 bytes, writable.
func NewRegion(b []byte) (Region, error) {
	if !aligned(b, 8) {
		return Region{}, fmt.Errorf("%w: memory that is not aligned to 8 bytes", ErrBounds)
	}
	return Region{b, true}, nil
}

// Len is the number of bytes.
func (r Region) Len() int { return len(r.bytes) }

// Writable says whether this process may write it. Words of a region that it may not write must only be
// loaded: a store kills the process.
func (r Region) Writable() bool { return r.writable }

// Bytes are the n bytes from off, without a copy. Others may change them at any time.
func (r Region) Bytes(off, n uint64) ([]byte, error) {
	if off > uint64(len(r.bytes)) || n > uint64(len(r.bytes))-off {
		return nil, fmt.Errorf("%w: %d bytes from %d of %d", ErrBounds, n, off, len(r.bytes))
	}
	return r.bytes[off : off+n : off+n], nil
}

// Sub is the region of the n bytes from off, a multiple of 8.
func (r Region) Sub(off, n uint64) (Region, error) {
	b, err := r.Bytes(off, n)
	if err == nil && off%8 != 0 {
		err = fmt.Errorf("%w: a part from %d, not a multiple of 8", ErrBounds, off)
	}
	if err != nil {
		return Region{}, err
	}
	return Region{b, r.writable}, nil
}

// Word64 is the shared word at off, a multiple of 8. It is checked here once; its use costs nothing more.
func (r Region) Word64(off uint64) (*atomic.Uint64, error) {
	b, err := r.word(off, 8)
	if err != nil {
		return nil, err
	}
	return word64(b, 0), nil
}

// Word32 is the shared word at off, a multiple of 4.
func (r Region) Word32(off uint64) (*atomic.Uint32, error) {
	b, err := r.word(off, 4)
	if err != nil {
		return nil, err
	}
	return word32(b, 0), nil
}

func (r Region) word(off, size uint64) ([]byte, error) {
	b, err := r.Bytes(off, size)
	if err == nil && !aligned(b, size) {
		err = fmt.Errorf("%w: a word of %d bytes at %d", ErrBounds, size, off)
	}
	return b, err
}

// CopyOut fills dst with the bytes from off.
func (r Region) CopyOut(dst []byte, off uint64) error {
	b, err := r.Bytes(off, uint64(len(dst)))
	copy(dst, b)
	return err
}

// CopyIn stores src at off.
func (r Region) CopyIn(off uint64, src []byte) error {
	if !r.writable {
		return ErrReadOnly
	}
	b, err := r.Bytes(off, uint64(len(src)))
	copy(b, src)
	return err
}
