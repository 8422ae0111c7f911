package cp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// Layout of a message between the ranks of a cohort. It never leaves the job, so
// all ranks run the same program and there is no version in it:
//
//	kind u8 | fields in the order of the layout method
//
// A field is, little-endian:
//
//	integer  i64 or i32 by its type; int as i64
//	bool     u8, 0 or 1
//	text     length uvarint | bytes
//	blob     length uvarint | bytes
//	list     0, or count+1, as uvarint | elements; 0 is nil, which means something
//	pointer  u8, 0 for nil or 1 | fields
//
// Nothing follows the last field.

// errMalformed says that bytes are no message of a cohort.
var errMalformed = errors.New("malformed message between ranks")

// AppendMessage appends m to b. Blobs are copied.
func AppendMessage(b []byte, m Message) []byte {
	cm := m.(coded)
	c := coder{b: append(b, byte(cm.kind()))}
	cm.layout(&c)
	return c.b
}

// ParseMessage reads a message that AppendMessage has made. Blobs are sub-slices
// of b. The error wraps ErrProtocol, and io.ErrUnexpectedEOF if b is too short.
func ParseMessage(b []byte) (Message, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("message between ranks: %w: %w", ErrProtocol, io.ErrUnexpectedEOF)
	}
	m := newMessage(messageKind(b[0]))
	if m == nil {
		return nil, fmt.Errorf("message between ranks of kind %d: %w: %w", b[0], ErrProtocol, errMalformed)
	}
	c := coder{b: b[1:], reading: true}
	m.layout(&c)
	if c.err == nil && len(c.b) > 0 {
		c.fail(errMalformed)
	}
	if c.err != nil {
		return nil, fmt.Errorf("%T between ranks, byte %d of %d: %w: %w", m, len(b)-len(c.b), len(b), ErrProtocol, c.err)
	}
	return m, nil
}

// coder goes through the fields of a message, either way: writing, it appends
// what the pointers refer to; reading, it sets that. After an error it does
// nothing more.
type coder struct {
	b       []byte // what was written, or what is left to read
	reading bool
	err     error
}

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// take returns the next n bytes to read, nil if they are not there.
func (c *coder) take(n uint64) []byte {
	if c.err != nil || n > uint64(len(c.b)) {
		c.fail(io.ErrUnexpectedEOF)
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *coder) u64(p *uint64) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint64(c.b, *p)
	} else if b := c.take(8); b != nil {
		*p = binary.LittleEndian.Uint64(b)
	}
}

func (c *coder) i64(p *int64) {
	u := uint64(*p)
	c.u64(&u)
	if c.reading {
		*p = int64(u)
	}
}

func (c *coder) i32(p *int32) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint32(c.b, uint32(*p))
	} else if b := c.take(4); b != nil {
		*p = int32(binary.LittleEndian.Uint32(b))
	}
}

func (c *coder) num(p *int) {
	n := int64(*p)
	c.i64(&n)
	if !c.reading {
		return
	}
	*p = int(n)
	if int64(*p) != n {
		c.fail(errMalformed)
	}
}

// small is a byte that is at most top.
func (c *coder) small(p *uint8, top uint8) {
	if !c.reading {
		c.b = append(c.b, *p)
	} else if b := c.take(1); b != nil {
		if *p = b[0]; *p > top {
			c.fail(errMalformed)
		}
	}
}

func (c *coder) flag(p *bool) {
	var u uint8
	if *p {
		u = 1
	}
	c.small(&u, 1)
	if c.reading {
		*p = u == 1
	}
}

// length is the length of something, an uvarint.
func (c *coder) length(n uint64) uint64 {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, n)
		return n
	}
	if c.err != nil {
		return 0
	}
	n, used := binary.Uvarint(c.b)
	switch {
	case used == 0:
		c.fail(io.ErrUnexpectedEOF)
		return 0
	case used < 0 || used > 1 && c.b[used-1] == 0: // too long, or longer than need be
		c.fail(errMalformed)
		return 0
	}
	c.b = c.b[used:]
	return n
}

func (c *coder) text(p *string) {
	n := c.length(uint64(len(*p)))
	if !c.reading {
		c.b = append(c.b, *p...)
		return
	}
	*p = string(c.take(n))
}

func (c *coder) blob(p *sstmsg.Blob) {
	n := c.length(uint64(p.Len()))
	if !c.reading {
		for _, piece := range *p {
			c.b = append(c.b, piece...)
		}
		return
	}
	*p = sstmsg.ByteBlob(c.take(n))
}

// list goes through a list of elements that take at least size bytes each, so
// that a count is believed only if its elements can be there.
func list[T any](c *coder, p *[]T, size int, each func(*coder, *T)) {
	n := uint64(0)
	if *p != nil {
		n = uint64(len(*p)) + 1
	}
	n = c.length(n)
	if c.reading {
		*p = nil
		if n == 0 || c.err != nil {
			return
		}
		if n-1 > uint64(len(c.b)/size) {
			c.fail(io.ErrUnexpectedEOF)
			return
		}
		*p = make([]T, n-1)
	}
	for i := range *p {
		each(c, &(*p)[i])
	}
}

// pointer goes through what p refers to, if anything.
func pointer[T any](c *coder, p **T, fields func(*coder, *T)) {
	here := *p != nil
	c.flag(&here)
	if !here || c.err != nil {
		return
	}
	if c.reading {
		*p = new(T)
	}
	fields(c, *p)
}
