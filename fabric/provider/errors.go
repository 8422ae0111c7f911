package provider

import (
	"errors"
	"fmt"
)

// What can be wrong. Errors wrap one of these, with the operation, the peer and, where the kernel had a say, its errno. More than
// one may be in an error (ErrPeerGone, because of ErrNoMemory): ask by errors.Is.
//
// All providers say them in one order. What became of a peer (ErrPeerGone, ErrUnreachable, ErrProtocol) or of a message (ErrTruncated)
// comes first and the reason after it: "fabric: peer is gone: it was killed". A refusal says the particular first and one of these
// after it: "17 bytes, at most 16: fabric: longer than the provider's limit"; last comes what the system said, if it is the system
// that refuses: "fabric: out of memory or descriptors: memfd_create: too many open files".
var (
	// ErrAgain is back-pressure of this side: reading completions ends it, and wakes waiters.
	ErrAgain = errors.New("fabric: try again after reading completions")
	// ErrClosed ends whatever used an object that was closed.
	ErrClosed = errors.New("fabric: closed")
	// ErrCancelled ends an operation that Cancel took back.
	ErrCancelled = errors.New("fabric: operation cancelled")
	// ErrSignal ends a wait that Signal woke.
	ErrSignal = errors.New("fabric: wait was signalled")
	// ErrPeerGone ends every operation towards a peer that died, closed, or broke the protocol.
	ErrPeerGone = errors.New("fabric: peer is gone")
	// ErrUnreachable ends operations towards an address at which nobody answers, or somebody else.
	ErrUnreachable = errors.New("fabric: peer cannot be reached")
	// ErrKey ends RMA with a key the peer does not know (any more), outside of its memory, or
	// without the right of access.
	ErrKey = errors.New("fabric: key does not give access to this memory")
	// ErrTruncated ends a receive whose buffer was too small; as much as fits is in it. A TruncatedError says how long the message was.
	ErrTruncated = errors.New("fabric: message is longer than the buffer")
	// ErrTooLong refuses an operation above a limit of Info.Limits.
	ErrTooLong = errors.New("fabric: longer than the provider's limit")
	// ErrNoMessage ends a Peek that found nothing.
	ErrNoMessage = errors.New("fabric: no such message has arrived")
	// ErrNotSupported refuses what the provider or this machine cannot do.
	ErrNotSupported = errors.New("fabric: not supported")
	// ErrInvalid refuses an argument that makes no sense.
	ErrInvalid = errors.New("fabric: invalid argument")
	// ErrNoMemory refuses for want of memory, descriptors or a limit of the system.
	ErrNoMemory = errors.New("fabric: out of memory or descriptors")
	// ErrRemapped ends an operation during which its local memory was unmapped or became other memory: what it sent, or where it wrote, is not
	// to be trusted. Only providers with MemoryMode.Local notice.
	ErrRemapped = errors.New("fabric: the memory changed under the operation")
	// ErrProtocol is a peer's breach of the rules; the peer is dropped with it.
	ErrProtocol = errors.New("fabric: peer broke the protocol")
	// ErrBusy refuses to close or free what is still in use.
	ErrBusy = errors.New("fabric: still in use")
)

// TruncatedError is an ErrTruncated with the numbers: what a buffer for such a message needs.
type TruncatedError struct {
	Message uint64 // its length, in bytes
	Room    uint64 // the bytes that were placed
}

// Error says it in one line.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%v: %d bytes into %d", ErrTruncated, e.Message, e.Room)
}

// Unwrap gives ErrTruncated.
func (e *TruncatedError) Unwrap() error { return ErrTruncated }

// OpError is what operations fail with: what was tried, through which provider, towards whom, why.
type OpError struct {
	Op       string  // "send", "open endpoint"
	Provider string  // "shm"
	Addr     Address // the peer; "" if there is none
	Err      error   // wraps one of the errors above
}

// Error says it in one line.
func (e *OpError) Error() string {
	if e.Addr == "" {
		return fmt.Sprintf("%s: %s: %v", e.Provider, e.Op, e.Err)
	}
	return fmt.Sprintf("%s: %s: peer %s: %v", e.Provider, e.Op, e.Addr, e.Err)
}

// Unwrap gives the cause.
func (e *OpError) Unwrap() error { return e.Err }
