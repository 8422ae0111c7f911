package cp

import "github.com/weft-fabric/weft/internal/wire/sstmsg"

// ReaderLeader is the machine that stands between a writer and all members of a
// reader: it alone speaks with the writer, and hands steps on.
//
// Each step's message goes to every member. The leader keeps its memory until
// member 0, who gets the message as it is, has released the step; the writer
// hears of the release when every member has.
type ReaderLeader struct {
	actions[ReaderAction]

	cfg     ReaderConfig
	attempt Attempt
	phase   Phase
	failure error

	// The opening.
	abandoned bool   // nobody waits for it any more: finish the handshake, then leave
	plane     string // what the writer chose; once the routes are tried, what it is
	response  *sstmsg.WriterResponse
	peers     map[int]bool // writer ranks that are up, Peer pattern only
	writers   []int64      // WSR_Stream of each writer rank that we talk to
	tries     int64        // counts TryRoutes

	// The members.
	seats    []readerSeat
	present  int
	unlocked int // present members that have not locked

	// The steps.
	queue     fifo[arrival]
	whole     int         // steps in queue that are not discarded
	held      []*heldRead // handed out, not over yet, rising
	taken     int64       // index of the next step to hand out
	lastSeen  int64       // number of the last step that came, -1 for none
	skipped   int64       // steps up to the last StepTo that the writer dropped or we passed over
	requested bool        // OnDemand: a ReaderRequestStep is out
	lockSaid  bool        // LockReaderDefinitions was sent

	// The end.
	closing bool // WriterClose came
	ended   bool // StreamEnd is out
	gone    bool // the writer does not hear us any more
	linked  bool // DropLink is still due
}

// readerSeat is what the leader knows of a member.
type readerSeat struct {
	hello  *ReaderHello
	routed *Routed // its answer to the newest TryRoutes
	asked  int64   // index of the step it waits for, or waited for last
	locked bool
	away   bool // left, or lost
}

// NewReaderLeader returns a leader in phase Idle.
func NewReaderLeader(cfg ReaderConfig) *ReaderLeader {
	cfg.Members = max(cfg.Members, 1)
	l := &ReaderLeader{cfg: cfg, lastSeen: -1, seats: make([]readerSeat, cfg.Members), present: cfg.Members, unlocked: cfg.Members}
	for i := range l.seats {
		l.seats[i].asked = -1
	}
	return l
}

// Phase returns where the cohort stands.
func (l *ReaderLeader) Phase() Phase { return l.phase }

// Opening reports whether the handshake is under way.
func (l *ReaderLeader) Opening() bool { return l.phase <= Routing }

// Pending reports whether the writer still depends on us: the link must not be
// dropped.
func (l *ReaderLeader) Pending() bool {
	return l.phase == Registering || l.phase == Routing || l.phase == Parting
}

// Plane returns the data plane in use, "" before the writer answered. While the
// routes are tried it is what the writer chose.
func (l *ReaderLeader) Plane() string { return l.plane }

// Queued returns how many whole steps have come that no member has asked for.
func (l *ReaderLeader) Queued() int { return l.whole }

// Held returns how many steps the members have that were not released to the
// writer.
func (l *ReaderLeader) Held() int {
	n := 0
	for _, h := range l.held {
		if !h.told {
			n++
		}
	}
	return n
}

// Skipped returns how many steps, up to the last one handed out, the writer
// dropped or the cohort passed over.
func (l *ReaderLeader) Skipped() int64 { return l.skipped }

// Present returns how many members have neither left nor are lost.
func (l *ReaderLeader) Present() int { return l.present }

// Laggards returns the members that the writer waits for: those that hold the
// oldest step that was handed out.
func (l *ReaderLeader) Laggards() []int {
	var list []int
	for _, h := range l.held {
		if h.owed == 0 {
			continue
		}
		for m := range l.seats {
			if !h.done(m) {
				list = append(list, m)
			}
		}
		return list
	}
	return nil
}

// Failure returns why the stream ended before its time, nil if it did not.
func (l *ReaderLeader) Failure() error { return l.failure }

// Handle takes one event and returns what to do. The list belongs to the caller.
func (l *ReaderLeader) Handle(e ReaderEvent) []ReaderAction {
	switch e := e.(type) {
	case Attempt:
		l.begin(e)
	case FromWriter:
		l.receive(e)
	case WriterLost:
		l.lost(e.Err)
	case FromMember:
		l.member(e)
	case MemberLost:
		l.memberLost(e.Member, e.Err)
	case Cancel:
		l.cancel(e.Err)
	case Settled:
		l.part()
	case LeaveNow:
		l.leaveNow(e.Err)
	}
	return l.emitted()
}

// turn enters a phase.
func (l *ReaderLeader) turn(p Phase) {
	l.phase = p
	l.emit(Wake{})
}

func (l *ReaderLeader) recycle(free func()) {
	if free != nil {
		l.emit(Recycle{free})
	}
}

// send sends to writer rank 0.
func (l *ReaderLeader) send(m sstmsg.Message) { l.emit(SendToWriter{Msg: m}) }

// tell sends a message to every writer rank that listens to us, each with its
// own identity for us.
func (l *ReaderLeader) tell(m func(writerID int64) sstmsg.Message) {
	for rank, id := range l.writers {
		l.emit(SendToWriter{m(id), rank})
	}
}

// member handles a message of a member.
func (l *ReaderLeader) member(e FromMember) {
	if e.Member < 0 || e.Member >= len(l.seats) {
		return
	}
	switch m := e.Msg.(type) {
	case *ReaderHello:
		l.hello(e.Member, m)
	case *Ask:
		l.ask(e.Member, m.Index)
	case *Released:
		l.released(e.Member, m.Step)
	case *Locked:
		l.locked(e.Member)
	case *Left:
		l.left(e.Member, m.Looks)
	case *Routed:
		l.routed(e.Member, m)
	case *StreamFailed:
		l.memberFailed(e.Member, m.Cause)
	}
}

func (l *ReaderLeader) receive(e FromWriter) {
	if m, ok := e.Msg.(*sstmsg.TimestepMetadata); ok && l.phase == Streaming && m.Step > l.lastSeen {
		l.step(m, e.Free)
		return
	}
	l.answer(e.Msg)
	l.recycle(e.Free)
}
