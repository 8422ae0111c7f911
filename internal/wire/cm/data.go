package cm

import (
	"encoding/binary"
	"fmt"
	"math"
)

const dataHeaderSize = 8

// MaxData is the longest record that a CMD unit can carry, in bytes: its length
// is a signed 32-bit number (cm.md §5.1).
const MaxData = math.MaxInt32

// Data is the CMD unit: a data message, one FFS record that begins with its
// 12-byte format ID.
type Data struct {
	Record []byte
}

func (Data) isUnit() {}

// Append writes the unit behind b, with the checksum that a real peer would
// send. A record longer than MaxData goes out in the form of LongData.
//
//	wire: "CMD" + checksum u32 | length i32 | record (cm.md §5.1)
func (d Data) Append(b []byte) []byte {
	b = AppendDataHeader(b, [][]byte{d.Record})
	return append(b, d.Record...)
}

// ParseData decodes a CMD unit and returns its size. The record lies inside b.
// With ErrChecksum the size is that of the whole unit, so that it can be skipped.
func ParseData(b []byte) (Data, int, error) {
	if err := expect(b, dataHeaderSize, magicData, "data message"); err != nil {
		return Data{}, 0, err
	}
	n, err := dataLength(b)
	if err != nil {
		return Data{}, 0, err
	}
	end := dataHeaderSize + n
	if len(b) < end {
		return Data{}, 0, truncated("data message", len(b), end)
	}
	record := b[dataHeaderSize:end:end]
	if !checksumOK(b[0], b[4:dataHeaderSize], record) {
		return Data{}, end, fmt.Errorf("%w: data message of %d bytes", ErrChecksum, end)
	}
	return Data{Record: record}, end, nil
}

// dataLength returns the record length of a CMD header.
func dataLength(header []byte) (int, error) {
	n := int32(binary.LittleEndian.Uint32(header[4:]))
	if n < 0 {
		return 0, fmt.Errorf("%w: data message of length %d", ErrMalformed, n)
	}
	return int(n), nil
}
