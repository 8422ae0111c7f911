package cp

import "github.com/weft-fabric/weft/internal/wire/sstmsg"

// MemberReaderConfig is what a member of a reader needs to know.
type MemberReaderConfig struct {
	Hello ReaderHello
	Leads bool // member 0: it shares the leader's memory, and tells of it even after it has left
}

// ReaderMemberPhase is where one member of a reader stands.
type ReaderMemberPhase uint8

// Phases of a reader's member, in order.
const (
	ReaderIdle    ReaderMemberPhase = iota // not started
	ReaderOpening                          // ReaderHello sent
	ReaderReading                          // Open has returned; the end may be known already
	ReaderAtEnd                            // Next has said that no step follows
	ReaderFailed                           // the stream or the cohort broke
	ReaderLeft                             // the member has closed
)

// String names the phase.
func (p ReaderMemberPhase) String() string {
	return [...]string{"idle", "opening", "reading", "at end", "failed", "left"}[p]
}

// Events of a reader's member; [MemberStart], [FromLeader] and [LeaderLost] are
// three more.
type (
	// RoutesTried answers Route. The machine owns the message from here on.
	RoutesTried struct{ *Routed }
	// Next asks for the next step. If neither Deliver nor EndOfStream follows, the
	// caller waits for Wake and asks again.
	Next struct{}
	// Retain lets the application keep the open step while it goes on to later ones.
	Retain struct{ Step int64 }
	// Release says that the application is done with the step: nothing reads its
	// message or its data any more. Of steps that are not open it means nothing.
	Release struct{ Step int64 }
	// Lock says that the application reads the same selections from now on.
	Lock struct{}
	// MemberLeave closes the member. Err is what an opening or reads under way end
	// with; nil counts as ErrClosed. Steps that are open count as given back, but
	// Release is still due for them: only then their memory is free. Those whose memory in
	// the writer is still looked at (Looks) the writer keeps until the whole reader has
	// gone.
	MemberLeave struct {
		Err   error
		Looks []int64
	}
)

func (RoutesTried) readerMemberEvent() {}
func (Next) readerMemberEvent()        {}
func (Retain) readerMemberEvent()      {}
func (Release) readerMemberEvent()     {}
func (Lock) readerMemberEvent()        {}
func (MemberLeave) readerMemberEvent() {}

// Actions of a reader's member; [ToLeader] and [Wake] are two more.
type (
	// Route has the shell try the routes to the writer's processes, in the
	// background; then comes RoutesTried with the same number. Opened says whether they
	// are used. OpenFailed ends the trying, another Route, which is to another writer,
	// does too: answers to what came before mean nothing.
	Route struct{ *TryRoutes }
	// Opened ends Open with success.
	Opened struct{ *ReaderOpened }
	// Absorb takes formats and attributes of a step in, whether or not the step is
	// delivered. The messages come in rising order. It copies what it keeps.
	Absorb struct{ Msg *sstmsg.TimestepMetadata }
	// Deliver hands a step to the application, until Release.
	Deliver struct{ Msg *sstmsg.TimestepMetadata }
	// EndOfStream ends a Next: no more steps. Err is nil after WriterClose.
	EndOfStream struct{ Err error }
	// Forget drops data that was preloaded for the step and all before it, except
	// for those that are open.
	Forget struct{ Step int64 }
	// Drop says that the steps From..To will not be delivered, although earlier ones
	// may still be: what was preloaded for them goes, whenever it comes.
	Drop struct{ From, To int64 }
	// Expect says that the step will be delivered, and that none before it will that
	// has not come yet.
	Expect struct{ Step int64 }
	// FailReads ends the reads under way, and all later ones that need the writer.
	FailReads struct{ Err error }
)

func (Route) readerMemberAction()       {}
func (Opened) readerMemberAction()      {}
func (OpenFailed) readerMemberAction()  {}
func (Absorb) readerMemberAction()      {}
func (Deliver) readerMemberAction()     {}
func (EndOfStream) readerMemberAction() {}
func (Forget) readerMemberAction()      {}
func (Drop) readerMemberAction()        {}
func (Expect) readerMemberAction()      {}
func (FailReads) readerMemberAction()   {}
func (Wake) readerMemberAction()        {}
