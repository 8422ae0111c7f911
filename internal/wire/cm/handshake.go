package cm

import (
	"encoding/binary"
	"fmt"
)

// HandshakeSize is the size of a CMH unit in bytes.
const HandshakeSize = 20

// Values of a handshake (cm.md §3).
const (
	// HandshakeVersion is the only version real peers send.
	HandshakeVersion = 1
	// SelfHosted is the format-server identifier of a peer that pushes its
	// formats itself. Never send 0: to the receiver that is "no handshake yet".
	SelfHosted uint32 = 0xffffffff
	// ID210 is the constant CM ID of ADIOS2 2.10.x and earlier; later ones send
	// a random number.
	ID210 uint32 = 5

	handshakeAnswer uint32 = 1 << 31 // word 3: "I already have yours"
)

// Handshake is the CMH unit: each side sends one before anything else, the
// active side with Answer false, the passive one with Answer true.
type Handshake struct {
	Version      uint8
	FormatServer uint32 // SelfHosted
	ID           uint32 // of the CM instance, 31 bits
	Answer       bool   // the receiver of true does not answer
}

func (Handshake) isUnit() {}

// Append writes the unit behind b. Only the low 31 bits of ID count.
//
//	wire: "CMH" u32 | version u8 << 24 + 20 u32 | format server u32 | answer bit 31 + ID u32 | 0 u32 (cm.md §3)
func (h Handshake) Append(b []byte) []byte {
	id := h.ID &^ handshakeAnswer
	if h.Answer {
		id |= handshakeAnswer
	}
	b = binary.LittleEndian.AppendUint32(b, magicHandshake)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.Version)<<24|HandshakeSize)
	b = binary.LittleEndian.AppendUint32(b, h.FormatServer)
	b = binary.LittleEndian.AppendUint32(b, id)
	return binary.LittleEndian.AppendUint32(b, 0)
}

// ParseHandshake decodes a CMH unit and returns its size. The version is handed
// out unchecked; the last word is ignored.
func ParseHandshake(b []byte) (Handshake, int, error) {
	if err := expect(b, HandshakeSize, magicHandshake, "handshake"); err != nil {
		return Handshake{}, 0, err
	}
	word := binary.LittleEndian.Uint32(b[4:])
	if n := word & 0xffffff; n != HandshakeSize {
		return Handshake{}, 0, fmt.Errorf("%w: handshake of %d bytes, not %d", ErrMalformed, n, HandshakeSize)
	}
	id := binary.LittleEndian.Uint32(b[12:])
	return Handshake{
		Version:      uint8(word >> 24),
		FormatServer: binary.LittleEndian.Uint32(b[8:]),
		ID:           id &^ handshakeAnswer,
		Answer:       id&handshakeAnswer != 0,
	}, HandshakeSize, nil
}
