package carrier

import (
	"bytes"
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// formatTable holds the formats that one peer has pushed. It belongs to the
// link's reading goroutine.
type formatTable struct {
	byID     map[ffs.ID]*ffs.Format
	bytes    int // of the bodies
	max      int
	maxBytes int
}

// push takes in a format message of the peer. Queries and responses are of no
// use to a peer that pushes everything, and are skipped (docs/wire/cm.md §6).
func (t *formatTable) push(m cm.FormatMessage) error {
	if m.Type != cm.FormatPush {
		return nil
	}
	var id ffs.ID
	if copy(id[:], m.First) != len(id) || len(m.First) != len(id) {
		return fmt.Errorf("%w: format ID of %d bytes", ErrProtocol, len(m.First))
	}
	if known, ok := t.byID[id]; ok {
		if !bytes.Equal(known.Body(), m.Second) {
			return fmt.Errorf("%w: format %v (%s) pushed again with another body", ErrProtocol, id, known.Name())
		}
		return nil
	}
	return t.add(id, m.Second)
}

// add enters a format that is new. The ID must be the one that follows from the
// body: whoever decodes may remember formats by it.
func (t *formatTable) add(id ffs.ID, body []byte) error {
	if len(t.byID) >= t.max || t.bytes+len(body) > t.maxBytes {
		return fmt.Errorf("%w: more than %d formats or %d bytes of them", ErrLimit, t.max, t.maxBytes)
	}
	f, n, err := ffs.Parse(body)
	if err != nil {
		return fmt.Errorf("format %v: %w", id, err)
	}
	if n != len(body) || f.ID() != id {
		return fmt.Errorf("%w: format %v: its body of %d bytes has %d and ID %v", ErrProtocol, id, len(body), n, f.ID())
	}
	if t.byID == nil {
		t.byID = make(map[ffs.ID]*ffs.Format)
	}
	t.byID[id] = f
	t.bytes += len(body)
	return nil
}

// of returns the format of a record.
func (t *formatTable) of(record []byte) (*ffs.Format, error) {
	id, ok := ffs.RecordID(record)
	if !ok {
		return nil, fmt.Errorf("%w: record of %d bytes has no format ID", ErrProtocol, len(record))
	}
	f, ok := t.byID[id]
	if !ok {
		return nil, fmt.Errorf("%w: ID %v, record of %d bytes", ErrUnknownFormat, id, len(record))
	}
	return f, nil
}
