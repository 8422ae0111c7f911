package cm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Defaults and bounds of a Reader, in bytes.
const (
	DefaultMaxRecord = MaxData
	DefaultMaxFormat = 1 << 20

	defaultReadBuffer = 16 << 10
	maxAttrBlock      = 64 << 10
	// firstChunk is what is allocated on the word of a peer that has proven
	// nothing yet; see body.
	firstChunk = 1 << 20
)

// ReaderConfig holds the limits of a Reader and where its records come from. The
// zero value works.
type ReaderConfig struct {
	// MaxRecord is the longest record, in bytes; 0 means DefaultMaxRecord. More
	// than MaxData lets CMB units pass.
	MaxRecord int
	// MaxFormat is the longest payload of a format message, in bytes; 0 means
	// DefaultMaxFormat.
	MaxFormat int
	// Buffer is the size of the read buffer, in bytes; 0 means 16 KiB. Longer
	// records are read straight into their own memory.
	Buffer int
	// Alloc returns a slice of exactly n bytes for (part of) a record, or nil to
	// refuse, which ends the stream with ErrNoBuffer. Contents do not matter.
	// nil means make.
	Alloc func(n int) []byte
	// Free takes back a slice of Alloc that the Reader does not hand out: one
	// that was outgrown, or whose record was cut off or damaged. nil drops it.
	Free func(b []byte)
	// Place may name another place for the end of a long record. nil means none.
	Place Place
}

// Place is asked about each record without a checksum of at least PlaceMin bytes,
// when its first PlaceHead bytes have arrived; total is the length of the record.
// A nil fill declines. Otherwise only the first offset bytes become the record
// that Next returns, and fill is called for the others: have are those of them
// that have arrived, which it copies; the rest follow, rest in number, and fill
// reads them from the io.Reader of the Reader itself. It returns how many it has
// read, all of them if there is no error. head and have are valid during the call.
type Place func(head []byte, total int) (offset int, fill func(have []byte, rest int) (int, error))

// Bounds of records that Place is asked about, in bytes.
const (
	PlaceMin  = 64 << 10
	PlaceHead = 256
)

// resolve returns a copy of c with defaults in place.
func (c ReaderConfig) resolve() ReaderConfig {
	if c.MaxRecord <= 0 {
		c.MaxRecord = DefaultMaxRecord
	}
	if c.MaxFormat <= 0 {
		c.MaxFormat = DefaultMaxFormat
	}
	if c.Buffer <= 0 {
		c.Buffer = defaultReadBuffer
	}
	if c.Alloc == nil {
		c.Alloc = func(n int) []byte { return make([]byte, n) }
	}
	if c.Free == nil {
		c.Free = func([]byte) {}
	}
	return c
}

// Reader cuts one direction of a connection into units. It allocates for a
// record only as its bytes arrive: at most 1 MiB, or the longest record that this
// stream has carried so far, on the mere word of the peer; beyond that, twice
// what has come.
type Reader struct {
	br     *bufio.Reader
	config ReaderConfig
	offset int64 // of the next byte of the stream
	start  int64 // of the unit being read
	proven int   // the longest record that has arrived whole
	placed int   // bytes of the last record that went elsewhere
	failed error // what ended the stream
	header [formatHeaderSize]byte
}

// NewReader returns a Reader on r, which it may read ahead.
func NewReader(r io.Reader, config ReaderConfig) *Reader {
	config = config.resolve()
	return &Reader{br: bufio.NewReaderSize(r, config.Buffer), config: config}
}

// Offset returns the number of bytes that have been taken from the stream.
func (r *Reader) Offset() int64 { return r.offset }

// SetPlace sets ReaderConfig.Place for the records to come.
func (r *Reader) SetPlace(p Place) { r.config.Place = p }

// Placed returns how many bytes of the record that Next returned last have gone
// to a place of ReaderConfig.Place.
func (r *Reader) Placed() int { return r.placed }

// Preamble reads the preamble of an accepted connection.
func (r *Reader) Preamble() (Preamble, error) {
	r.start = r.offset
	if err := r.fill(0, PreambleSize); err != nil {
		return Preamble{}, r.fail("preamble", err)
	}
	p, _, err := ParsePreamble(r.header[:PreambleSize])
	if err != nil {
		return Preamble{}, r.fail("preamble", err)
	}
	return p, nil
}

// Handshake reads a unit that must be a handshake. Any other is refused by its
// first four bytes.
func (r *Reader) Handshake() (Handshake, error) {
	kind, err := r.begin()
	if err != nil {
		return Handshake{}, err
	}
	if kind != magicHandshake {
		return Handshake{}, r.fail("handshake", fmt.Errorf("%w: magic % x instead of a handshake", ErrMagic, r.header[:4]))
	}
	return r.handshake()
}

// Next reads one unit. Records belong to the caller: Data, LongData and AttrData
// hold memory of Alloc that starts at the slice returned by it. The end of the
// stream between two units is io.EOF; inside one, io.ErrUnexpectedEOF. An error
// says at which byte of the stream the unit began. After ErrChecksum reading may
// go on behind the damaged unit; every other error is final.
func (r *Reader) Next() (Unit, error) {
	kind, err := r.begin()
	if err != nil {
		return nil, err
	}
	switch kind {
	case magicData:
		return r.data()
	case magicLong:
		return r.longData()
	case magicAttrData:
		return r.attrData()
	case magicHandshake:
		return asUnit(r.handshake())
	default:
		return r.format()
	}
}

// asUnit boxes u unless there is an error.
func asUnit(u Unit, err error) (Unit, error) {
	if err != nil {
		return nil, err
	}
	return u, nil
}

// begin reads the magic of the next unit.
func (r *Reader) begin() (uint32, error) {
	if r.failed != nil {
		return 0, r.failed
	}
	r.start, r.placed = r.offset, 0
	if err := r.fill(0, 4); err != nil {
		if errors.Is(err, io.EOF) {
			r.failed = io.EOF
			return 0, io.EOF
		}
		return 0, r.fail("unit", err)
	}
	kind, err := kindOf(binary.LittleEndian.Uint32(r.header[:]))
	if err != nil {
		return 0, r.fail("unit", err)
	}
	return kind, nil
}

func (r *Reader) handshake() (Handshake, error) {
	if err := r.rest(HandshakeSize); err != nil {
		return Handshake{}, r.fail("handshake", err)
	}
	h, _, err := ParseHandshake(r.header[:HandshakeSize])
	if err != nil {
		return Handshake{}, r.fail("handshake", err)
	}
	return h, nil
}

func (r *Reader) data() (Unit, error) {
	if err := r.rest(dataHeaderSize); err != nil {
		return nil, r.fail("data message", err)
	}
	n, err := dataLength(r.header[:])
	if err != nil {
		return nil, r.fail("data message", err)
	}
	record, err := r.record(n, r.header[0] == 0)
	if err != nil {
		return nil, r.fail("data message", err)
	}
	if r.placed == 0 && !checksumOK(r.header[0], r.header[4:dataHeaderSize], record) {
		r.config.Free(record)
		return nil, fmt.Errorf("cm: data message of %d bytes at byte %d: %w", dataHeaderSize+n, r.start, ErrChecksum)
	}
	return Data{Record: record}, nil
}

func (r *Reader) longData() (Unit, error) {
	if err := r.rest(longHeaderSize); err != nil {
		return nil, r.fail("long data message", err)
	}
	n, err := longLength(r.header[:])
	if err != nil {
		return nil, r.fail("long data message", err)
	}
	record, err := r.record(n, true)
	if err != nil {
		return nil, r.fail("long data message", err)
	}
	return LongData{Record: record}, nil
}

func (r *Reader) attrData() (Unit, error) {
	const what = "attribute data message"
	if err := r.rest(attrDataHeaderSize); err != nil {
		return nil, r.fail(what, err)
	}
	a, n, err := attrDataLengths(r.header[:])
	if err != nil {
		return nil, r.fail(what, err)
	}
	if a > maxAttrBlock {
		return nil, r.fail(what, fmt.Errorf("%w: %d bytes of attributes, at most %d", ErrTooLarge, a, maxAttrBlock))
	}
	attrs := make([]byte, a)
	if err := r.full(attrs); err != nil {
		return nil, r.fail(what, err)
	}
	record, err := r.record(n, false)
	if err != nil {
		return nil, r.fail(what, err)
	}
	return AttrData{Attrs: attrs, Record: record}, nil
}

func (r *Reader) format() (Unit, error) {
	if err := r.rest(formatHeaderSize); err != nil {
		return nil, r.fail("format message", err)
	}
	m, p1, p2, err := parseFormatHeader(r.header[:])
	if err != nil {
		return nil, r.fail("format message", err)
	}
	if p1+p2 > r.config.MaxFormat {
		return nil, r.fail("format message", fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, p1+p2, r.config.MaxFormat))
	}
	payload, err := r.body(p1+p2, makeBytes, dropBytes)
	if err != nil {
		return nil, r.fail("format message", err)
	}
	m.split(payload, p1)
	return m, nil
}

func makeBytes(n int) []byte { return make([]byte, n) }
func dropBytes([]byte)       {}

// record reads the n bytes of a record. If it may, its end goes where
// ReaderConfig.Place says.
func (r *Reader) record(n int, may bool) ([]byte, error) {
	if n > r.config.MaxRecord {
		return nil, fmt.Errorf("%w: record of %d bytes, at most %d", ErrTooLarge, n, r.config.MaxRecord)
	}
	if may && r.config.Place != nil && n >= PlaceMin && r.br.Size() >= PlaceHead {
		head, err := r.br.Peek(PlaceHead)
		if err != nil {
			return nil, inside(err)
		}
		if offset, fill := r.config.Place(head, n); fill != nil {
			return r.split(n, offset, fill)
		}
	}
	return r.body(n, r.config.Alloc, r.config.Free)
}

// split reads a record of n bytes of which those from offset on go to fill.
func (r *Reader) split(n, offset int, fill func([]byte, int) (int, error)) ([]byte, error) {
	if offset < 0 || offset >= n {
		return nil, fmt.Errorf("%w: place from byte %d of a record of %d", ErrNoBuffer, offset, n)
	}
	record, err := r.body(offset, r.config.Alloc, r.config.Free)
	if err != nil {
		return nil, err
	}
	have, _ := r.br.Peek(min(r.br.Buffered(), n-offset)) // no more than there is
	got, err := fill(have, n-offset-len(have))
	skipped, _ := r.br.Discard(len(have)) // as above
	r.offset += int64(skipped + got)
	if err != nil {
		r.config.Free(record)
		return nil, inside(err)
	}
	r.placed = n - offset
	r.proven = max(r.proven, n)
	return record, nil
}

// body reads n bytes into new memory. A peer that claims more than it has ever
// sent gets memory in doubling pieces, each only once the one before is full.
func (r *Reader) body(n int, alloc func(int) []byte, free func([]byte)) ([]byte, error) {
	b := alloc(min(n, max(firstChunk, r.proven)))
	if b == nil && n > 0 {
		return nil, ErrNoBuffer
	}
	have := 0
	for {
		if err := r.full(b[have:]); err != nil {
			free(b)
			return nil, err
		}
		have = len(b)
		if have == n {
			r.proven = max(r.proven, n)
			return b, nil
		}
		more := alloc(min(n, 2*have))
		if more == nil {
			free(b)
			return nil, ErrNoBuffer
		}
		copy(more, b)
		free(b)
		b = more
	}
}

// rest reads the remainder of a header of size bytes behind its magic.
func (r *Reader) rest(size int) error {
	return inside(r.fill(4, size))
}

// fill reads header bytes from to to.
func (r *Reader) fill(from, to int) error {
	n, err := io.ReadFull(r.br, r.header[from:to])
	r.offset += int64(n)
	return err
}

// full fills b, which lies inside a unit.
func (r *Reader) full(b []byte) error {
	n, err := io.ReadFull(r.br, b)
	r.offset += int64(n)
	return inside(err)
}

// inside turns the end of the stream into the error it is inside a unit.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// fail ends the stream with err, which happened in what.
func (r *Reader) fail(what string, err error) error {
	if errors.Is(err, io.EOF) { // the stream ended before its preamble
		r.failed = err
		return err
	}
	r.failed = fmt.Errorf("cm: %s at byte %d: %w", what, r.start, err)
	return r.failed
}
