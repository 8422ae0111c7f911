package cm

import (
	"encoding/binary"
	"fmt"
)

// PreambleSize is the size of the preamble in bytes.
const PreambleSize = 4

// Preamble is what the active side of a connection sends first, once: the port
// on which it listens for CM connections, 0 if it does not (cm.md §3). Send it in
// one write and at once: a real peer reads it with one blocking call on the
// thread that serves all its connections.
type Preamble struct {
	Port uint16
}

// Append writes the preamble behind b.
//
//	wire: port u16 BIG-endian | 0 | 0 (cm.md §3)
func (p Preamble) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, p.Port)
	return append(b, 0, 0)
}

// ParsePreamble decodes a preamble and returns its size.
func ParsePreamble(b []byte) (Preamble, int, error) {
	if len(b) < PreambleSize {
		return Preamble{}, 0, short("preamble", len(b), PreambleSize)
	}
	if b[2] != 0 || b[3] != 0 {
		return Preamble{}, 0, fmt.Errorf("%w: preamble % x does not end in two zero bytes", ErrMalformed, b[:4])
	}
	return Preamble{Port: binary.BigEndian.Uint16(b)}, PreambleSize, nil
}
