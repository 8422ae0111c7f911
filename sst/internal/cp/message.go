package cp

import "github.com/weft-fabric/weft/internal/wire/sstmsg"

// Message is what the ranks of one cohort tell each other: a pointer to one of
// the structs below. Rank 0 leads; every rank, it too, is a member. Messages go
// between the leader and the members, in order. A message that was handed over
// belongs to the receiver: the sender never changes it.
type Message interface{ cohortMessage() }

// Messages of a writer's member to its leader.
type (
	// WriterHello is the first message of a member.
	WriterHello struct {
		Ranks   int    // consecutive writer ranks that the member stands for; 0 is possible
		Contact string // how readers reach the member
		Native  string // how readers of the native plane reach its memory; "": they do not
		Params  string // effective parameters as text: they must be alike everywhere
	}
	// Contribute is a member's share of a step: the member has ended it.
	Contribute struct {
		Try        int64                // counts the member's BeginStep calls, from 0
		Formats    []sstmsg.FormatBlock // that the member has not sent before
		Metadata   []sstmsg.Block       // one for each rank of the member
		Attributes []sstmsg.Blob        // one for each rank of the member: all its attributes; empty: as before
		Bytes      []uint64             // size of the data block of each rank
		Native     []sstmsg.Block       // one for each rank of the member, where its data lies; empty: nowhere to look at
		Full       bool                 // the member has no room yet: it still sends steps that readers have given back
	}
	// Room takes Contribute.Full back: the member has room now.
	Room struct{ Try int64 }
	// Withdraw gives the member's part in a try up, whether it has contributed
	// or not: unless the verdict is out, nobody's step comes about.
	Withdraw struct {
		Try   int64
		Cause Fault
	}
	// Admitted answers Admit: by these identities the reader will address the
	// member's ranks.
	Admitted struct {
		Reader  ReaderKey
		Control []int64
		Data    []int64
	}
	// PushFailed says that a block could not be pushed to a rank of the reader, or
	// that the reader does not read what was sent to it: it has to go.
	PushFailed struct {
		Reader ReaderKey
		Cause  Fault
	}
	// Finished says that the member begins no further step.
	Finished struct{}
)

// Messages of a writer's leader to its members.
type (
	// Welcome says that every member is there.
	Welcome struct {
		Base  int // first writer rank of this member
		Ranks int // of the whole stream
	}
	// Started says that enough readers are there: Create may return.
	Started struct{}
	// Go lets the members begin a try; only if steps are held up there.
	Go struct{ Try int64 }
	// Verdict ends a try, for all members alike.
	Verdict struct {
		Try     int64
		Step    int64
		Outcome Outcome
		Cause   Fault // why it was aborted
	}
	// Admit announces a reader: requests of it may come as soon as every member
	// has answered.
	Admit struct {
		Reader ReaderKey
		Ranks  []sstmsg.EvpathReader
		Weft   bool
		// Observer says that nobody waits for it.
		Observer bool
		Plane    string // that it has registered for: PlaneEvpath or PlaneNative
	}
	// Replane says that a reader turns out to have another plane than it was admitted
	// with. It comes before any step is sent to the reader.
	Replane struct {
		Reader ReaderKey
		Plane  string // PlaneEvpath or PlaneMixed
	}
	// Dismiss says that the reader is gone.
	Dismiss struct{ Reader ReaderKey }
	// Push asks the member to send its blocks of the step to every rank of the reader.
	Push struct {
		Reader ReaderKey
		Step   int64
	}
	// Free says that nobody needs the step's data any more.
	Free struct{ Step int64 }
	// Drained says that the stream is over: every reader has what it wanted.
	Drained struct{}
)

// Outcome is how a try ended.
type Outcome uint8

// Outcomes of a try.
const (
	Published Outcome = iota // the step is out
	Discarded                // its number is used, its data dropped by policy
	Aborted                  // as if it had never begun; its number is used again
)

// Messages of a reader's member to its leader.
type (
	// ReaderHello is the first message of a member: how the writer's ranks reach it.
	ReaderHello struct {
		CP     sstmsg.CPReader
		DP     sstmsg.EvpathReader
		Params string // effective parameters as text: they must be alike everywhere
	}
	// Ask says that the member waits for its Index-th step, from 0.
	Ask struct{ Index int64 }
	// Released says that the member has no use for the step any more.
	Released struct{ Step int64 }
	// Locked says that the member reads the same selections from now on.
	Locked struct{}
	// Left says that the member has closed: it wants no step, and holds none but those
	// whose memory it still looks at. These the writer keeps until the whole reader has
	// gone.
	Left struct{ Looks []int64 }
	// Routed answers TryRoutes.
	Routed struct {
		Try    int64
		Native int   // writer ranks whose process's memory the member can look at
		Total  int   // writer ranks
		Cause  Fault // why not all of them: the first reason
	}
)

// Messages of a reader's leader to its members.
type (
	// TryRoutes asks the member how far it reaches into the writer's memory.
	TryRoutes struct {
		Try      int64    // counts them, from 1
		Contacts []string // native contact of each writer rank, "" for none
	}
	// ReaderOpened ends a member's opening with success.
	ReaderOpened struct {
		Response *sstmsg.WriterResponse
		Plane    string // of the whole reader: PlaneEvpath, PlaneNative or PlaneMixed
		Weft     bool   // the writer is Weft
		Writer   string // address of the writer's rank 0
		Release  string // what the handshake told of the writer's software
	}
	// StepTo brings a step, or, if Index is -1, formats and attributes of one that
	// is not delivered: its Metadata is nil.
	StepTo struct {
		Index   int64 // counts the delivered steps, from 0
		Msg     *sstmsg.TimestepMetadata
		Skipped int64 // steps up to this one that the writer dropped or the reader passed over
	}
	// StreamEnd comes after the last StepTo. A zero Cause: the writer closed.
	StreamEnd struct{ Cause Fault }
	// WriterGone says that the writer failed: reads under way will not be answered.
	WriterGone struct{ Cause Fault }
)

// StreamFailed ends a stream for every member that it reaches, writer or reader.
// A member that cannot go on, or not even begin, says it to the leader.
type StreamFailed struct{ Cause Fault }

func (*WriterHello) cohortMessage()  {}
func (*Contribute) cohortMessage()   {}
func (*Room) cohortMessage()         {}
func (*Withdraw) cohortMessage()     {}
func (*Admitted) cohortMessage()     {}
func (*PushFailed) cohortMessage()   {}
func (*Finished) cohortMessage()     {}
func (*Welcome) cohortMessage()      {}
func (*Started) cohortMessage()      {}
func (*Go) cohortMessage()           {}
func (*Verdict) cohortMessage()      {}
func (*Admit) cohortMessage()        {}
func (*Replane) cohortMessage()      {}
func (*Dismiss) cohortMessage()      {}
func (*Push) cohortMessage()         {}
func (*Free) cohortMessage()         {}
func (*Drained) cohortMessage()      {}
func (*ReaderHello) cohortMessage()  {}
func (*Ask) cohortMessage()          {}
func (*Released) cohortMessage()     {}
func (*Locked) cohortMessage()       {}
func (*Left) cohortMessage()         {}
func (*Routed) cohortMessage()       {}
func (*TryRoutes) cohortMessage()    {}
func (*ReaderOpened) cohortMessage() {}
func (*StepTo) cohortMessage()       {}
func (*StreamEnd) cohortMessage()    {}
func (*WriterGone) cohortMessage()   {}
func (*StreamFailed) cohortMessage() {}
