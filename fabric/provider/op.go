package provider

import (
	"strconv"

	"github.com/weft-fabric/weft/memmon"
)

// Peer is an address that was inserted into a domain. Zero is no peer. A peer that died stays dead
// under its number; inserting its address again makes a new one.
type Peer uint64

// String is the number as people read it, in errors and in lists: as 3, or 3.1 where the upper half of its bits is not zero, as
// in a number that was used before.
func (p Peer) String() string {
	low, high := uint64(p)&(1<<32-1), uint64(p)>>32
	if high == 0 {
		return strconv.FormatUint(low, 10)
	}
	return strconv.FormatUint(low, 10) + "." + strconv.FormatUint(high, 10)
}

// Key names registered memory of a peer, as its owner tells it (Memory.Key).
type Key uint64

// Segment is a piece of local memory: raw bytes, or part of registered memory.
type Segment struct {
	Bytes  []byte // the memory
	Memory Memory // what it is a part of; nil for raw bytes, which are copied through or registered for this one operation
	// Kind says of raw bytes what they are a part of, for providers with MemoryMode.Local: they keep the registration of all of it for the
	// next operation, as long as it cannot go stale. Other providers ignore it. Nil: nobody says.
	Kind memmon.Kind
}

// RemoteSegment is a piece of a peer's registered memory.
type RemoteSegment struct {
	Key    Key
	Offset uint64 // bytes from the start of the registration
	Len    uint64 // bytes
}

// Op is one operation. Which fields count depends on the call; the others must be zero.
type Op struct {
	Local  Segment   // the local buffer
	Locals []Segment // more of it: the operation's bytes are Local followed by these, in order

	Peer Peer // the other side; of a receive only with Directed

	// The memory at the peer, of RMA and atomics: from Offset on, as long as the local buffer.
	Key     Key
	Offset  uint64
	Remotes []RemoteSegment // instead of Key and Offset: in order; the lengths add up to the local one

	Tag    uint64 // tagged only
	Ignore uint64 // RecvTagged: bits of the tag that may differ
	Data   uint64 // with RemoteData

	Flags   Flags
	Context uint64 // comes back in the completion
}

// Len is the number of bytes of the local buffer.
func (op *Op) Len() int {
	n := len(op.Local.Bytes)
	for _, s := range op.Locals {
		n += len(s.Bytes)
	}
	return n
}

// AtomicCode is what an atomic operation does to each element at the target.
type AtomicCode uint8

// The atomic operations; t is the element at the target, x that of the local buffer. With a result
// buffer, the old t is brought back.
const (
	AtomicMin      AtomicCode = iota + 1 // t = min(t, x)
	AtomicMax                            // t = max(t, x)
	AtomicSum                            // t = t + x
	AtomicProd                           // t = t * x
	AtomicLogOr                          // t = t || x, as 0 or 1
	AtomicLogAnd                         // t = t && x, as 0 or 1
	AtomicBitOr                          // t = t | x
	AtomicBitAnd                         // t = t & x
	AtomicLogXor                         // t = (t != 0) != (x != 0), as 0 or 1
	AtomicBitXor                         // t = t ^ x
	AtomicRead                           // result = t
	AtomicWrite                          // t = x
	AtomicSwapEq                         // if t == compare: t = x
	AtomicSwapNe                         // if t != compare: t = x
	AtomicSwapLe                         // if compare <= t: t = x
	AtomicSwapLt                         // if compare < t: t = x
	AtomicSwapGe                         // if compare >= t: t = x
	AtomicSwapGt                         // if compare > t: t = x
	AtomicMaskSwap                       // t = (x & compare) | (t &^ compare)
)

// DataType is the type of the elements of an atomic operation, in the byte order of the machine.
type DataType uint8

// The element types.
const (
	Int8 DataType = iota + 1
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Int64
	Uint64
	Float32
	Float64
	Complex64
	Complex128
)

// Size is the number of bytes of one element; 0 for an unknown type.
func (t DataType) Size() int {
	switch t {
	case Int8, Uint8:
		return 1
	case Int16, Uint16:
		return 2
	case Int32, Uint32, Float32:
		return 4
	case Int64, Uint64, Float64, Complex64:
		return 8
	case Complex128:
		return 16
	}
	return 0
}

// Atomic is an atomic operation on memory of a peer. Its elements are updated one by one, each
// atomically against every other atomic operation on the same memory, also of other processes.
type Atomic struct {
	Op      // Local and Locals hold the operands, all together; empty for AtomicRead. Each of Remotes has whole elements
	Code    AtomicCode
	Type    DataType
	Compare []byte // of the compare-and-swaps, as long as the operands
	Result  []byte // receives the old elements, if not nil; belongs to the provider until the completion
}
