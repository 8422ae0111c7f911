package ping

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Each transfer has the same bytes, which tell their places, but for the first and
// the last ones, which tell the number of the transfer. These are written each time, and checked
// where the side that gets them is told of it; the others are looked at once, at the end.

// ErrData says that what arrived is not what was sent.
var ErrData = errors.New("ping: wrong data")

// edge is how many bytes at each end tell the number.
func edge(n int) int {
	if n < 16 {
		return min(n, 1)
	}
	return 8
}

// fill writes the bytes that stay.
func fill(b []byte) { fillFrom(b, 0) }

// fillFrom is fill for the bytes from a place on, a multiple of 8.
func fillFrom(b []byte, from int) {
	var w [8]byte
	for at := 0; at < len(b); at += 8 {
		binary.LittleEndian.PutUint64(w[:], place(from+at))
		copy(b[at:], w[:])
	}
}

// place is the word at an offset, in which every byte differs from its neighbours'.
func place(at int) uint64 { return (uint64(at) + 1) * 0x9e3779b97f4a7c15 }

// stamp writes the number of a transfer into both ends.
func stamp(b []byte, i uint64) {
	switch n := len(b); {
	case n >= 16:
		binary.LittleEndian.PutUint64(b, i)
		binary.LittleEndian.PutUint64(b[n-8:], ^i)
	case n > 0:
		b[0], b[n-1] = byte(i), byte(i)
	}
}

// stamped checks both ends.
func stamped(b []byte, i uint64) bool {
	switch n := len(b); {
	case n >= 16:
		return binary.LittleEndian.Uint64(b) == i && binary.LittleEndian.Uint64(b[n-8:]) == ^i
	case n > 0:
		return b[0] == byte(i) && b[n-1] == byte(i)
	}
	return true
}

// checkEdges is stamped with an error.
func checkEdges(what Op, b []byte, i uint64) error {
	if stamped(b, i) {
		return nil
	}
	n := edge(len(b))
	return fmt.Errorf("%w: %s %d of %d bytes begins with %x and ends with %x", ErrData, what, i, len(b), b[:n], b[len(b)-n:])
}

// spoil makes every byte wrong, as good as.
func spoil(b []byte) {
	b[0] = 0xff
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// reference is a transfer as it must be.
type reference []byte

func newReference(size int) reference {
	b := make([]byte, size)
	fill(b)
	return b
}

// check looks at every byte of a transfer.
func (r reference) check(what Op, b []byte, i uint64) error {
	stamp(r, i)
	if bytes.Equal(r, b) {
		return nil
	}
	return checkAll(what, b, i)
}

// checkAll is check, slow, with an error that says where.
func checkAll(what Op, b []byte, i uint64) error {
	if err := checkEdges(what, b, i); err != nil {
		return err
	}
	var w [8]byte
	from, to := edge(len(b)), len(b)-edge(len(b))
	for at := from &^ 7; at < to; at += 8 {
		binary.LittleEndian.PutUint64(w[:], place(at))
		for k := max(at, from); k < min(at+8, to); k++ {
			if b[k] != w[k-at] {
				return fmt.Errorf("%w: byte %d of %s %d of %d bytes is %#x, not %#x", ErrData, k, what, i, len(b), b[k], w[k-at])
			}
		}
	}
	return nil
}

// sum reads every byte, as fast as a program that works on the data in place.
func sum(b []byte) uint64 {
	var s [4]uint64
	for ; len(b) >= 32; b = b[32:] {
		s[0] += binary.LittleEndian.Uint64(b)
		s[1] += binary.LittleEndian.Uint64(b[8:])
		s[2] += binary.LittleEndian.Uint64(b[16:])
		s[3] += binary.LittleEndian.Uint64(b[24:])
	}
	for _, c := range b {
		s[0] += uint64(c)
	}
	return s[0] + s[1] + s[2] + s[3]
}
