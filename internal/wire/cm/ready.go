package cm

import (
	"bufio"
	"encoding/binary"
	"errors"
)

// Missing returns how many bytes, at least, have yet to come before Next returns
// without reading from the io.Reader of r: 0 if it has all it needs. It looks only
// at what is in the read buffer.
func (r *Reader) Missing() int {
	have := r.br.Buffered()
	if r.failed != nil {
		return 0
	}
	head, _ := r.br.Peek(min(have, formatHeaderSize)) // no more than there is
	size, err := unitSize(head)
	if err != nil {
		return 0 // Next says what is wrong, and needs no more for that
	}
	return max(0, size-have)
}

// Fill reads once from the io.Reader of r into the read buffer. It does nothing if
// that is full. An error is that of the io.Reader; reading may go on behind it.
func (r *Reader) Fill() error {
	_, err := r.br.Peek(r.br.Buffered() + 1)
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil
	}
	return err
}

// Room returns how many bytes fit into the read buffer, behind those that are there.
func (r *Reader) Room() int { return r.br.Size() - r.br.Buffered() }

// unitSize returns the size in bytes of the unit that begins with head; if that is
// too short to tell, then what is needed to tell.
func unitSize(head []byte) (int, error) {
	if len(head) < 4 {
		return 4, nil
	}
	kind, err := kindOf(binary.LittleEndian.Uint32(head))
	if err != nil {
		return 0, err
	}
	size := headerSize(kind)
	if len(head) < size {
		return size, nil
	}
	n, err := payloadSize(kind, head)
	return size + n, err
}

// headerSize returns the size of the fixed part of a unit.
func headerSize(kind uint32) int {
	switch kind {
	case magicData:
		return dataHeaderSize
	case magicLong:
		return longHeaderSize
	case magicAttrData:
		return attrDataHeaderSize
	case magicHandshake:
		return HandshakeSize
	}
	return formatHeaderSize
}

// payloadSize returns the size of what follows the fixed part.
func payloadSize(kind uint32, header []byte) (int, error) {
	switch kind {
	case magicData:
		return dataLength(header)
	case magicLong:
		return longLength(header)
	case magicAttrData:
		a, n, err := attrDataLengths(header)
		return a + n, err
	case magicHandshake:
		return 0, nil
	}
	_, p1, p2, err := parseFormatHeader(header)
	return p1 + p2, err
}
