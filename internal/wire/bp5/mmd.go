package bp5

import (
	"encoding/binary"
	"fmt"
)

const (
	entryHeaderSize   = 16      // u64 length of the id, u64 length of the description
	formatIDSize      = 12      // docs/wire/bp5.md §1.2
	descriptionHeader = 8       // docs/wire/bp5.md §1.1
	maxDescription    = 1 << 32 // a description states its own length in 32 bits
)

// FormatEntry is one entry of mmd.0: an FFS format and the id by which records name it.
//
// wire: id length u64 (12) | description length u64 | id | description, zero-padded to 8 since ADIOS2 2.11 (docs/wire/bp5.md §6.5)
type FormatEntry struct {
	ID          [formatIDSize]byte
	Description []byte // without the padding
}

// ParseMMD parses the entries at the front of b, which is mmd.0 or what was added to it since the last call. n is the
// number of bytes that they take; an incomplete entry at the end is left for the next call and is no error. The
// descriptions point into b. The same id may come again: appending writers repeat their formats.
//
// On an error, which is always ErrBadFile, the entries in front of the damage are returned too, and n is its position.
func ParseMMD(b []byte) (entries []FormatEntry, n int, err error) {
	for {
		e, size, err := parseFormatEntry(b[n:])
		if err != nil {
			return entries, n, fmt.Errorf("bp5: mmd.0 entry at %d: %w", n, err)
		}
		if size == 0 {
			return entries, n, nil
		}
		entries = append(entries, e)
		n += size
	}
}

// parseFormatEntry returns size 0 for an entry that is not complete.
func parseFormatEntry(b []byte) (e FormatEntry, size int, err error) {
	if len(b) < entryHeaderSize {
		return e, 0, nil
	}
	idLen, descLen := word(b, 0), word(b, 1)
	if idLen == 0 && descLen == 0 {
		return e, 0, nil // zeros that a file system shows before the data
	}
	if idLen != formatIDSize {
		return e, 0, fmt.Errorf("format id of %d bytes, want %d: %w", idLen, formatIDSize, ErrBadFile)
	}
	if descLen < descriptionHeader || descLen >= maxDescription+8 {
		return e, 0, fmt.Errorf("format description of %d bytes: %w", descLen, ErrBadFile)
	}
	b = b[entryHeaderSize:]
	if uint64(len(b)) < formatIDSize+descLen {
		return e, 0, nil
	}
	copy(e.ID[:], b)
	e.Description, err = trimDescription(b[formatIDSize : formatIDSize+descLen])
	return e, entryHeaderSize + formatIDSize + int(descLen), err
}

// trimDescription cuts the padding off: the description's own length counts, not that of the entry.
func trimDescription(b []byte) ([]byte, error) {
	n := uint64(binary.BigEndian.Uint16(b)) | uint64(binary.BigEndian.Uint16(b[6:]))<<16
	if n < descriptionHeader || n > uint64(len(b)) {
		return nil, fmt.Errorf("format description says %d bytes, its entry %d: %w", n, len(b), ErrBadFile)
	}
	return b[:n:n], nil
}

// Append appends the entry to b, with the description padded to a multiple of 8 as newer ADIOS2 does. The description
// must be a valid one: it begins with its own length.
func (e FormatEntry) Append(b []byte) []byte {
	pad := padding(len(e.Description))
	b = appendWords(b, formatIDSize, uint64(len(e.Description)+pad))
	b = append(b, e.ID[:]...)
	return appendZeros(append(b, e.Description...), pad)
}

// padding is the number of bytes from n to the next multiple of 8.
func padding(n int) int { return -n & 7 }

// appendZeros appends n zero bytes; the compiler makes it without a temporary slice.
func appendZeros(b []byte, n int) []byte { return append(b, make([]byte, n)...) }
