package carrier

import (
	"context"
	"net/netip"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// Release is what contact and handshake reveal about the software of a peer. It
// decides which variant of a message the peer understands (docs/wire/sst.md §4).
type Release uint8

// Releases of peers.
const (
	// ReleaseUnknown is the zero value: no handshake has been seen.
	ReleaseUnknown Release = iota
	// Release210 is ADIOS2 2.10.x or earlier: CM ID 5 (docs/wire/cm.md §3).
	Release210
	// ReleaseNewer is ADIOS2 2.11 or later, or a Weft peer that dialled us: the
	// handshake does not tell them apart.
	ReleaseNewer
	// ReleaseWeft is a Weft peer that we dialled by a contact with Weft's mark.
	ReleaseWeft
)

// String names the release.
func (r Release) String() string {
	switch r {
	case Release210:
		return "ADIOS2 2.10 or earlier"
	case ReleaseNewer:
		return "ADIOS2 2.11 or later, or Weft"
	case ReleaseWeft:
		return "Weft"
	}
	return "unknown"
}

// Record is one encoded message on its way out.
type Record struct {
	// Format is the format of the record; it is pushed before its first use.
	Format *ffs.Format
	// Parts is the record, in pieces, beginning with its 12-byte format ID. The
	// carrier reads them until Done is called; until then nobody may write to them.
	Parts [][]byte
	// Lasting says that nobody writes to Parts as long as the peer may look at the
	// record, also after Done: large parts are then sent without a copy, and what is
	// written to them is what a peer gets that reads them later.
	Lasting bool
	// Done, which may be nil, is called exactly once, when the carrier needs
	// Parts no longer: with nil when they have been handed to the kernel, else
	// with the reason why not. It runs on the link's writing goroutine, or inside
	// Send, and must not block.
	Done func(error)
	// Begun, which may be nil, is set before the first byte of the record is
	// written: while it is not, the peer can have seen nothing of it.
	Begun *atomic.Bool
}

// Inbound is one encoded message that has come in.
type Inbound struct {
	// Format is the format that the peer pushed for the record.
	Format *ffs.Format
	// Data is the record, its format ID included: all of it, or what comes before
	// Placed. It belongs to the receiver until Free is called.
	Data []byte
	// Placed is the placement that holds the end of the record, nil if Data is all.
	Placed *Placement
	// Free gives Data back, so that later records can use its memory. Never nil,
	// safe to call from any goroutine, idempotent. Not calling it costs no more
	// than the garbage collector.
	Free func()
}

// Handler is told what happens on the links of an endpoint. Calls for one link
// come one after the other, from that link's reading goroutine or inside a Poll of
// it; calls for different links come concurrently, but for those of one Fabric. None may wait for Link.Done.
type Handler interface {
	// Message hands over a record, in the order in which the peer sent them. It
	// must not block for long: meanwhile nothing is read from this peer.
	// The link may be one that the engine has not seen yet: a peer dialled us, or
	// Dial has not returned yet.
	Message(l Link, in Inbound)
	// Lost says that the link is gone. It is called exactly once for each link,
	// after its last Message. err is nil only if Close was called and everything
	// queued was written before; otherwise it is a *LinkError.
	Lost(l Link, err error)
}

// Link is an ordered channel to one peer.
type Link interface {
	// Send queues r and returns; it never waits for the peer, but may write what
	// is small itself. Records are written in the order of the calls. An error
	// means that r was not queued, and r.Done has been called with it.
	Send(r Record) error
	// SendAll is Send for records that belong together: they are queued all or
	// none, and what is small goes out in one piece, so that the peer wakes once.
	// The slice is the caller's again when it returns.
	SendAll(records []Record) error
	// Poll reads what has come, without waiting, and has the Handler take it on this
	// goroutine. It reports whether anything had come. Who waits for a message that
	// comes soon is spared the way over the reading goroutine.
	Poll() bool
	// Close starts an orderly end and returns at once: what is queued is written,
	// the peer gets an end of stream, records from it are dropped, all within
	// Config.CloseTimeout. Lost, and then Done, tell when it is over. Idempotent;
	// always nil.
	Close() error
	// Abort drops the connection at once. Queued records are done with an error;
	// Lost gets err, or ErrAborted if it is nil.
	Abort(err error)
	// Done is closed when the link is gone and Lost has returned.
	Done() <-chan struct{}
	// PeerIsWeft says that the peer is Weft, which the carrier knows by itself only
	// of links that it has dialled. Such a peer never waits for an acknowledgement
	// (docs/wire/cm.md §3), so no read need be followed by one.
	PeerIsWeft()
	// Info returns a snapshot.
	Info() LinkInfo
}

// LinkInfo describes a link at one moment.
type LinkInfo struct {
	Peer          string         // the other side, for people: where it is
	Local, Remote netip.AddrPort // ends of the connection; zero of a link over a fabric
	Inbound       bool           // the peer dialled
	PeerCMID      uint32         // from the peer's handshake; cm.ID210 for 2.10
	PeerPort      uint16         // on which the peer says it listens; 0: on none
	Release       Release

	MessagesIn, MessagesOut   uint64 // records handed to the Handler; records written
	BytesIn, BytesOut         uint64 // on the wire, all units
	QueuedRecords             int    // accepted by Send, not yet written
	QueuedBytes               int64  // in their Parts
	FormatsKnown, FormatsSent int    // pushed by the peer; pushed by us
}

// Endpoint is a place in the world of one carrier: it accepts links and opens
// them.
type Endpoint interface {
	// Contact returns what to publish so that peers can dial this endpoint.
	Contact() cm.Contact
	// ContactFor returns what to tell the peer of l: the same, with the address
	// under which that peer sees us.
	ContactFor(l Link) cm.Contact
	// Dial returns an open link to the process that c names: an existing one, in
	// either direction, or a new one. Concurrent calls share one attempt. Errors
	// wrap ErrWrongPeer if the contact is stale, cm.ErrNoAddress if it cannot be
	// dialled at all, or the cause.
	Dial(ctx context.Context, c cm.Contact) (Link, error)
	// Close closes all links as Link.Close does, and everything else, and returns
	// when no goroutine and no callback is left. Idempotent.
	Close() error
}
