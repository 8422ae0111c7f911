package ffs

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/lookup3"
)

// IDLen is the length of a format ID in bytes.
const IDLen = 12

// ID names a format. It is computed from the format body, so equal formats have
// equal IDs everywhere; a receiver treats it as an opaque key.
type ID [IDLen]byte

// String returns the ID as 24 lower-case hexadecimal digits, the spelling that
// BP5 uses in field names.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads what String writes.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*IDLen {
		return id, fmt.Errorf("%w: ID %q has %d digits, want %d", ErrFormat, s, len(s), 2*IDLen)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("%w: ID %q: %w", ErrFormat, s, err)
	}
	return id, nil
}

// IDOf computes the ID of a format body (docs/wire/ffs.md §3):
//
//	2 u8 | length>>18 u8 | length>>2 u16 BE | hash1 u32 BE | hash2 u32 BE
//
// It hashes all of body, so padding behind it must have been cut off.
func IDOf(body []byte) ID {
	var id ID
	n := len(body)
	c, b := lookup3.Hash2(body)
	id[0] = 2 // version of the ID itself
	id[1] = byte(n >> 18)
	binary.BigEndian.PutUint16(id[2:], uint16(n>>2))
	binary.BigEndian.PutUint32(id[4:], c)
	binary.BigEndian.PutUint32(id[8:], b)
	return id
}

// RecordID returns the format ID at the front of a record; ok is false when rec
// is too short to have one.
func RecordID(rec []byte) (id ID, ok bool) {
	if len(rec) < IDLen {
		return ID{}, false
	}
	return ID(rec[:IDLen]), true
}
