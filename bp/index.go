package bp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/weft-fabric/weft/internal/wire/bp5"
)

// index is what was parsed of md.idx. It holds positions, not the records
// themselves: with thousands of writers one record is larger than all the rest.
type index struct {
	header bp5.IndexHeader
	tail   growing
	cur    *mapRef // the newest writer map
	steps  []stepRef
	most   int   // the largest number of writers of any step
	damage error // why nothing behind tail.pos can be parsed
}

// mapRef is a writer map, by its place in md.idx.
type mapRef struct {
	pos     int64
	size    int
	writers int
}

// stepRef is a step, by the place of its record in md.idx.
type stepRef struct {
	pos              int64
	size             int
	wmap             *mapRef
	metaPos, metaLen uint64 // range of md.0
}

// openIndex parses the header; the records are left to update.
func openIndex(f file) (*index, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	// A short file is given to the parser as it is: it tells a young dataset from a
	// foreign file.
	head := make([]byte, min(size, bp5.IndexHeaderSize))
	if err := readFull(f, head, 0); err != nil {
		return nil, err
	}
	h, err := bp5.ParseIndexHeader(head)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%s has %d bytes: %w", indexName, size, ErrEmpty)
	case errors.Is(err, bp5.ErrNotBP):
		return nil, fmt.Errorf("%w: %w", ErrNotBP, err)
	case errors.Is(err, ErrVersion):
		version := fmt.Sprint(h.BPVersion)
		if h.BPVersion == bp5.BPVersion {
			version = fmt.Sprintf("%d.%d", h.BPVersion, h.BPMinor)
		}
		return nil, &plainError{fmt.Sprintf("a file of BP version %s cannot be read, only of BP5 (version %d.%d)", version, bp5.BPVersion, bp5.BPMinor), err}
	case err != nil:
		return nil, err
	}
	return &index{header: h, tail: growing{f: f, pos: bp5.IndexHeaderSize}}, nil
}

// update parses the records that came since the last call.
func (x *index) update() error {
	// Records have no mark to find the next one by: behind damage nothing is sure.
	if x.damage != nil {
		return nil
	}
	err := x.tail.scan(x.parse)
	if errors.Is(err, bp5.ErrBadFile) {
		x.damage = fmt.Errorf("%s: %w", indexName, err)
		return nil
	}
	return err
}

// parse is the scanner of growing: it installs the records at the front of b.
func (x *index) parse(b []byte) (used int, need int64, err error) {
	for {
		writers := 0
		if x.cur != nil {
			writers = x.cur.writers
		}
		rec, n, err := bp5.ParseIndexRecord(b[used:], writers)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return used, recordSize(b[used:]), nil
		}
		if err != nil {
			return used, 0, fmt.Errorf("at %d: %w", x.tail.pos+int64(used), err)
		}
		x.install(rec, x.tail.pos+int64(used), n)
		used += n
	}
}

// install notes where a record is. The parser has made sure that a step
// record never comes before a writer map.
func (x *index) install(rec bp5.IndexRecord, pos int64, n int) {
	switch rec := rec.(type) {
	case bp5.WriterMap:
		x.cur = &mapRef{pos: pos, size: n, writers: int(rec.Writers)}
	case bp5.StepIndex:
		x.steps = append(x.steps, stepRef{pos: pos, size: n, wmap: x.cur, metaPos: rec.MetaPos, metaLen: rec.MetaLen})
		x.most = max(x.most, x.cur.writers)
	}
}

// recordSize returns the bytes of the incomplete record at the front of b, 0
// if its header is not there. Zeros in place of a record are the end.
func recordSize(b []byte) int64 {
	const header = 9 // type u8, length of the body u64
	if len(b) > 0 && b[0] == 0 {
		return math.MaxInt64
	}
	if len(b) < header {
		return 0
	}
	return header + int64(binary.LittleEndian.Uint64(b[1:])) // ParseIndexRecord has bounded it
}

// active looks whether the writer's mark is still set.
func (x *index) active() (bool, error) {
	var b [1]byte
	err := readFull(x.tail.f, b[:], bp5.IndexActiveOffset)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("%s lost its header: %w", indexName, ErrReplaced)
	}
	if err != nil {
		return false, err
	}
	return b[0] == 1, nil
}

// stepRecord reads the record of a step again.
func (x *index) stepRecord(ref stepRef) (bp5.StepIndex, error) {
	rec, err := x.record(ref.pos, ref.size, ref.wmap.writers)
	if s, ok := rec.(bp5.StepIndex); ok {
		return s, nil
	}
	return bp5.StepIndex{}, errors.Join(err, changed(ref.pos))
}

// mapRecord reads a writer map again.
func (x *index) mapRecord(ref *mapRef) (bp5.WriterMap, error) {
	rec, err := x.record(ref.pos, ref.size, 0)
	if m, ok := rec.(bp5.WriterMap); ok && int(m.Writers) == ref.writers {
		return m, nil
	}
	return bp5.WriterMap{}, errors.Join(err, changed(ref.pos))
}

// record reads and parses one record again. Its size was taken from the file
// before, so it is there.
func (x *index) record(pos int64, size, writers int) (bp5.IndexRecord, error) {
	// Of the size that was there when the record was parsed, so no claim.
	b := make([]byte, size)
	if err := readFull(x.tail.f, b, pos); err != nil {
		return nil, err
	}
	rec, _, err := bp5.ParseIndexRecord(b, writers)
	return rec, err
}

// changed says that somebody wrote over the index.
func changed(pos int64) error {
	return fmt.Errorf("%s: record at %d is not what it was: %w", indexName, pos, ErrReplaced)
}
