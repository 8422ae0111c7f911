package bp

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// formats is what was parsed of mmd.0: all formats so far, in file order.
type formats struct {
	tail    growing
	entries []bp5.FormatEntry
	known   map[[12]byte]error // what the decoder says of each format, nil if it took it
}

// update parses the entries that came since the last call.
func (x *formats) update() error {
	return x.tail.scan(func(b []byte) (int, int64, error) {
		entries, n, err := bp5.ParseMMD(b)
		for i := range entries {
			// Out of the window, which is large and would be kept alive.
			entries[i].Description = append([]byte(nil), entries[i].Description...)
		}
		x.entries = append(x.entries, entries...)
		if err != nil {
			return n, 0, fmt.Errorf("from %d: %w", x.tail.pos, err)
		}
		return n, entrySize(b[n:]), nil
	})
}

// entrySize returns the bytes of the incomplete entry at the front of b, 0 if
// its lengths are not there. Zeros in place of an entry are the end.
func entrySize(b []byte) int64 {
	const header = 16 // two lengths of 8 bytes
	if len(b) < header {
		return 0
	}
	id, desc := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if id == 0 && desc == 0 {
		return math.MaxInt64
	}
	return int64(header + id + desc) // ParseMMD has bounded both
}

// check makes sure that the formats of all records are known, and right: a file
// that was cut off between two entries shows in no other way.
func (x *formats) check(records [][]byte) error {
	// A step is refused as a whole: a reader must not see part of one.
	for _, rec := range records {
		id, ok := ffs.RecordID(rec)
		if !ok {
			continue // no record, as the decoder will find
		}
		bad, known := x.known[id]
		if !known {
			return fmt.Errorf("%s has no format %v: %w", formatsName, id, ErrIncomplete)
		}
		if bad != nil {
			return fmt.Errorf("%s: %w", formatsName, damaged(bad))
		}
	}
	return nil
}
