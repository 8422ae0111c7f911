package provider

import (
	"log/slog"
	"time"
)

// DomainConfig says how a domain is to be. The zero value is right for most.
type DomainConfig struct {
	Progress Progress
	// Logger hears of what a person should know, never of single messages; nil discards.
	Logger *slog.Logger
	// Tracer hears of every event; nil costs nothing.
	Tracer *Tracer
	// Memory bounds the bytes of arenas of this domain; 0 means no bound but the system's.
	Memory uint64
	// Spin is how long a Wait polls before it sleeps; 0 means the provider's choice, which is none where
	// there are more busy processes than cores. Negative means never.
	Spin time.Duration
	// Options are the provider's own, by name; an unknown one is an error with a suggestion. The provider's
	// page in docs/prov lists them.
	Options map[string]string
}

// EndpointConfig says how an endpoint is to be.
type EndpointConfig struct {
	Name string // what others reach it by; "" means a random one
	// Send and Recv take the completions; they may be the same. They must be of the same domain.
	Send, Recv CompletionQueue
	// Counters count completions as well, or, with Quiet, instead. Each may be nil.
	Counters Counters
	// Depth bounds the outstanding operations of each direction; 0 means 1024. More get ErrAgain.
	Depth int
	// Unexpected bounds the bytes of messages that wait here for a receive, for each peer; 0 means 1 MiB.
	// Beyond it the peer waits, and gets ErrAgain.
	Unexpected uint64
	// MinMultiRecv is when the buffer of a Multi receive is used up: fewer bytes than this are left; 0 means 64.
	MinMultiRecv int
}

// Counters of an endpoint, by what they count.
type Counters struct {
	Send, Recv, Read, Write, RemoteWrite Counter
}

// CQConfig says how a completion queue is to be.
type CQConfig struct {
	// Size bounds the completions that may be outstanding or unread; 0 means 4096. A post that could
	// overflow the queue gets ErrAgain: no completion is ever lost.
	Size int
}

// Tracer hears of events as they happen, from any goroutine; it must not call the domain. Each field
// may be nil.
type Tracer struct {
	Post     func(kind Kind, op *Op, err error) // an operation was accepted, or refused with err; op is valid during the call
	Complete func(c *Completion)                // a completion was queued; valid during the call
	PeerUp   func(p Peer, a Address)            // a peer is connected
	PeerGone func(p Peer, a Address, why error)
	Sleep    func() // the progress engine goes to sleep
	Wake     func() // and was woken
}

// Stats are numbers of a domain since it was opened.
type Stats struct {
	Sent, Received          uint64 // messages
	BytesSent, BytesRecv    uint64 // of messages
	Reads, Writes           uint64 // RMA by this side
	BytesRead, BytesWritten uint64
	Atomics                 uint64
	Errors                  uint64 // completions with an error
	Again                   uint64 // posts that got ErrAgain
	Wakes                   uint64 // times the engine was woken
	Rings                   uint64 // doorbells this side rang
	Peers                   int    // connected now

	Arena, ArenaMost uint64        // bytes of arenas now, and at most so far: what DomainConfig.Memory bounds
	ArenaUsed        uint64        // of them in memory that is allocated, or waits for its last use to end
	Views, ViewsMost int           // of peers' memory that are held now, and at most so far at a time
	ViewBytes        uint64        // of the views that are held
	OldestView       time.Duration // how long the oldest of them has been held; 0 if there is none
}

// PeerStats are numbers of one peer.
type PeerStats struct {
	Peer                                 Peer
	Address                              Address
	State                                string // "new", "connecting", "connected", "gone"
	Path                                 string // how bytes move: "arena, bounce" or "process_vm"
	Sent, Received, BytesSent, BytesRecv uint64
	Unexpected                           uint64 // bytes that wait here for a receive
	Memory                               uint64 // bytes mapped for it
	Why                                  error  // of a peer that is gone
}
