package cm

import (
	"encoding/binary"
	"fmt"
	"math"
)

const longHeaderSize = 16

// LongData is the CMB unit: a data message whose record is longer than MaxData.
// 2.10.x has no working equivalent: send it no such record (cm.md §5.2, §9).
type LongData struct {
	Record []byte
}

func (LongData) isUnit() {}

// Append writes the unit behind b. There is no checksum.
//
//	wire: "CMB" u32 | length, high half u32 | length, low half u32 | attribute length u32=0 | record (cm.md §5.2)
func (d LongData) Append(b []byte) []byte {
	b = appendLongHeader(b, len(d.Record))
	return append(b, d.Record...)
}

// appendLongHeader writes the header for a record of n bytes.
func appendLongHeader(b []byte, n int) []byte {
	b = binary.LittleEndian.AppendUint32(b, magicLong)
	b = binary.LittleEndian.AppendUint32(b, uint32(uint64(n)>>32))
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	return binary.LittleEndian.AppendUint32(b, 0)
}

// ParseLongData decodes a CMB unit and returns its size. The record lies inside
// b and may be shorter than MaxData.
func ParseLongData(b []byte) (LongData, int, error) {
	if err := expect(b, longHeaderSize, magicLong, "long data message"); err != nil {
		return LongData{}, 0, err
	}
	n, err := longLength(b)
	if err != nil {
		return LongData{}, 0, err
	}
	if len(b)-longHeaderSize < n {
		return LongData{}, 0, truncated("long data message", len(b), longHeaderSize+n)
	}
	end := longHeaderSize + n
	return LongData{Record: b[longHeaderSize:end:end]}, end, nil
}

// longLength returns the record length of a CMB header.
func longLength(header []byte) (int, error) {
	n := uint64(binary.LittleEndian.Uint32(header[4:]))<<32 | uint64(binary.LittleEndian.Uint32(header[8:]))
	if n > math.MaxInt64-longHeaderSize {
		return 0, fmt.Errorf("%w: long data message of length %#x", ErrMalformed, n)
	}
	if attrs := binary.LittleEndian.Uint32(header[12:]); attrs != 0 {
		return 0, fmt.Errorf("%w: long data message with %d bytes of attributes", ErrMalformed, attrs)
	}
	return int(n), nil
}
