package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A record of a lane. The ring gives it a length and says where it starts; what is in it is here:
//
//	0 u8 op | u8 flags | u16 status | u32 0
//	  u64 context, if the operation has one
//	  the words of the operation, 8 bytes each, in the order of the list below
//	  u64 data, with recData
//	  u64 after, with recAfter
//	  payload
//
// A context names a record of the side that will get it back (Pool). A place is a segment (high half) and a length
// (low half) of memory of the sender; with noSegment the bytes are the payload.
//
//	op         lane     context  words                  data  payload          answer
//	opInline   data     recAck   tag                    yes   message          opAck with recAck
//	opPlaced   data     yes      tag, place, offset     yes   - recGrows       opAck
//	opOffer    data     yes      tag, length            yes   -                opClear
//	opNote     data     -        length                 yes   -                -
//	opAck      control  yes      -                      -     -                -
//	opClear    control  yes      own context, wanted    base  -                opChunk...
//	opChunk    control  yes      position, place, offset -    bytes            -
//	opRead     control  yes      key, offset, length    base  -                opChunk... or opDone
//	opWrite    control  yes      key, offset, length    base  with recWhole    opDone, or opClear and opDone
//	opDone     control  yes      -                      -     -                -
//	opAtomic   control  yes      key, offset, kind      base  operands         opOld
//	opOld      control  yes      -                      base  old elements     -
//	opLane     control  -        -                      -     -                -
//	opMove     data     -        -                      -     -                -
//
// The data of opRead, opWrite and opAtomic is the position in the initiator's buffer at which the piece starts; opClear and
// opOld bring it back.
const (
	opInline = iota + 1 // a message
	opPlaced            // a message that lies in the sender's memory
	opOffer             // a message that is sent when it is asked for
	opNote              // a write with data has been done
	opAck               // the message was taken: its place is free
	opClear             // send that many bytes to this context
	opChunk             // some of them
	opRead              // read of registered memory
	opWrite             // write of registered memory
	opDone              // the operation has ended, with a status
	opAtomic            // atomic operation
	opOld               // its result
	opLane              // the larger data lane that was offered is mapped
	opMove              // the next record is in it
	opCount
)

// The flags of a record.
const (
	recTagged = 1 << iota // of a message: it goes to tagged receives
	recData               // has data
	recAfter              // the control lane must have been read up to a position first
	recAck                // of a message: the receiver answers when the bytes are in its buffer
	recLast               // the last chunk
	recWhole              // all bytes of the write are here
	recResult             // of an atomic: the old elements are wanted
	recFlags  = 1<<iota - 1

	// recGrows is of a placed message: its bytes come while it is read, see grow.go.
	recGrows = recLast
)

// The statuses that travel.
const (
	statusOK = iota
	statusKey
	statusNotSupported
	statusClosed
	statusLimit
	statusCount
)

const (
	noSegment  = ^uint32(0)
	wordLen    = 8
	recordHead = wordLen * 7 // of the longest: first word, context, 3 words, data, after
	maxInline  = 4096        // payload of a record
)

// form is what an operation's record has.
type form struct {
	context bool
	words   uint8
	control bool // the lane
}

var forms = [opCount]form{
	opInline: {false, 1, false}, opPlaced: {true, 3, false}, opOffer: {true, 2, false}, opNote: {false, 1, false},
	opAck: {true, 0, true}, opClear: {true, 2, true}, opChunk: {true, 3, true}, opRead: {true, 3, true}, opWrite: {true, 3, true},
	opDone: {true, 0, true}, opAtomic: {true, 3, true}, opOld: {true, 0, true},
	opLane: {false, 0, true}, opMove: {false, 0, false},
}

// errRecord is wrapped by what a record can have wrong.
var errRecord = errors.New("malformed record")

// record is a parsed record. payload is in the ring.
type record struct {
	op, flags   uint8
	status      uint16
	context     uint64
	words       [3]uint64
	data, after uint64
	payload     []byte
}

// place packs a segment and a length below 4 GiB in one word.
func place(segment uint32, length int) uint64 { return uint64(segment)<<32 | uint64(uint32(length)) }

func unplace(w uint64) (segment uint32, length uint64) { return uint32(w >> 32), w & (1<<32 - 1) }

// hasContext says whether a record has a context.
func hasContext(op, flags uint8) bool { return forms[op].context || flags&recAck != 0 }

// recordLen is what a record takes without its payload.
func recordLen(op, flags uint8) int {
	n := 1 + int(forms[op].words)
	if hasContext(op, flags) {
		n++
	}
	if flags&recData != 0 {
		n++
	}
	if flags&recAfter != 0 {
		n++
	}
	return n * wordLen
}

// put writes the record into b, which must have room for it, and returns how many bytes it took. The payload is copied.
func (r *record) put(b []byte) int {
	n := 0
	word := func(w uint64) {
		binary.LittleEndian.PutUint64(b[n:], w)
		n += wordLen
	}
	word(uint64(r.op) | uint64(r.flags)<<8 | uint64(r.status)<<16)
	if hasContext(r.op, r.flags) {
		word(r.context)
	}
	for i := range forms[r.op].words {
		word(r.words[i])
	}
	if r.flags&recData != 0 {
		word(r.data)
	}
	if r.flags&recAfter != 0 {
		word(r.after)
	}
	return n + copy(b[n:], r.payload)
}

// parse reads a record of a lane. b is shared memory that only its writer, who may be hostile, can change: each
// word is read once.
func (r *record) parse(b []byte, control bool) error {
	if len(b) < wordLen {
		return fmt.Errorf("%w: %d bytes", errRecord, len(b))
	}
	w := binary.LittleEndian.Uint64(b)
	*r = record{op: uint8(w), flags: uint8(w >> 8), status: uint16(w >> 16)}
	if r.op == 0 || r.op >= opCount || forms[r.op].control != control || r.flags&^recFlags != 0 || r.status >= statusCount || w>>32 != 0 {
		return fmt.Errorf("%w: operation %d, flags %#x, status %d", errRecord, r.op, r.flags, r.status)
	}
	n := recordLen(r.op, r.flags)
	if len(b) < n {
		return fmt.Errorf("%w: operation %d in %d bytes", errRecord, r.op, len(b))
	}
	at := 0
	word := func() uint64 {
		at += wordLen
		return binary.LittleEndian.Uint64(b[at:])
	}
	if hasContext(r.op, r.flags) {
		r.context = word()
	}
	for i := range forms[r.op].words {
		r.words[i] = word()
	}
	if r.flags&recData != 0 {
		r.data = word()
	}
	if r.flags&recAfter != 0 {
		r.after = word()
	}
	r.payload = b[n:]
	return nil
}
