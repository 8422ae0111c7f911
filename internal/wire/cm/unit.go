package cm

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Magics: the first 32-bit word of each unit, low byte masked off for the "CM?"
// ones, where it holds the checksum (cm.md §4).
const (
	magicData      uint32 = 0x434d4400 // "CMD", data message
	magicLong      uint32 = 0x434d4200 // "CMB", data message over 2 GiB, 2.11 and later
	magicAttrData  uint32 = 0x434d4100 // "CMA", data message with attributes
	magicHandshake uint32 = 0x434d4800 // "CMH", handshake
	magicFormat    uint32 = 0x5042494f // "PBIO", format protocol; all 32 bits count
	magicControl   uint32 = 0x434d4c00 // "CML", not used by SST
	magicProbe     uint32 = 0x434d5000 // "CMP", not used by SST
	magicEvent     uint32 = 0x45564300 // "EVC", not used by SST

	magicMask uint32 = 0xffffff00
)

// Unit is one of the things that follow each other in one direction of a
// connection: Data, LongData, AttrData, Handshake or FormatMessage.
type Unit interface {
	// Append writes the unit behind b.
	Append(b []byte) []byte
	isUnit()
}

// Record returns the FFS record of a data message of any form; ok is false for
// units that carry none.
func Record(u Unit) (record []byte, ok bool) {
	switch u := u.(type) {
	case Data:
		return u.Record, true
	case LongData:
		return u.Record, true
	case AttrData:
		return u.Record, true
	}
	return nil, false
}

// ParseUnit decodes the unit at the start of b and returns how many bytes it
// takes. The unit's slices lie inside b. A unit that is not whole gives
// io.ErrUnexpectedEOF.
func ParseUnit(b []byte) (Unit, int, error) {
	if len(b) < 4 {
		return nil, 0, short("magic", len(b), 4)
	}
	kind, err := kindOf(binary.LittleEndian.Uint32(b))
	if err != nil {
		return nil, 0, err
	}
	switch kind {
	case magicData:
		return boxed(ParseData(b))
	case magicLong:
		return boxed(ParseLongData(b))
	case magicAttrData:
		return boxed(ParseAttrData(b))
	case magicHandshake:
		return boxed(ParseHandshake(b))
	default:
		return boxed(ParseFormatMessage(b))
	}
}

// boxed turns a typed parse result into a Unit, nil on error.
func boxed[T Unit](u T, n int, err error) (Unit, int, error) {
	if err != nil {
		return nil, n, err
	}
	return u, n, nil
}

// kindOf returns the magic, without checksum, of the unit whose first word is
// word, or an error that says what the word is instead.
func kindOf(word uint32) (uint32, error) {
	if word == magicFormat {
		return magicFormat, nil
	}
	switch kind := word & magicMask; kind {
	case magicData, magicLong, magicAttrData, magicHandshake:
		return kind, nil
	case magicControl, magicProbe, magicEvent:
		return 0, fmt.Errorf("%w: magic %#08x", ErrUnsupported, word)
	}
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], word)
	if swapped(binary.BigEndian.Uint32(b[:])) {
		return 0, fmt.Errorf("%w: magic % x", ErrByteOrder, b)
	}
	return 0, fmt.Errorf("%w: % x (%q)", ErrMagic, b, b[:])
}

// swapped reports whether word, read in big-endian order, is a magic.
func swapped(word uint32) bool {
	switch word & magicMask {
	case magicData, magicLong, magicAttrData, magicHandshake, magicControl, magicProbe, magicEvent:
		return true
	}
	return word == magicFormat
}

// expect checks that b begins with a whole header of size bytes and the given
// magic, and names the unit in errors.
func expect(b []byte, size int, magic uint32, what string) error {
	if len(b) < 4 {
		return short(what+" header", len(b), size)
	}
	kind, err := kindOf(binary.LittleEndian.Uint32(b))
	if err != nil {
		return err
	}
	if kind != magic {
		return fmt.Errorf("%w: magic %#08x is not that of a %s", ErrMagic, binary.LittleEndian.Uint32(b), what)
	}
	if len(b) < size {
		return short(what+" header", len(b), size)
	}
	return nil
}

// truncated is the error of a unit whose header promises need bytes in all.
func truncated(what string, have, need int) error {
	return fmt.Errorf("cm: %s of %d bytes: %d are there: %w", what, need, have, io.ErrUnexpectedEOF)
}
