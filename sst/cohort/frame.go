package cohort

import (
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf8"
)

// What frames say. An ID is the sender's own number for a channel, from 1, on
// this connection and in this direction; a channel has it from join to leave.
const (
	frameStart   = 1 // rank 0: all ranks are there. No ID, no body
	frameJoin    = 2 // the sender joins a channel. Body: joinBody
	frameMessage = 3 // a message of a channel. Body: the message
	frameLeave   = 4 // the sender leaves a channel. No body
	frameGone    = 5 // rank 0: the rank in ID is gone. Body: goneBody
	frameBye     = 6 // the sender leaves the cohort; nothing follows. Body: why, as text; none if all is well
	frameFlush   = 7 // the sender wants to know when this has arrived. No ID, no body
	frameFlushed = 8 // all up to a frameFlush has arrived, each in its turn. No ID, no body
)

// frameRest is for queues only: the rest of frames whose first bytes are written. It has
// no header.
const frameRest = 0

// Limits of frames that are not messages.
const (
	frameHeader = 16
	maxText     = 1 << 10
	maxGone     = 16 << 20 // bytes of a goneBody
	firstChunk  = 1 << 20  // of a long body; later ones grow as it arrives
)

// frame is a unit of a connection, little-endian:
//
//	0  kind u32 | 4 id u32 | 8 length of body u64 | 16 body
type frame struct {
	kind uint32
	id   uint32
	body []byte
}

// appendHeader appends all but the body.
func (f *frame) appendHeader(b []byte) []byte {
	if f.kind == frameRest {
		return b
	}
	b = binary.LittleEndian.AppendUint32(b, f.kind)
	b = binary.LittleEndian.AppendUint32(b, f.id)
	return binary.LittleEndian.AppendUint64(b, uint64(len(f.body)))
}

// readFrame reads a frame. io.EOF means: the end, between two frames. Memory for
// the body is taken as it arrives.
func readFrame(r io.Reader, maxMessage int) (frame, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: binary.LittleEndian.Uint32(h[0:]), id: binary.LittleEndian.Uint32(h[4:])}
	length := binary.LittleEndian.Uint64(h[8:])
	limit, ok := bodyLimit(f.kind, maxMessage)
	if !ok {
		return frame{}, fmt.Errorf("%w: frame of unknown kind %d", ErrProtocol, f.kind)
	}
	if length > uint64(limit) {
		return frame{}, fmt.Errorf("%w: frame of kind %d with %d bytes, at most %d are allowed", ErrLimit, f.kind, length, limit)
	}
	body, err := readBody(r, int(length))
	if err == io.EOF { //nolint:errorlint // ReadFull returns it bare
		err = io.ErrUnexpectedEOF
	}
	f.body = body
	return f, err
}

// bodyLimit returns how long the body of a kind of frame may be.
func bodyLimit(kind uint32, maxMessage int) (int, bool) {
	switch kind {
	case frameStart, frameLeave, frameFlush, frameFlushed:
		return 0, true
	case frameJoin:
		return 4 + maxName, true
	case frameMessage:
		return maxMessage, true
	case frameGone:
		return maxGone, true
	case frameBye:
		return maxText, true
	}
	return 0, false
}

// readBody reads n bytes. What is allocated is a small multiple of what has
// arrived: a header that promises much takes no memory.
func readBody(r io.Reader, n int) ([]byte, error) {
	body := make([]byte, min(n, firstChunk))
	have := 0
	for {
		m, err := io.ReadFull(r, body[have:])
		have += m
		if err != nil || have == n {
			return body[:have], err
		}
		grown := make([]byte, min(n, 4*have))
		copy(grown, body)
		body = grown
	}
}

// joinBody is the body of a frameJoin: n u32 | name.
func appendJoin(b []byte, k key) []byte {
	b = binary.LittleEndian.AppendUint32(b, k.n)
	return append(b, k.name...)
}

func parseJoin(b []byte) (key, error) {
	if len(b) < 4 {
		return key{}, fmt.Errorf("%w: join frame of %d bytes: %w", ErrProtocol, len(b), io.ErrUnexpectedEOF)
	}
	k := key{n: binary.LittleEndian.Uint32(b), name: string(b[4:])}
	if k.n == 0 || len(k.name) > maxName {
		return key{}, fmt.Errorf("%w: join frame for number %d of a name of %d bytes", ErrProtocol, k.n, len(k.name))
	}
	return k, nil
}

// goneBody is the body of a frameGone: why the rank is gone, and which channels
// it had left before.
//
//	length u32 | text | { n u32 | length u32 | name }*
type goneBody struct {
	text string
	left []key
}

func (g *goneBody) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(g.text)))
	b = append(b, g.text...)
	for _, k := range g.left {
		if len(b)+8+len(k.name) > maxGone {
			break // who has that many channels hears of a loss once too often
		}
		b = binary.LittleEndian.AppendUint32(b, k.n)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(k.name)))
		b = append(b, k.name...)
	}
	return b
}

func parseGone(b []byte) (goneBody, error) {
	var g goneBody
	text, rest, err := cutText(b, maxText)
	if err != nil {
		return g, fmt.Errorf("gone frame: text: %w", err)
	}
	g.text = text
	for len(rest) > 0 {
		at := len(b) - len(rest)
		if len(rest) < 4 {
			return g, fmt.Errorf("gone frame: byte %d: %w: %w", at, ErrProtocol, io.ErrUnexpectedEOF)
		}
		k := key{n: binary.LittleEndian.Uint32(rest)}
		if k.name, rest, err = cutText(rest[4:], maxName); err != nil {
			return g, fmt.Errorf("gone frame: byte %d: %w", at, err)
		}
		if k.n == 0 {
			return g, fmt.Errorf("gone frame: byte %d: %w: channel number 0", at, ErrProtocol)
		}
		g.left = append(g.left, k)
	}
	return g, nil
}

// cutText takes a text with its length before it off b.
func cutText(b []byte, limit int) (text string, rest []byte, err error) {
	if len(b) < 4 {
		return "", nil, fmt.Errorf("%w: %w", ErrProtocol, io.ErrUnexpectedEOF)
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if uint64(n) > uint64(limit) {
		return "", nil, fmt.Errorf("%w: text of %d bytes, at most %d are allowed", ErrProtocol, n, limit)
	}
	if uint64(n) > uint64(len(b)) {
		return "", nil, fmt.Errorf("%w: text of %d bytes in %d: %w", ErrProtocol, n, len(b), io.ErrUnexpectedEOF)
	}
	return string(b[:n]), b[n:], nil
}

// clip shortens a text to what a frame may hold, between two characters.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	n := maxText
	for n > maxText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
