package cp

import "github.com/weft-fabric/weft/internal/wire/sstmsg"

// ReaderKey names one reader cohort of a writer. The shell of the writer's
// member 0 issues the keys, from 1; it never uses one twice.
type ReaderKey int

// Distribution says which readers get a step (StepDistributionMode); the values
// are those of the wire.
type Distribution uint8

// Distributions of steps among reader cohorts.
const (
	AllToAll   Distribution = iota // every reader gets every step
	RoundRobin                     // readers take turns
	OnDemand                       // a step goes to the reader that asked first
)

// String names the distribution as the parameter does.
func (d Distribution) String() string {
	if int(d) >= len(distributionNames) {
		return "unknown"
	}
	return distributionNames[d]
}

var distributionNames = [...]string{"AllToAll", "RoundRobin", "OnDemand"}

// WriterConfig is what the leader of a writer needs to know.
type WriterConfig struct {
	Members int           // of the cohort, at least 1
	Contact string        // how readers reach member 0
	Params  string        // effective parameters of member 0: every member must have the same
	Planes  []string      // data planes served, best first; none counts as PlaneEvpath
	Wire    sstmsg.Params // parameters as readers see them

	Rendezvous int // readers that Started waits for; observers do not count

	QueueLimit      int    // steps in the queue; 0 means no limit
	QueueLimitBytes uint64 // bytes in the queue; 0 means no limit
	Discard         bool   // queue full: drop the new step instead of waiting
	BlockInBegin    bool   // wait before a step is begun, not when it has ended; means nothing with Discard
	Reserve         int    // newest steps that are kept for readers to come
	FirstPrecious   bool   // keep step 0 for readers to come
	Distribution    Distribution

	Preload bool   // push whole blocks to readers that ask for it
	MaxPush uint64 // largest block that is pushed; 0 means no limit
	// AskFrom is the size of a block, in bytes, from which on a step is not pushed to a
	// Weft reader that has nothing else to do: it would wait for all of it, and then
	// copy, while what it asks for comes straight to where it belongs. A reader that
	// is busy gets it pushed: then it comes meanwhile, and so does a step of many small
	// arrays, each of which it might ask for. 0 means never.
	AskFrom uint64

	LagNotice int    // steps behind at which a reader is reported; 0 means never
	LagLimit  int    // steps behind at which a reader is detached; 0 means never
	WarnBytes uint64 // bytes held at which to warn; 0 means never
}

// WriterEvent is something that happened to the leader of a writer.
type WriterEvent interface{ writerEvent() }

// Events of a writer's leader, beside FromMember and MemberLost.
type (
	// ContactPublished answers PublishContact.
	ContactPublished struct{ Err error }
	// Register is the ReaderRegister of a new reader. Contact is how it reaches
	// member 0 and every member that has the same contact as member 0.
	Register struct {
		Reader  ReaderKey
		Msg     *sstmsg.ReaderRegister
		Contact string
		Weft    bool
	}
	// FromReader is any later message of a reader.
	FromReader struct {
		Reader ReaderKey
		Msg    sstmsg.Message
	}
	// ReaderLost says that the control link of a reader is gone.
	ReaderLost struct {
		Reader ReaderKey
		Err    error
	}
	// EndStream gives everything up at once. Err says why; an ErrClosed is the
	// normal end.
	EndStream struct{ Err error }
)

func (ContactPublished) writerEvent() {}
func (Register) writerEvent()         {}
func (FromReader) writerEvent()       {}
func (ReaderLost) writerEvent()       {}
func (EndStream) writerEvent()        {}

// WriterAction is something that the shell of a writer's leader must do, in order.
type WriterAction interface{ writerAction() }

// Actions of a writer's leader, beside ToMember and ToAll.
type (
	// PublishContact says that every member is there: write the contact file, then
	// say ContactPublished.
	PublishContact struct{}
	// SendToReader sends on the control link of a reader.
	SendToReader struct {
		Reader ReaderKey
		Msg    sstmsg.Message
	}
	// DropReader forgets the reader and its link, after what was sent. Err is nil
	// if it left by itself. Cut says that only the end of its link can tell it.
	DropReader struct {
		Reader ReaderKey
		Err    error
		Cut    bool
	}
	// Lagging reports a reader that is more than LagNotice steps behind. It comes
	// again only after the reader has caught up to half of that.
	Lagging struct {
		Reader ReaderKey
		Steps  int64
	}
	// Watermark reports that more than WarnBytes are held. It comes again only
	// after they fell below half of that. Reader holds the oldest step; 0: none does.
	Watermark struct {
		Bytes  uint64
		Steps  int
		Reader ReaderKey
	}
	// Notice is something the user should read, once.
	Notice struct{ Text string }
	// Changed wakes whoever looks at the machine.
	Changed struct{}
)

func (PublishContact) writerAction() {}
func (SendToReader) writerAction()   {}
func (DropReader) writerAction()     {}
func (Lagging) writerAction()        {}
func (Watermark) writerAction()      {}
func (Notice) writerAction()         {}
func (Changed) writerAction()        {}

// Counts are the steps of one reader as its writer counts them, and what it is.
type Counts struct {
	Active    bool
	Observer  bool
	Plane     string // PlaneEvpath, or what it reaches of the writer's memory; PlaneNative until it has said that
	Sent      int64  // steps sent to it
	Released  int64  // steps that it gave back
	Dropped   int64  // steps announced to it as discarded
	Lag       int64  // steps it is behind
	Held      int    // steps that are kept for it
	HeldBytes uint64 // of them
}

// MemberConfig is what a member of a writer needs to know.
type MemberConfig struct {
	Hello        WriterHello
	BlockInBegin bool // as the leader's
}

// Events of a writer's member, beside MemberStart, FromLeader and LeaderLost.
type (
	// BeginTry is a BeginStep. The caller has made sure of CanBegin.
	BeginTry struct{}
	// EndTry ends the open step. Try is filled in by the machine, which owns the
	// message from here on. The data of the step is in its place already, under
	// NextStep: a reader may ask for it before the member knows the verdict.
	EndTry struct{ *Contribute }
	// HasRoom takes Contribute.Full of the newest try back.
	HasRoom struct{}
	// AbortTry gives the newest step up, open or ended. The verdict comes all the
	// same, and may be that the step was published before.
	AbortTry struct{ Err error }
	// MemberFinish says that the member begins no further step.
	MemberFinish struct{}
	// ReaderAdmitted answers AdmitReader.
	ReaderAdmitted struct{ *Admitted }
	// PushBroke says that a PushStep failed.
	PushBroke struct{ *PushFailed }
)

func (BeginTry) writerMemberEvent()       {}
func (EndTry) writerMemberEvent()         {}
func (HasRoom) writerMemberEvent()        {}
func (AbortTry) writerMemberEvent()       {}
func (MemberFinish) writerMemberEvent()   {}
func (ReaderAdmitted) writerMemberEvent() {}
func (PushBroke) writerMemberEvent()      {}

// Actions of a writer's member, beside ToLeader.
type (
	// Welcomed says which writer ranks the member stands for: from Base on, of
	// Ranks in the whole stream.
	Welcomed struct{ Base, Ranks int }
	// AdmitReader issues identities for a new reader, one for each rank of the
	// member; then comes ReaderAdmitted.
	AdmitReader struct{ *Admit }
	// ReplaneReader says that a reader has another plane than AdmitReader said, before
	// it is sent a step.
	ReplaneReader struct {
		Reader ReaderKey
		Plane  string
	}
	// DismissReader forgets a reader: nothing of it will be answered any more.
	DismissReader struct{ Reader ReaderKey }
	// PushStep sends the data blocks of the step to every rank of the reader.
	PushStep struct {
		Reader ReaderKey
		Step   int64
	}
	// FreeStep says that nobody needs the step's data any more.
	FreeStep struct{ Step int64 }
	// DropTry says that the ended step of that number did not come about: its data
	// can go.
	DropTry struct{ Step int64 }
)

func (Welcomed) writerMemberAction()      {}
func (AdmitReader) writerMemberAction()   {}
func (ReplaneReader) writerMemberAction() {}
func (DismissReader) writerMemberAction() {}
func (PushStep) writerMemberAction()      {}
func (FreeStep) writerMemberAction()      {}
func (DropTry) writerMemberAction()       {}
func (Changed) writerMemberAction()       {}

// WriterPhase is where a member of a writer stands.
type WriterPhase uint8

// Phases of a writer's member, in order.
const (
	WriterJoining  WriterPhase = iota // waiting for the other members
	WriterWelcomed                    // every member is there, waiting for readers
	WriterStarted                     // steps can be written
	WriterFinished                    // no further step of this member; readers take what is there
	WriterDrained                     // the stream is over, every data can go
	WriterFailed                      // the stream is over before its time, every data can go
)

// String names the phase.
func (p WriterPhase) String() string {
	return [...]string{"joining", "welcomed", "started", "finished", "drained", "failed"}[p]
}
