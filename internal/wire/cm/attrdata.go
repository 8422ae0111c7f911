package cm

import (
	"encoding/binary"
	"fmt"
)

const (
	attrDataHeaderSize = 16
	attrDataAlign      = 8 // the attribute block is rounded up to a multiple of it (cm.md §5.3)
)

// AttrData is the CMA unit: a data message with an attribute list in front of
// the record. SST never sends one; it is understood so that it can be skipped.
type AttrData struct {
	Attrs  []byte // the encoded list with its padding; ParseAttrs reads it
	Record []byte
}

func (AttrData) isUnit() {}

// Append writes the unit behind b, the attribute block padded with zeros to a
// multiple of 8, without a checksum. The record must not be longer than MaxData.
//
//	wire: "CMA" u32 | "CMA" u32 | record length i32 | attribute length u32 | attributes | record (cm.md §5.3)
func (d AttrData) Append(b []byte) []byte {
	pad := -len(d.Attrs) & (attrDataAlign - 1)
	b = binary.LittleEndian.AppendUint32(b, magicAttrData)
	b = binary.LittleEndian.AppendUint32(b, magicAttrData)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(d.Record)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(d.Attrs)+pad))
	b = append(b, d.Attrs...)
	b = appendZeros(b, pad)
	return append(b, d.Record...)
}

// ParseAttrData decodes a CMA unit and returns its size. Its slices lie inside
// b. The checksum is not looked at: what it covers is not known.
func ParseAttrData(b []byte) (AttrData, int, error) {
	if err := expect(b, attrDataHeaderSize, magicAttrData, "attribute data message"); err != nil {
		return AttrData{}, 0, err
	}
	attrs, record, err := attrDataLengths(b)
	if err != nil {
		return AttrData{}, 0, err
	}
	mid := attrDataHeaderSize + attrs
	end := mid + record
	if len(b) < end {
		return AttrData{}, 0, truncated("attribute data message", len(b), end)
	}
	return AttrData{Attrs: b[attrDataHeaderSize:mid:mid], Record: b[mid:end:end]}, end, nil
}

// attrDataLengths returns the two lengths of a CMA header.
func attrDataLengths(header []byte) (attrs, record int, err error) {
	again := binary.LittleEndian.Uint32(header[4:]) & magicMask
	n := int32(binary.LittleEndian.Uint32(header[8:]))
	a := int32(binary.LittleEndian.Uint32(header[12:]))
	if again != magicAttrData || n < 0 || a < 0 || a%attrDataAlign != 0 {
		return 0, 0, fmt.Errorf("%w: attribute data message % x", ErrMalformed, header[4:attrDataHeaderSize])
	}
	return int(a), int(n), nil
}
