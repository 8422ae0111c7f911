package cm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// AttrKind is the type of an attribute's value. The numbers are those of the
// wire (cm.md §2.1).
type AttrKind uint32

// Kinds of attributes. KindInt32 lives in the first section of a list, which has
// no type words; all others in the second.
const (
	KindInt32  AttrKind = 1
	KindInt64  AttrKind = 2
	KindString AttrKind = 3
	KindOpaque AttrKind = 4
	KindAtom   AttrKind = 5
	KindFloat  AttrKind = 8
)

// String names the kind.
func (k AttrKind) String() string {
	switch k {
	case KindInt32:
		return "int32"
	case KindInt64:
		return "int64"
	case KindString:
		return "string"
	case KindOpaque:
		return "opaque"
	case KindAtom:
		return "atom"
	case KindFloat:
		return "float"
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// Limits of a list (cm.md §2.5): counts are one byte, a string's length with its
// NUL is an int16.
const (
	maxAttrs  = 255
	maxText   = math.MaxInt16 - 1 // bytes of a string without its NUL
	maxOpaque = math.MaxInt16
	// maxSlack is how many zero bytes behind the counted ones are forgiven: an
	// encoder keeps up to 8 behind the last string (cm.md §2.1).
	maxSlack = 8
)

// Attr is one attribute of a contact. Which of the value fields counts is told
// by Kind: Int for KindInt32, KindInt64 and KindAtom (as an unsigned 32-bit
// number), Text for KindString, Bytes for KindOpaque, Float for KindFloat.
type Attr struct {
	Atom  uint32
	Kind  AttrKind
	Int   int64
	Text  string
	Bytes []byte
	Float float64
}

// appendTo writes a, of the second section, behind b.
//
//	wire: atom u32 | kind u32 | value, little-endian (cm.md §2.1)
func (a Attr) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, a.Atom)
	b = binary.LittleEndian.AppendUint32(b, uint32(a.Kind))
	switch a.Kind {
	case KindInt64:
		return binary.LittleEndian.AppendUint64(b, uint64(a.Int))
	case KindFloat:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(a.Float))
	case KindAtom:
		return binary.LittleEndian.AppendUint32(b, uint32(a.Int))
	case KindString:
		b = binary.LittleEndian.AppendUint16(b, uint16(len(a.Text)+1))
		b = append(b, a.Text...)
		return appendZeros(append(b, 0), pad4(2+len(a.Text)+1))
	default: // KindOpaque; check has seen to it
		b = binary.LittleEndian.AppendUint16(b, uint16(len(a.Bytes)))
		b = append(b, a.Bytes...)
		return appendZeros(b, pad4(2+len(a.Bytes)))
	}
}

// check reports why a cannot be written, if it cannot.
func (a Attr) check() error {
	switch a.Kind {
	case KindInt32:
		if a.Int < math.MinInt32 || a.Int > math.MaxInt32 {
			return fmt.Errorf("%w: attribute %#08x: %d does not fit 32 bits", ErrContact, a.Atom, a.Int)
		}
	case KindAtom:
		if a.Int < 0 || a.Int > math.MaxUint32 {
			return fmt.Errorf("%w: attribute %#08x: %d is not an atom", ErrContact, a.Atom, a.Int)
		}
	case KindString:
		if len(a.Text) > maxText || strings.IndexByte(a.Text, 0) >= 0 {
			return fmt.Errorf("%w: attribute %#08x: string of %d bytes is too long or has a NUL", ErrContact, a.Atom, len(a.Text))
		}
	case KindOpaque:
		if len(a.Bytes) > maxOpaque {
			return fmt.Errorf("%w: attribute %#08x: %d opaque bytes are too many", ErrContact, a.Atom, len(a.Bytes))
		}
	case KindInt64, KindFloat:
	default:
		return fmt.Errorf("%w: attribute %#08x: no such %v", ErrContact, a.Atom, a.Kind)
	}
	return nil
}

// parseAttr reads one attribute of the second section from b, which starts at
// offset at of the list, and returns the bytes used.
func parseAttr(b []byte, at int) (Attr, int, error) {
	if len(b) < 8 {
		return Attr{}, 0, fmt.Errorf("%w: offset %d: %w", ErrContact, at, short("attribute", len(b), 8))
	}
	a := Attr{Atom: binary.LittleEndian.Uint32(b), Kind: AttrKind(binary.LittleEndian.Uint32(b[4:]))}
	n, err := a.parseValue(b[8:])
	if err != nil {
		return Attr{}, 0, fmt.Errorf("%w: offset %d: attribute %#08x: %w", ErrContact, at, a.Atom, err)
	}
	return a, 8 + n, nil
}

// parseValue reads a's value, whose kind is known, and returns the bytes used.
func (a *Attr) parseValue(b []byte) (int, error) {
	switch a.Kind {
	case KindInt64, KindFloat:
		if len(b) < 8 {
			return 0, short("8-byte value", len(b), 8)
		}
		v := binary.LittleEndian.Uint64(b)
		if a.Kind == KindFloat {
			a.Float = math.Float64frombits(v)
		} else {
			a.Int = int64(v)
		}
		return 8, nil
	case KindAtom:
		if len(b) < 4 {
			return 0, short("4-byte value", len(b), 4)
		}
		a.Int = int64(binary.LittleEndian.Uint32(b))
		return 4, nil
	case KindString, KindOpaque:
		return a.parseCounted(b)
	}
	return 0, fmt.Errorf("kind %d cannot stand here", uint32(a.Kind))
}

// parseCounted reads a string or opaque value: an int16 length, that many bytes,
// padding to a multiple of 4.
func (a *Attr) parseCounted(b []byte) (int, error) {
	if len(b) < 2 {
		return 0, short("length", len(b), 2)
	}
	n := int(int16(binary.LittleEndian.Uint16(b)))
	if n < 0 {
		return 0, fmt.Errorf("length %d is negative", n)
	}
	total := 2 + n + pad4(2+n)
	if len(b) < total {
		return 0, short("counted value", len(b), total)
	}
	value := b[2 : 2+n]
	if a.Kind == KindOpaque {
		a.Bytes = bytes.Clone(value)
		return total, nil
	}
	// C peers read up to the first NUL whatever the length says; so do we.
	end := bytes.IndexByte(value, 0)
	if end < 0 {
		return 0, fmt.Errorf("string of %d bytes has no NUL", n)
	}
	a.Text = string(value[:end])
	return total, nil
}

// pad4 returns how many bytes bring n up to a multiple of 4.
func pad4(n int) int { return -n & 3 }

// appendZeros appends n zero bytes.
func appendZeros(b []byte, n int) []byte {
	for range n {
		b = append(b, 0)
	}
	return b
}
