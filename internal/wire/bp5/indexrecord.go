package bp5

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Record types of md.idx (docs/wire/bp5.md §6.3).
const (
	recordWriterMap = 'w'
	recordStep      = 's'
)

const (
	recordHeaderSize = 9 // u8 type, u64 length of the body
	writerMapWords   = 3 // words in front of the map itself
	stepWords        = 3 // words in front of the pieces

	// maxRecordBody bounds the length that a record may claim. A longer claim is damage, and without a bound a reader
	// of a live dataset would wait for it for ever. One step of a million writers with 60 flushes stays below.
	maxRecordBody = 1 << 31
)

// UnknownSize is the size of a writer's last piece: the index gives only its position.
const UnknownSize = ^uint64(0)

// IndexRecord is one record of md.idx: a WriterMap, a StepIndex or a SkippedRecord.
type IndexRecord interface{ indexRecord() }

// WriterMap says how many writers the step records after it have and which subfile each writes to. It holds until the
// next one.
//
// wire: 'w' | body length u64 | writers u64 | aggregators u64 | subfiles u64 | subfile u64 per writer
type WriterMap struct {
	Writers     uint64   // at least 1
	Aggregators uint64   // of no use to a reader
	Subfiles    uint64   // number of files data.N
	Subfile     []uint64 // number of the subfile by writer rank; each less than Subfiles
}

// StepIndex says where a step is: its metadata in md.0 and the data of each writer in the writer's subfile.
//
// wire: 's' | body length u64 | position u64 | length u64 | flushes F u64 | per writer: F × (position u64, size u64), position u64
type StepIndex struct {
	MetaPos, MetaLen uint64    // range of md.0
	Flushes          int       // number of pieces in front of the last one, the same for all writers
	Pieces           [][]Piece // by writer rank; Flushes+1 each, in the order of the data
}

// Piece is a range of a subfile, in bytes. The last piece of a writer has UnknownSize.
type Piece struct{ Pos, Size uint64 }

// SkippedRecord is a record of a type that this package does not know.
type SkippedRecord struct {
	Type uint8
	Size uint64 // of the body
}

// The three kinds of records, and no others.
func (WriterMap) indexRecord()     {}
func (StepIndex) indexRecord()     {}
func (SkippedRecord) indexRecord() {}

// ParseIndexRecord parses the record at the front of b and returns the number of bytes it takes. writers is the writer
// count of the newest WriterMap, or 0 when there was none.
//
// A record that is not complete gives io.ErrUnexpectedEOF and n == 0: it is not there yet, look again when the file has
// grown. So do leading zero bytes, which a file system may show before the data. Any other error is ErrBadFile, and is
// reported as soon as it can be seen.
func ParseIndexRecord(b []byte, writers int) (rec IndexRecord, n int, err error) {
	if len(b) < recordHeaderSize || b[0] == 0 {
		return nil, 0, fmt.Errorf("bp5: index record: %w", io.ErrUnexpectedEOF)
	}
	typ, size := b[0], binary.LittleEndian.Uint64(b[1:])
	if size > maxRecordBody {
		return nil, 0, fmt.Errorf("bp5: index record %q claims %d bytes: %w", typ, size, ErrBadFile)
	}
	body := b[recordHeaderSize:]
	n = recordHeaderSize + int(size)
	whole := len(b) >= n
	if whole {
		body = b[recordHeaderSize:n]
	}
	switch typ {
	case recordWriterMap:
		rec, err = parseWriterMap(body, size, whole)
	case recordStep:
		rec, err = parseStepIndex(body, size, whole, writers)
	default:
		rec = SkippedRecord{Type: typ, Size: size}
	}
	if err == nil && !whole {
		err = fmt.Errorf("bp5: index record %q has %d of %d bytes: %w", typ, len(b), n, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, 0, err
	}
	return rec, n, nil
}

// parseWriterMap checks what is there of the body; it builds the map only when the body is whole.
func parseWriterMap(body []byte, size uint64, whole bool) (IndexRecord, error) {
	if size%8 != 0 || size < 8*(writerMapWords+1) {
		return nil, fmt.Errorf("bp5: writer map of %d bytes: %w", size, ErrBadFile)
	}
	if len(body) < 8*writerMapWords {
		return nil, nil
	}
	m := WriterMap{Writers: word(body, 0), Aggregators: word(body, 1), Subfiles: word(body, 2)}
	if m.Writers != size/8-writerMapWords {
		return nil, fmt.Errorf("bp5: writer map of %d bytes for %d writers: %w", size, m.Writers, ErrBadFile)
	}
	if !whole {
		return nil, nil
	}
	// The body is whole: as many words are there.
	m.Subfile = make([]uint64, m.Writers)
	for i := range m.Subfile {
		m.Subfile[i] = word(body, writerMapWords+i)
		if m.Subfile[i] >= m.Subfiles {
			return nil, fmt.Errorf("bp5: writer map: writer %d has subfile %d of %d: %w", i, m.Subfile[i], m.Subfiles, ErrBadFile)
		}
	}
	return m, nil
}

// parseStepIndex checks what is there of the body; it builds the pieces only when the body is whole.
func parseStepIndex(body []byte, size uint64, whole bool, writers int) (IndexRecord, error) {
	if writers <= 0 {
		return nil, fmt.Errorf("bp5: step record before a writer map: %w", ErrBadFile)
	}
	// The number of flushes follows from the length; that keeps every product in range.
	pairs := size/8 - stepWords
	if size%8 != 0 || size < 8*(stepWords+1) || pairs%uint64(writers) != 0 || pairs/uint64(writers)%2 == 0 {
		return nil, fmt.Errorf("bp5: step record of %d bytes for %d writers: %w", size, writers, ErrBadFile)
	}
	flushes := (pairs/uint64(writers) - 1) / 2
	if len(body) < 8*stepWords {
		return nil, nil
	}
	s := StepIndex{MetaPos: word(body, 0), MetaLen: word(body, 1), Flushes: int(flushes)}
	if f := word(body, 2); f != flushes {
		return nil, fmt.Errorf("bp5: step record says %d flushes, its length says %d: %w", f, flushes, ErrBadFile)
	}
	if s.MetaLen > math.MaxInt64 || s.MetaPos > math.MaxInt64-s.MetaLen {
		return nil, fmt.Errorf("bp5: step record: %d bytes of md.0 at %d: %w", s.MetaLen, s.MetaPos, ErrBadFile)
	}
	if whole {
		s.Pieces = parsePieces(body[8*stepWords:], writers, s.Flushes)
	}
	return s, nil
}

// parsePieces expects exactly writers × (2·flushes + 1) words.
func parsePieces(b []byte, writers, flushes int) [][]Piece {
	// One allocation for all writers: there may be very many, with one piece each.
	all := make([]Piece, writers*(flushes+1))
	out := make([][]Piece, writers)
	i := 0
	for w := range out {
		out[w], all = all[:flushes+1:flushes+1], all[flushes+1:]
		for f := range flushes {
			out[w][f] = Piece{Pos: word(b, i), Size: word(b, i+1)}
			i += 2
		}
		out[w][flushes] = Piece{Pos: word(b, i), Size: UnknownSize}
		i++
	}
	return out
}

// Append appends the record to b. Writers must be len(Subfile).
func (m WriterMap) Append(b []byte) []byte {
	b = appendRecordHeader(b, recordWriterMap, writerMapWords+len(m.Subfile))
	b = appendWords(b, uint64(len(m.Subfile)), m.Aggregators, m.Subfiles)
	return appendWords(b, m.Subfile...)
}

// Append appends the record to b. Each writer must have Flushes+1 pieces.
func (s StepIndex) Append(b []byte) []byte {
	b = appendRecordHeader(b, recordStep, stepWords+(2*s.Flushes+1)*len(s.Pieces))
	b = appendWords(b, s.MetaPos, s.MetaLen, uint64(s.Flushes))
	for _, pieces := range s.Pieces {
		for _, p := range pieces[:s.Flushes] {
			b = appendWords(b, p.Pos, p.Size)
		}
		b = appendWords(b, pieces[s.Flushes].Pos)
	}
	return b
}

// word returns the i-th u64 of b, which must be there.
func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }

// appendWords appends u64 words.
func appendWords(b []byte, words ...uint64) []byte {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// appendRecordHeader appends the header of a record whose body has the given number of words.
func appendRecordHeader(b []byte, typ byte, words int) []byte {
	return binary.LittleEndian.AppendUint64(append(b, typ), 8*uint64(words))
}
