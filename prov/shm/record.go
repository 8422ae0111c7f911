package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A record of a lane. The ring gives it a length and says where it starts; what is in it is here.
// It begins with a word, then come those words that the operation has, then the payload.
//
//	0 u8 op | u8 flags | u16 status | u32 context
//	8 the words of the operation, 8 bytes each, in the order of the list below
//	  u64 data, with recData
//	  u64 after, with recAfter
//	  payload
//
// A context is an entry of the table of the side that will read it back (handle). A place is the
// segment (high half) and the length (low half) of memory of the sender.
//
//	op         lane     words                        payload  answer
//	opInline   data     tag                          message  opAck with recAck
//	opPlaced   data     tag, place, offset           -        opAck
//	opOffer    data     tag, length                  -        opClear
//	opNote     data     length                       -        -
//	opAck      control  -                            -        -
//	opClear    control  own context, wanted length   -        opChunk...
//	opChunk    control  position, place, offset      bytes, where the place has noSegment
//	opRead     control  key, offset, length          -        opChunk... or opDone
//	opWrite    control  key, offset, length          all bytes, with recWhole   opDone or opClear
//	opDone     control  -                            -        -
//	opAtomic   control  key, offset, code and type   operands, compares         opOld or opDone
//	opOld      control  -                            old elements
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
	opCount
)

// The flags of a record.
const (
	recTagged = 1 << iota // of a message: it goes to tagged receives
	recData               // has data
	recAfter              // the control lane must have been read up to a position first
	recAck                // the receiver answers when the bytes are in its buffer
	recLast               // the last chunk
	recWhole              // all bytes of the write are here
	recResult             // of an atomic: the old elements are wanted
	recFlags  = 1<<iota - 1
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
	recordHead = wordLen * 7 // of the longest: op, 4 words, data, after
	maxInline  = 4096        // payload of a record
)

// recordWords is how many words each operation has.
var recordWords = [opCount]uint8{
	opInline: 1, opPlaced: 3, opOffer: 2, opNote: 1, opClear: 2, opChunk: 3, opRead: 3, opWrite: 3, opAtomic: 3,
}

// errRecord is wrapped by what a record can have wrong.
var errRecord = errors.New("malformed record")

// record is a parsed record. payload is in the ring.
type record struct {
	op, flags   uint8
	status      uint16
	context     uint32
	words       [3]uint64
	data, after uint64
	payload     []byte
}

// place packs a segment and a length below 4 GiB in one word, as opPlaced and opChunk have them.
func place(segment uint32, length int) uint64 { return uint64(segment)<<32 | uint64(uint32(length)) }

func unplace(w uint64) (segment uint32, length uint64) { return uint32(w >> 32), w & (1<<32 - 1) }

// recordLen is what a record takes without its payload.
func recordLen(op, flags uint8) int {
	n := 1 + int(recordWords[op])
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
	binary.LittleEndian.PutUint64(b, uint64(r.op)|uint64(r.flags)<<8|uint64(r.status)<<16|uint64(r.context)<<32)
	n := wordLen
	for i := range recordWords[r.op] {
		binary.LittleEndian.PutUint64(b[n:], r.words[i])
		n += wordLen
	}
	if r.flags&recData != 0 {
		binary.LittleEndian.PutUint64(b[n:], r.data)
		n += wordLen
	}
	if r.flags&recAfter != 0 {
		binary.LittleEndian.PutUint64(b[n:], r.after)
		n += wordLen
	}
	return n + copy(b[n:], r.payload)
}

// parse reads a record. b is shared memory that only its writer, who may be hostile, can change: each word
// is read once.
func (r *record) parse(b []byte) error {
	if len(b) < wordLen {
		return fmt.Errorf("%w: %d bytes", errRecord, len(b))
	}
	w := binary.LittleEndian.Uint64(b)
	r.op, r.flags, r.status, r.context = uint8(w), uint8(w>>8), uint16(w>>16), uint32(w>>32)
	if r.op == 0 || r.op >= opCount || r.status >= statusCount {
		return fmt.Errorf("%w: operation %d, status %d", errRecord, r.op, r.status)
	}
	n := recordLen(r.op, r.flags)
	if len(b) < n {
		return fmt.Errorf("%w: operation %d in %d bytes", errRecord, r.op, len(b))
	}
	at := wordLen
	for i := range recordWords[r.op] {
		r.words[i] = binary.LittleEndian.Uint64(b[at:])
		at += wordLen
	}
	if r.flags&recData != 0 {
		r.data = binary.LittleEndian.Uint64(b[at:])
		at += wordLen
	}
	if r.flags&recAfter != 0 {
		r.after = binary.LittleEndian.Uint64(b[at:])
	}
	r.payload = b[n:]
	return nil
}
