package dp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weft-fabric/weft/fabric"
)

// Extent says that the bytes [Offset, Offset+Length) of a rank's data block lie at At
// of the memory that Key names.
type Extent struct {
	Offset, Length uint64
	Key            fabric.Key
	At             uint64
}

// ErrExtents says that a writer's list of extents makes no sense.
var ErrExtents = errors.New("malformed list of extents")

// ExtentSize is the length of one entry, in bytes. A list is entries and nothing else: the record around
// it says how long it is, and a layout that is not understood any more would come in a
// field of another name.
//
//	offset u64 | length u64 | key u64 | at u64, little-endian
//
// (docs/wire/sst.md "Additions").
const ExtentSize = 32

// maxOffset is where memory ends for sure, so that every length is an int.
const maxOffset = math.MaxInt64

// AppendExtents appends a list as it goes with the metadata of a step. Extents rise, do
// not overlap and are not empty; what is in no memory with a key is in none of them.
func AppendExtents(b []byte, list []Extent) []byte {
	b = slices.Grow(b, len(list)*ExtentSize)
	for _, x := range list {
		b = x.Append(b)
	}
	return b
}

// Append appends one entry of a list.
func (x Extent) Append(b []byte) []byte {
	for _, v := range [...]uint64{x.Offset, x.Length, uint64(x.Key), x.At} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// ParseExtents returns the list that b holds; nothing is an empty one. The error of a
// list that AppendExtents does not make says at which byte it is wrong, and wraps
// [ErrExtents].
func ParseExtents(b []byte) ([]Extent, error) {
	if len(b) < ExtentSize { // an empty list takes no memory
		return appendParsed(nil, b)
	}
	return appendParsed(make([]Extent, 0, len(b)/ExtentSize), b)
}

// appendParsed is ParseExtents into memory for several lists; on an error it appends
// nothing.
func appendParsed(list []Extent, b []byte) ([]Extent, error) {
	free := uint64(0) // where the last one ends
	parsed := list
	for at := 0; at < len(b); at += ExtentSize {
		if len(b)-at < ExtentSize {
			return list, fmt.Errorf("extent at byte %d: %d bytes of %d: %w", at, len(b)-at, ExtentSize, ErrExtents)
		}
		x := extentIn(b[at:])
		switch {
		case x.Length == 0:
			return list, fmt.Errorf("extent at byte %d: it is empty: %w", at, ErrExtents)
		case x.Offset < free:
			return list, fmt.Errorf("extent at byte %d: it begins at %d of the block, the one before it ends at %d: %w", at, x.Offset, free, ErrExtents)
		case !fits(x.Offset, x.Length) || !fits(x.At, x.Length):
			return list, fmt.Errorf("extent at byte %d: %d bytes at %d of the block, at %d of the memory: %w", at, x.Length, x.Offset, x.At, ErrExtents)
		}
		free = x.end()
		parsed = append(parsed, x)
	}
	return parsed, nil
}

func extentIn(b []byte) Extent {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i*8:]) }
	return Extent{Offset: word(0), Length: word(1), Key: fabric.Key(word(2)), At: word(3)}
}

// fits reports whether n bytes from off on end before all memory does.
func fits(off, n uint64) bool { return off <= maxOffset && n <= maxOffset-off }

// end is the first byte of the block behind the extent.
func (x Extent) end() uint64 { return x.Offset + x.Length }

// behind returns the index of the first extent that ends behind a byte: the one that
// the byte is in, if any is.
func behind(list []Extent, off uint64) int {
	i, _ := slices.BinarySearchFunc(list, off, func(x Extent, off uint64) int {
		if x.end() <= off {
			return -1
		}
		return 1
	})
	return i
}
