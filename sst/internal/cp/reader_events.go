package cp

import "github.com/weft-fabric/weft/internal/wire/sstmsg"

// Phase is where a reader cohort stands with its writer.
type Phase uint8

// Phases of a reader, in order.
const (
	Idle        Phase = iota // no link: the shell looks for the writer
	Querying                 // DPQuery sent; later: the plane is chosen, hellos are missing
	Registering              // ReaderRegister sent: from here on the writer depends on us
	Routing                  // the members try how far they reach into the writer's memory
	Streaming                // ReaderActivate sent
	Ended                    // WriterClose came, and every step was taken
	Parting                  // about to leave: waiting for a moment at which the writer survives that
	Broken                   // the writer is gone, or broke the protocol; steps that are here stay readable
	Closed                   // we left, or never got in
)

// String names the phase.
func (p Phase) String() string {
	return [...]string{"idle", "querying", "registering", "routing", "streaming", "ended", "parting", "broken", "closed"}[p]
}

// ReaderConfig is what the leader of a reader needs to know.
type ReaderConfig struct {
	Members     int      // of the cohort; 0 counts as 1
	Params      string   // effective parameters of member 0: each ReaderHello must have the same
	Planes      []string // data planes we have, best first
	SpecPreload bool     // ask for speculative preload
	Insist      bool     // on it, for steps of any size; Weft writers only
	Latest      bool     // AlwaysProvideLatestTimestep: skip to the newest step
	Observer    bool     // only look, and hold nobody up; Weft writers only
	Alone       int64    // not 0: our stream, in which the writer may be told to give up the link of the opening for the one beside it
}

// ReaderEvent is something that happened to the leader of a reader.
type ReaderEvent interface{ readerEvent() }

// Events of the leader of a reader; [FromMember] and [MemberLost] are two more.
type (
	// Attempt begins an opening: the link to a writer is up. There is another one
	// after each TryAgain, and no other.
	Attempt struct {
		StreamID    int64  // the writer's stream, from the contact file
		WeftVersion int32  // our version if the writer is Weft, else 0
		Cautious    bool   // leave only while the writer is not sending to us; see Parting
		Query       int32  // number of our DPQuery: replies carry nothing else
		Register    int32  // number of our ReaderRegister
		Contact     string // how the other end of this link reaches member 0, and every member with the same contact in its hello; "": as in the hellos
		Writer      string // address of the writer, for ReaderOpened
		Release     string // what the handshake told of its software, for ReaderOpened
	}
	// FromWriter is a message on the link of the present attempt. Its memory goes
	// back by one Recycle action.
	FromWriter struct {
		Msg  sstmsg.Message
		Free func() // may be nil
	}
	// WriterLost says that a control link of the present attempt is gone.
	WriterLost struct{ Err error }
	// Cancel gives the opening up: whoever looks for the writer has gone, or
	// cannot find it. It fails for every member.
	Cancel struct{ Err error }
	// Settled answers Part: for a while nothing has come from the writer.
	Settled struct{}
	// LeaveNow leaves without waiting for the members. Those that have not left get
	// StreamFailed with Err, or with ErrClosed if it is nil.
	LeaveNow struct{ Err error }
)

func (Attempt) readerEvent()    {}
func (FromWriter) readerEvent() {}
func (WriterLost) readerEvent() {}
func (Cancel) readerEvent()     {}
func (Settled) readerEvent()    {}
func (LeaveNow) readerEvent()   {}

// ReaderAction is something the shell of a reader's leader must do. Actions are
// carried out in order, and each list as a whole before the next list of the same
// machine. A ToMember or ToAll is done when the message is encoded for the others
// and queued for member 0: member 0 handles it after the list.
type ReaderAction interface{ readerAction() }

// Actions of the leader of a reader; [ToMember] and [ToAll] are two more.
type (
	// SendToWriter sends on the control link to a writer rank: 0 but in the Peer
	// pattern.
	SendToWriter struct {
		Msg  sstmsg.Message
		Rank int
	}
	// OpenFailed ends the opening for good: nobody need look for the writer any
	// more. The members hear of it by a StreamFailed that follows, except those
	// that have left. Err is the error itself, not a Fault of it.
	OpenFailed struct{ Err error }
	// TryAgain says that the writer ended before it knew of us: the shell looks for
	// another one, and goes on with Attempt or Cancel. The old link was dropped
	// before; what still comes on it is not for the machine. Err wraps ErrTooLate.
	TryAgain struct{ Err error }
	// Recycle gives a message's memory back: nothing of this machine refers to it
	// any more, and member 0 has released the step, if it is one.
	Recycle struct{ Free func() }
	// Part asks for a Settled event after a while.
	Part struct{}
	// DropLink closes the control links, if there are any, after what was sent.
	DropLink struct{}
	// Wake says that what the machine answers may have changed: on a leader the
	// phase or the members present, on a member that a waiting Next may succeed.
	Wake struct{}
)

func (SendToWriter) readerAction() {}
func (OpenFailed) readerAction()   {}
func (TryAgain) readerAction()     {}
func (Recycle) readerAction()      {}
func (Part) readerAction()         {}
func (DropLink) readerAction()     {}
func (Wake) readerAction()         {}
