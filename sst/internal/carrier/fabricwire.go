package carrier

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// The units that links over a fabric exchange, one for each message of the fabric
// (docs/wire/link.md). All numbers are little-endian.

// unitVersion is that of this layout. Sides of different versions do not speak.
const unitVersion = 1

// unitMagic begins the body of a hello: the endpoint may hear from anybody.
const unitMagic = "WeftLink"

// maxUnit is the longest unit, in bytes. What is longer goes in several. It is what
// provider shm sends without asking the receiver first.
const maxUnit = 64 << 10

// unitKind is what a unit is.
type unitKind uint8

const (
	unitHello   unitKind = iota + 1 // opens a link
	unitWelcome                     // the answer: it is open
	unitRefusal                     // the other answer
	unitFormat                      // the beginning of a format, or all of it
	unitRecord                      // the beginning of a record, or all of it
	unitRest                        // more of what began before
	unitGoodbye                     // nothing more will come
	unitEnd                         // this side has forgotten the link
	unitHold                        // send no formats and records until unitGo
	unitGo                          // send them again
)

// String names the kind, as errors do.
func (k unitKind) String() string {
	names := [...]string{"", "hello", "welcome", "refusal", "format", "record", "rest", "goodbye", "end", "hold", "go"}
	if int(k) < len(names) && k > 0 {
		return names[k]
	}
	return fmt.Sprintf("unit of kind %d", uint8(k))
}

// Lengths, in bytes.
const (
	unitHead  = 16           // of every unit
	blobHead  = unitHead + 8 // of one that begins something
	helloLen  = unitHead + len(unitMagic) + 4
	answerLen = unitHead + 4
	refuseLen = unitHead + 8
)

// refusalCode is why a hello was refused.
type refusalCode uint32

const (
	refusedVersion refusalCode = iota + 1 // another version is spoken here
	refusedClosed                         // the carrier is closing
	refusedLimit                          // too many links
)

// unit is one message of the fabric, parsed or to be sent.
//
//	 0  u8   kind
//	 1  u8   1: from the side that dialled; 0: from the other
//	 2  u16  0
//	 4  u32  number of the unit on its link, in this direction, from 0 on; wraps. 0 of refusal and end, which have no place in the order
//	 8  u64  link: a random number that the dialling side has drawn
//	16       hello:          "WeftLink" | u32 version
//	         welcome:        u32 version
//	         refusal:        u32 version | u32 code
//	         format, record: u64 length of all of it, 12 at least | its first bytes, one at least
//	         rest:           one byte at least
//	         goodbye, end, hold, go: nothing
//
// A format is its 12-byte ID and its body; a record begins with the ID of its format.
type unit struct {
	kind    unitKind
	dialler bool
	seq     uint32
	link    uint64
	version uint32      // hello, welcome, refusal
	code    refusalCode // refusal
	total   uint64      // format, record
	data    []byte      // format, record, rest
}

// Append appends the unit to b.
func (u *unit) Append(b []byte) []byte {
	side := byte(0)
	if u.dialler {
		side = 1
	}
	b = append(b, byte(u.kind), side, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, u.seq)
	b = binary.LittleEndian.AppendUint64(b, u.link)
	switch u.kind {
	case unitHello:
		b = append(b, unitMagic...)
		b = binary.LittleEndian.AppendUint32(b, u.version)
	case unitWelcome:
		b = binary.LittleEndian.AppendUint32(b, u.version)
	case unitRefusal:
		b = binary.LittleEndian.AppendUint32(b, u.version)
		b = binary.LittleEndian.AppendUint32(b, uint32(u.code))
	case unitFormat, unitRecord:
		b = binary.LittleEndian.AppendUint64(b, u.total)
	}
	return append(b, u.data...)
}

// parseUnit reads a unit, which is all of b. Its data point into b. Errors wrap
// ErrProtocol, and io.ErrUnexpectedEOF if b is cut off.
func parseUnit(b []byte) (unit, error) {
	if len(b) < unitHead {
		return unit{}, short(b, "unit")
	}
	u := unit{kind: unitKind(b[0]), dialler: b[1] == 1, seq: binary.LittleEndian.Uint32(b[4:]), link: binary.LittleEndian.Uint64(b[8:])}
	if b[1] > 1 || b[2] != 0 || b[3] != 0 {
		return unit{}, fmt.Errorf("%w: %v with %x at 1 to 3", ErrProtocol, u.kind, b[1:4])
	}
	return u, u.parseBody(b)
}

// parseBody reads what follows the head.
func (u *unit) parseBody(b []byte) error {
	body := b[unitHead:]
	switch u.kind {
	case unitHello:
		// Of a hello of another version only its beginning is known, so the rest is not looked at.
		if len(b) < helloLen {
			return short(b, u.kind.String())
		}
		if string(body[:len(unitMagic)]) != unitMagic {
			return fmt.Errorf("%w: hello with %q at %d", ErrProtocol, body[:len(unitMagic)], unitHead)
		}
		u.version = binary.LittleEndian.Uint32(body[len(unitMagic):])
		if u.version != unitVersion {
			return nil
		}
		return u.exactly(b, helloLen)
	case unitWelcome:
		if len(b) < answerLen {
			return short(b, u.kind.String())
		}
		u.version = binary.LittleEndian.Uint32(body)
		return u.exactly(b, answerLen)
	case unitRefusal:
		if len(b) < refuseLen {
			return short(b, u.kind.String())
		}
		u.version, u.code = binary.LittleEndian.Uint32(body), refusalCode(binary.LittleEndian.Uint32(body[4:]))
		return nil
	case unitGoodbye, unitEnd, unitHold, unitGo:
		return u.exactly(b, unitHead)
	case unitFormat, unitRecord:
		if len(b) <= blobHead {
			return short(b, u.kind.String())
		}
		u.total, u.data = binary.LittleEndian.Uint64(body), b[blobHead:]
		if u.total < ffs.IDLen || u.total < uint64(len(u.data)) {
			return fmt.Errorf("%w: %v of %d bytes begins with %d", ErrProtocol, u.kind, u.total, len(u.data))
		}
		return nil
	case unitRest:
		if u.data = body; len(body) == 0 {
			return short(b, u.kind.String())
		}
		return nil
	}
	return fmt.Errorf("%w: %v", ErrProtocol, u.kind)
}

// exactly checks the length of a unit that has one.
func (u *unit) exactly(b []byte, want int) error {
	if len(b) != want {
		return fmt.Errorf("%w: %v of %d bytes, not %d", ErrProtocol, u.kind, len(b), want)
	}
	return nil
}

func short(b []byte, what string) error {
	return fmt.Errorf("%w: %s of %d bytes: %w", ErrProtocol, what, len(b), io.ErrUnexpectedEOF)
}
