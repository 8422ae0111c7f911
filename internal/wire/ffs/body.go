package ffs

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// A format body is an outer header and the descriptions of the structs, the
// top one first (docs/wire/ffs.md §2). Little-endian but for the two halves of
// each length:
//
//	outer:  length low u16 BE | byte order u8 | version u8 | subformats u8 |
//	        0 u8 | length high u16 BE
//	struct: length low u16 BE | version u8 | byte order u8 | name u32 |
//	        fields u32 | record length u32 | pointer size u8 | header size u8 |
//	        float format u16 | info low u16 | column major u8 | alignment u8 |
//	        length high u16 BE | info high u16
//	field:  name u32 | type u32 | size u32 | offset u32
//
// then the strings, zeros up to a multiple of 4, and the optional-info table,
// which is only its terminator. Name, type and info are offsets from the start
// of the struct's description.
const (
	outerLen  = 8
	structLen = 28
	entryLen  = 16
	infoLen   = 12 // one entry of the optional-info table, or its terminator

	bodyVersion = 2
	orderLittle = 0
	floatLittle = 2 // IEEE 754, little-endian
	pointerSize = 8
)

// appendBody appends the format body of checked descriptions.
func appendBody(dst []byte, structs []Struct) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, orderLittle, bodyVersion, byte(len(structs)-1), 0, 0, 0)
	var err error
	for i := range structs {
		if dst, err = appendStruct(dst, &structs[i]); err != nil {
			return nil, err
		}
	}
	n := len(dst) - start // the length comes last, and stands first
	if n > math.MaxUint32 {
		return nil, fmt.Errorf("%w: a body of %d bytes", ErrFormat, n)
	}
	binary.BigEndian.PutUint16(dst[start:], uint16(n))
	binary.BigEndian.PutUint16(dst[start+6:], uint16(n>>16))
	return dst, nil
}

// appendStruct appends one struct description. Its length and the offsets of
// its strings are computed first, so that it is written in one go.
func appendStruct(dst []byte, s *Struct) ([]byte, error) {
	size, err := stringsLen(s)
	if err != nil {
		return nil, err
	}
	at := structLen + entryLen*len(s.Fields) // of the next string
	info := (at + size + 3) &^ 3             // the table behind the strings is aligned to 4
	n := info + infoLen
	if n > math.MaxUint32 {
		return nil, fmt.Errorf("%w: struct %q needs %d bytes", ErrFormat, clip(s.Name), n)
	}
	if s.Align < 0 || s.Align > math.MaxUint8 {
		return nil, fmt.Errorf("%w: struct %q: alignment %d", ErrFormat, clip(s.Name), s.Align)
	}
	le, be := binary.LittleEndian, binary.BigEndian
	start := len(dst)
	dst = be.AppendUint16(dst, uint16(n))
	dst = append(dst, bodyVersion, orderLittle)
	dst = le.AppendUint32(dst, uint32(at))
	dst = le.AppendUint32(dst, uint32(len(s.Fields)))
	dst = le.AppendUint32(dst, uint32(s.RecordLen))
	dst = append(dst, pointerSize, structLen)
	dst = le.AppendUint16(dst, floatLittle)
	dst = le.AppendUint16(dst, uint16(info))
	dst = append(dst, 0, byte(s.Align))
	dst = be.AppendUint16(dst, uint16(n>>16))
	dst = le.AppendUint16(dst, uint16(info>>16))

	at += len(s.Name) + 1
	for i := range s.Fields {
		f := &s.Fields[i]
		dst = le.AppendUint32(dst, uint32(at))
		at += len(f.Name) + 1
		dst = le.AppendUint32(dst, uint32(at))
		at += len(f.Type) + 1
		dst = le.AppendUint32(dst, uint32(f.Size))
		dst = le.AppendUint32(dst, uint32(f.Offset))
	}
	dst = append(append(dst, s.Name...), 0)
	for i := range s.Fields {
		dst = append(append(dst, s.Fields[i].Name...), 0)
		dst = append(append(dst, s.Fields[i].Type...), 0)
	}
	return append(dst, make([]byte, start+n-len(dst))...), nil
}

// stringsLen returns the bytes that the struct's strings take and refuses
// those that a NUL would cut.
func stringsLen(s *Struct) (int, error) {
	if strings.IndexByte(s.Name, 0) >= 0 {
		return 0, fmt.Errorf("%w: NUL in the struct name %q", ErrFormat, clip(s.Name))
	}
	n := len(s.Name) + 1
	for i := range s.Fields {
		f := &s.Fields[i]
		if strings.IndexByte(f.Name, 0) >= 0 || strings.IndexByte(f.Type, 0) >= 0 {
			return 0, fmt.Errorf("%w: NUL in field %d %q of struct %q", ErrFormat, i, clip(f.Name), clip(s.Name))
		}
		n += len(f.Name) + len(f.Type) + 2
	}
	return n, nil
}
