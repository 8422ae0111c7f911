package provider

import (
	"context"

	"github.com/weft-fabric/weft/memmon"
)

// Domain is an open provider: the owner of everything below.
type Domain interface {
	// Info is what was opened, as it is now.
	Info() Info

	OpenCompletionQueue(c CQConfig) (CompletionQueue, error)
	OpenCounter() (Counter, error)
	OpenEndpoint(c EndpointConfig) (Endpoint, error)

	// Insert makes a peer of an address, and connects nothing. The same address gives the same peer
	// until it is removed or gone.
	Insert(a Address) (Peer, error)
	// Address is the address of a peer.
	Address(p Peer) (Address, error)
	// Remove forgets a peer; what is outstanding towards it ends with ErrCancelled.
	Remove(p Peer) error

	// Alloc gets n bytes of arena memory, zeroed, aligned to 64 bytes and to pages from 64 KiB on.
	Alloc(n int, a Access) (Memory, error)
	// Register lets peers use memory that is not from an arena.
	Register(k memmon.Kind, a Access) (Memory, error)
	// View maps n bytes of a peer's arena from offset on, read-only. It connects to the peer, from the
	// domain's first endpoint, if need be. ErrNotSupported where the memory is not in an arena of this node.
	View(ctx context.Context, p Peer, k Key, offset uint64, n int) (View, error)

	// Stats may be read at any time.
	Stats() Stats
	// Peers lists what is known of each peer.
	Peers() []PeerStats

	// Close ends everything of the domain. Views stay readable until they are released.
	Close() error
}

// Endpoint sends and receives. A post that returns an error has no completion.
type Endpoint interface {
	// Address is where others reach it.
	Address() Address

	Send(op Op) error
	Recv(op Op) error
	SendTagged(op Op) error
	RecvTagged(op Op) error
	Read(op Op) error
	Write(op Op) error
	Atomic(op Atomic) error

	// Cancel takes back the posted receive, or the operation that has not started, with this
	// context; it completes with ErrCancelled. False if there is none: it has ended, or cannot be stopped.
	Cancel(context uint64) bool

	// Close ends all its operations with ErrClosed, in no order in particular, as the death of a peer ends those towards it.
	// Their completions can be read until the queue closes.
	Close() error
}

// CompletionQueue has the ends of operations, in the order in which they came.
type CompletionQueue interface {
	// Read takes completions that are there, without blocking; in manual mode it drives progress.
	// ErrClosed after Close, once the queue is empty.
	Read(c []Completion) (int, error)
	// Wait takes at least one completion, or gives the context's error, ErrSignal or ErrClosed. It polls for
	// a short while and then sleeps. It gives 0 and nil in one case: a post that fills this queue got ErrAgain, and
	// can be tried again.
	Wait(ctx context.Context, c []Completion) (int, error)
	// Signal wakes one Wait, or the next one if there is none now, with ErrSignal.
	Signal()
	// Ready is sent to when completions or room for posts may have come. After a receive from it, Read
	// until nothing is left. In manual mode nothing is sent while nobody calls the domain.
	Ready() <-chan struct{}
	// Descriptor is a file descriptor that polls as readable when Read may find something. It belongs to
	// the queue. Before each wait on it, call TryWait.
	Descriptor() (int, error)
	// TryWait arms the descriptor. False means: do not wait, Read first.
	TryWait() bool
	// Close wakes every waiter with ErrClosed. ErrBusy while an open endpoint uses the queue.
	Close() error
}

// Counter counts completions.
type Counter interface {
	// Value and Errors are the operations that ended well, and in error; in manual mode they drive progress.
	Value() uint64
	Errors() uint64
	// Add and Set change the value.
	Add(n uint64)
	Set(n uint64)
	// Wait sleeps until the value is n at least. An operation that ends in error ends the wait with
	// its error; the context and Close end it too.
	Wait(ctx context.Context, n uint64) error
	Close() error
}

// MemoryChecker is a Domain that by itself refuses, with ErrInvalid, segments of memory that is closed, of another domain, or
// of another provider. Who calls it need not look, which costs more than a short message.
type MemoryChecker interface{ ChecksMemory() }

// Memory is registered memory.
type Memory interface {
	// Bytes is the memory, in full.
	Bytes() []byte
	// Key is what peers name it by.
	Key() Key
	// Access is what peers may do.
	Access() Access
	// Refresh tells that pages of the range came to life since; for providers with MemoryMode.Notify.
	Refresh(offset, n uint64) error
	// Close takes it back: afterwards no peer reads or writes it, and new attempts end with ErrKey. A post that names it is
	// refused with ErrInvalid, also one that began before. Arena memory is used again when the last view of it was released and
	// the last operation of the domain has ended of which a buffer lies in it, named as part of it or as raw bytes: such
	// operations go on as if it were open. It does not wait for a peer: operations of peers that run are
	// waited for a short time, and a peer that does not end them is dropped.
	Close() error
}

// View is a peer's memory, readable in place.
type View interface {
	// Bytes is valid until Release; writing to it is a fault.
	Bytes() []byte
	// Release gives it back; more than once is harmless.
	Release()
}
