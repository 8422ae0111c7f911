package provider

import (
	"strconv"
	"strings"
)

// Caps is what a provider can do, or what a program asks for.
type Caps uint64

// The capabilities. Their names are those of libfabric's FI_ flags.
const (
	Msg          Caps = 1 << iota // Send and Recv
	Tagged                        // SendTagged and RecvTagged, peek and claim
	RMA                           // Read and Write
	Atomics                       // Atomic
	RemoteCQData                  // 64 bits of data with a message or write
	MultiRecv                     // a receive that takes many messages
	DirectedRecv                  // a receive that takes messages of one peer only
	Source                        // completions of receives name the peer
	Arena                         // Alloc: memory that peers of the node can map
	Views                         // View: a peer's memory without a copy
	LocalComm                     // reaches other processes of this node
	RemoteComm                    // reaches other nodes
)

var capNames = []string{
	"msg", "tagged", "rma", "atomics", "remote-cq-data", "multi-recv", "directed-recv", "source", "arena", "views",
	"local-comm", "remote-comm",
}

// Has says whether all of want are there.
func (c Caps) Has(want Caps) bool { return c&want == want }

// String lists the capabilities, as "msg|tagged".
func (c Caps) String() string { return bitNames(uint64(c), capNames) }

// Flags change one operation. Which go with which operation says Kind.Flags, and for people the table at Endpoint of package
// fabric; which may stand together, the constants. Others are refused with ErrInvalid.
type Flags uint32

// The flags of operations.
const (
	// RemoteData carries Op.Data to the peer: it is in the completion of the receive, and a Write
	// with it makes a completion at the target.
	RemoteData Flags = 1 << iota
	// Inject copies the local buffer before the call returns; at most Limits.Inject bytes.
	Inject
	// DeliveryComplete completes a send only when the message has reached the receiver's buffer, a
	// write only when the bytes are in the target's memory.
	DeliveryComplete
	// Quiet makes no completion if the operation succeeds; an error makes one nevertheless. Not with Multi or Peek.
	Quiet
	// More says that another post follows at once: the provider may publish both together. The
	// next operation without it, and any reading of a completion queue, publishes.
	More
	// Directed makes a receive take messages of Op.Peer only.
	Directed
	// Multi makes a receive take messages until less than EndpointConfig.MinMultiRecv bytes of its
	// buffer are left; its last completion has MultiDone.
	Multi
	// Peek looks for an unexpected tagged message and completes at once, with the message's length,
	// tag and data, or with ErrNoMessage. Without a buffer.
	Peek
	// Claim, with Peek, takes the message it finds out of the queue, for the receive that names the
	// same Context with Claim (or drops it with Claim and Discard).
	Claim
	// Discard, with either Peek or Claim, drops the message.
	Discard
	// Fence starts the operation after all earlier ones towards the same peer have completed.
	Fence
)

var flagNames = []string{
	"remote-data", "inject", "delivery-complete", "quiet", "more", "directed", "multi", "peek", "claim", "discard", "fence",
}

// Has says whether all of want are set.
func (f Flags) Has(want Flags) bool { return f&want == want }

// String lists the flags, as "inject|quiet".
func (f Flags) String() string { return bitNames(uint64(f), flagNames) }

// Access says what may be done to memory, by whom.
type Access uint8

// The kinds of access.
const (
	// PeerRead lets peers read the memory, and, where it is an arena, map it read-only.
	PeerRead Access = 1 << iota
	// PeerWrite lets peers write it and run atomics on it. An arena with it is mapped writable by
	// peers, so it lies in a segment of its own kind.
	PeerWrite
)

var accessNames = []string{"peer-read", "peer-write"}

// Has says whether all of want are granted.
func (a Access) Has(want Access) bool { return a&want == want }

// String lists the access, as "peer-read|peer-write".
func (a Access) String() string { return bitNames(uint64(a), accessNames) }

// Progress is who moves operations on.
type Progress uint8

// The progress modes.
const (
	// Auto: operations complete although the application makes no call. While nothing happens all
	// sleeps in the kernel, without a timer, but in a wait on a queue that has refused a post.
	Auto Progress = iota
	// Manual: the provider starts no goroutine; operations move in calls of the application only.
	Manual
)

// String is "auto" or "manual"; of a mode that does not exist its number.
func (p Progress) String() string {
	switch p {
	case Auto:
		return "auto"
	case Manual:
		return "manual"
	}
	return "mode" + strconv.Itoa(int(p))
}

// bitNames joins the names of the bits that are set; one without a name is a number.
func bitNames(bits uint64, names []string) string {
	if bits == 0 {
		return "none"
	}
	var parts []string
	for i := range 64 {
		if bits&(1<<i) == 0 {
			continue
		}
		if i < len(names) {
			parts = append(parts, names[i])
		} else {
			parts = append(parts, "bit"+strconv.Itoa(i))
		}
	}
	return strings.Join(parts, "|")
}
