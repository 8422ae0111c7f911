package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What goes over the socket of a pair. Each message is one packet, with the descriptors it names.
//
//	 0 u64 magic
//	 8 u16 version | u16 kind | u32 bytes of the whole
//	16 body
//
// All numbers are little-endian.
const (
	helloMagic   = 0x314d485354464557 // "WEFTSHM1"
	helloVersion = 1
	headLen      = 16
	maxMessage   = 4096 // bytes of a socket message
	maxSegments  = 64   // segments of one message
	maxText      = 1024 // bytes of a reason

	kindHello    = 1 // first message of who connects
	kindWelcome  = 2 // the answer: a hello of the other side
	kindRefuse   = 3 // the other answer, or why a pair ends
	kindSegments = 4 // more arena segments
	kindDrop     = 5 // segments that are no longer used
	kindBell     = 6 // a ring, from who could not be given an eventfd; no body
	kindLane     = 8 // a larger data lane
)

// errMessage is wrapped by all that a socket message can have wrong.
var errMessage = errors.New("malformed message")

type bootID [16]byte

// layout is how large things are in a peer's memory. Both sides must have the same.
type layout struct {
	home, lanes    uint64
	control, data  uint32
	hazards, table uint32
	asks           uint32
}

// segmentInfo names a segment whose descriptor comes with the message.
type segmentInfo struct {
	index  uint32
	access uint32
	size   uint64
}

// The features of a hello.
const hasBell = 1 // the bell is an eventfd; else a packet of kindBell rings

// hello is what both sides say first. Descriptors: home, lanes, bell, then one for each segment.
//
//	16 u64 incarnation of the sender's endpoint
//	24 u64 incarnation that the receiver must have, 0 for any
//	32 boot id, 16 bytes
//	48 u64 home bytes    | 56 u64 lanes bytes
//	64 u32 control bytes | 68 u32 data bytes
//	72 u32 hazard slots  | 76 u32 table entries
//	 80 u32 user id that the sender has for itself | 84 u32 features
//	 88 u32 requests that either side may have without an answer
//	 92 u32 which of the words of life in the sender's home is the receiver's to watch, from 1 on; 0: none
//	 96 u64 inode of the sender's network namespace
//	104 u16 n, n bytes: name of the sender
//	   u16 n, n bytes: name of the receiver
//	   u16 n, n bytes: folder in which the sender also listens
//	   u16 n, n segments of 16 bytes: u32 index, u32 access, u64 bytes
type hello struct {
	kind           uint16 // kindHello or kindWelcome
	inc, want      uint64
	boot           bootID
	layout         layout
	uid, features  uint32
	life           uint32
	net            uint64
	from, to, path string
	segments       []segmentInfo
}

func appendHead(b []byte, kind uint16) []byte {
	b = binary.LittleEndian.AppendUint64(b, helloMagic)
	b = binary.LittleEndian.AppendUint16(b, helloVersion)
	b = binary.LittleEndian.AppendUint16(b, kind)
	return append(b, 0, 0, 0, 0)
}

// seal fills in the length of the message that starts at start.
func seal(b []byte, start int) []byte {
	binary.LittleEndian.PutUint32(b[start+12:], uint32(len(b)-start))
	return b
}

// parseHead checks the head and returns kind and body. A message of another version has the same head.
func parseHead(b []byte) (kind uint16, body []byte, err error) {
	if len(b) < headLen {
		return 0, nil, io.ErrUnexpectedEOF
	}
	if m := binary.LittleEndian.Uint64(b); m != helloMagic {
		return 0, nil, fmt.Errorf("%w: magic %#x: not Weft's shared memory", errMessage, m)
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != helloVersion {
		return 0, nil, fmt.Errorf("%w: protocol version %d, this side has %d", errMessage, v, helloVersion)
	}
	kind = binary.LittleEndian.Uint16(b[10:])
	n := int(binary.LittleEndian.Uint32(b[12:]))
	if n > len(b) {
		return 0, nil, io.ErrUnexpectedEOF
	}
	if n != len(b) {
		return 0, nil, fmt.Errorf("%w: %d bytes after a message of %d", errMessage, len(b)-n, n)
	}
	return kind, b[headLen:], nil
}

// Append adds the message to b.
func (h *hello) Append(b []byte) []byte {
	start := len(b)
	b = appendHead(b, h.kind)
	le := binary.LittleEndian
	b = le.AppendUint64(b, h.inc)
	b = le.AppendUint64(b, h.want)
	b = append(b, h.boot[:]...)
	b = le.AppendUint64(b, h.layout.home)
	b = le.AppendUint64(b, h.layout.lanes)
	for _, v := range []uint32{h.layout.control, h.layout.data, h.layout.hazards, h.layout.table, h.uid, h.features, h.layout.asks, h.life} {
		b = le.AppendUint32(b, v)
	}
	b = le.AppendUint64(b, h.net)
	for _, s := range []string{h.from, h.to, h.path} {
		b = appendText(b, s)
	}
	b = appendSegments(b, h.segments)
	return seal(b, start)
}

// parseHello reads the body of a hello or a welcome.
func parseHello(kind uint16, body []byte) (*hello, error) {
	r := reader{b: body}
	h := &hello{kind: kind, inc: r.u64(), want: r.u64()}
	copy(h.boot[:], r.take(len(h.boot)))
	h.layout = layout{home: r.u64(), lanes: r.u64(), control: r.u32(), data: r.u32(), hazards: r.u32(), table: r.u32()}
	h.uid, h.features, h.layout.asks, h.life = r.u32(), r.u32(), r.u32(), r.u32()
	h.net = r.u64()
	h.from, h.to = r.text(maxName), r.text(maxName)
	h.path = r.text(maxAddress)
	h.segments = r.segments()
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	if h.inc == 0 || h.from == "" || h.net == 0 || h.life > lifeWords {
		return nil, fmt.Errorf("hello: %w: no name, no incarnation, no network namespace, or a word of life that is none", errMessage)
	}
	return h, nil
}

// The codes of a refusal.
const (
	refuseName     = 1 // no such endpoint here, or another incarnation
	refuseUser     = 2 // the user is not allowed
	refuseLayout   = 3 // another version or layout
	refuseCrossing = 4 // this side's own connection to the same peer is used instead
	refuseLimit    = 5 // no memory or descriptors
	refuseClosed   = 6 // the endpoint closes
	refuseRemoved  = 7 // the peer was removed there
)

// refusal says why there is no pair, or why it ends.
//
//	16 u16 code
//	18 u16 n, n bytes: reason, for people
type refusal struct {
	code uint16
	text string
}

// Append adds the message to b.
func (f refusal) Append(b []byte) []byte {
	start := len(b)
	b = appendHead(b, kindRefuse)
	b = binary.LittleEndian.AppendUint16(b, f.code)
	b = appendText(b, f.text[:min(len(f.text), maxText)])
	return seal(b, start)
}

func parseRefusal(body []byte) (refusal, error) {
	r := reader{b: body}
	f := refusal{code: r.u16(), text: r.text(maxText)}
	if err := r.end(); err != nil {
		return refusal{}, fmt.Errorf("refusal: %w", err)
	}
	return f, nil
}

// announcement tells of more segments. Descriptors: one for each.
//
//	16 u16 n, n segments of 16 bytes
type announcement []segmentInfo

// Append adds the message to b.
func (a announcement) Append(b []byte) []byte {
	start := len(b)
	return seal(appendSegments(appendHead(b, kindSegments), a), start)
}

func parseAnnouncement(body []byte) (announcement, error) {
	r := reader{b: body}
	a := announcement(r.segments())
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("segments: %w", err)
	}
	return a, nil
}

// drop names segments that their owner no longer uses: no block of them will have a key again.
//
//	16 u16 n, n times u32 index
type drop []uint32

// Append adds the message to b.
func (d drop) Append(b []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint16(appendHead(b, kindDrop), uint16(len(d)))
	for _, i := range d {
		b = binary.LittleEndian.AppendUint32(b, i)
	}
	return seal(b, start)
}

func parseDrop(body []byte) (drop, error) {
	r := reader{b: body}
	n := int(r.u16())
	if n > maxSegments {
		return nil, fmt.Errorf("drop: %w: %d segments", errMessage, n)
	}
	var d drop
	for range n {
		d = append(d, r.u32())
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	return d, nil
}

func appendText(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

func appendSegments(b []byte, list []segmentInfo) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(len(list)))
	for _, s := range list {
		b = binary.LittleEndian.AppendUint32(b, s.index)
		b = binary.LittleEndian.AppendUint32(b, s.access)
		b = binary.LittleEndian.AppendUint64(b, s.size)
	}
	return b
}
