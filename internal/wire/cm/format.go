package cm

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	formatHeaderSize = 24
	formatFixed      = 16 // bytes behind the length word that every message has
)

// FormatType tells the messages of the format protocol apart (cm.md §6).
type FormatType uint32

// Types of format messages. SST peers send pushes only.
const (
	FormatQuery    FormatType = 0
	FormatResponse FormatType = 1
	FormatPush     FormatType = 2
)

// FormatMessage is the PBIO unit. A push says: records that begin with these 12
// bytes have this format. It precedes the first record of a format on each
// connection and in each direction (cm.md §6).
type FormatMessage struct {
	Type      FormatType
	Condition uint32 // copied from a query into its response; 0 in a push
	First     []byte // push, query: the format ID; response: the format body
	Second    []byte // push: the format body; else empty
}

// Push returns the push of a format body under its ID. Both slices are kept.
func Push(id, body []byte) FormatMessage {
	return FormatMessage{Type: FormatPush, First: id, Second: body}
}

func (FormatMessage) isUnit() {}

// Append writes the unit behind b.
//
//	wire: "PBIO" u32 | 16+p1+p2 u32 | type u32 | condition u32 | p1 u32 | p2 u32 | first | second (cm.md §6)
func (m FormatMessage) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, magicFormat)
	b = binary.LittleEndian.AppendUint32(b, uint32(formatFixed+len(m.First)+len(m.Second)))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Type))
	b = binary.LittleEndian.AppendUint32(b, m.Condition)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.First)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Second)))
	b = append(b, m.First...)
	return append(b, m.Second...)
}

// ParseFormatMessage decodes a PBIO unit and returns its size. Its slices lie
// inside b.
func ParseFormatMessage(b []byte) (FormatMessage, int, error) {
	if err := expect(b, formatHeaderSize, magicFormat, "format message"); err != nil {
		return FormatMessage{}, 0, err
	}
	m, p1, p2, err := parseFormatHeader(b)
	if err != nil {
		return FormatMessage{}, 0, err
	}
	end := formatHeaderSize + p1 + p2
	if len(b) < end {
		return FormatMessage{}, 0, truncated("format message", len(b), end)
	}
	m.split(b[formatHeaderSize:end:end], p1)
	return m, end, nil
}

// split cuts the payload of m, First taking p1 bytes.
func (m *FormatMessage) split(payload []byte, p1 int) {
	m.First, m.Second = payload[:p1:p1], payload[p1:]
}

// parseFormatHeader reads the 24 fixed bytes.
func parseFormatHeader(b []byte) (m FormatMessage, p1, p2 int, err error) {
	total := uint64(binary.LittleEndian.Uint32(b[4:]))
	first := uint64(binary.LittleEndian.Uint32(b[16:]))
	second := uint64(binary.LittleEndian.Uint32(b[20:]))
	m.Type = FormatType(binary.LittleEndian.Uint32(b[8:]))
	m.Condition = binary.LittleEndian.Uint32(b[12:])
	if total != formatFixed+first+second || total > math.MaxInt32 {
		return m, 0, 0, fmt.Errorf("%w: format message of %d bytes with parts of %d and %d", ErrMalformed, total, first, second)
	}
	if m.Type > FormatPush {
		return m, 0, 0, fmt.Errorf("%w: format message of type %d", ErrMalformed, uint32(m.Type))
	}
	return m, int(first), int(second), nil
}
