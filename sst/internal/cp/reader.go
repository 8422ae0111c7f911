package cp

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// Phase is where a reader stands with its writer.
type Phase uint8

// Phases of a reader, in order.
const (
	Idle        Phase = iota
	Querying          // DPQuery sent
	Registering       // ReaderRegister sent: from here on the writer depends on us
	Streaming         // ReaderActivate sent
	Ended             // WriterClose came, and every step was taken
	Parting           // about to leave: waiting for a moment at which the writer survives that
	Failed            // the writer is gone, or broke the protocol
	Closed            // we left
)

// String names the phase.
func (p Phase) String() string {
	return [...]string{"idle", "querying", "registering", "streaming", "ended", "parting", "failed", "closed"}[p]
}

// ReaderConfig is what a reader machine needs to know.
type ReaderConfig struct {
	StreamID    int64               // the writer's stream, from the contact file
	Planes      []string            // data planes we have, best first
	SpecPreload bool                // ask for speculative preload
	Latest      bool                // AlwaysProvideLatestTimestep: skip to the newest step
	WeftVersion int32               // our version if the writer is Weft, else 0
	Cautious    bool                // leave only while the writer is not sending to us; see Parting
	Query       int32               // number of our DPQuery: replies carry nothing else
	Register    int32               // number of our ReaderRegister
	CP          sstmsg.CPReader     // our control contact
	DP          sstmsg.EvpathReader // our data contact
}

// ReaderEvent is something that happened to a reader.
type ReaderEvent interface{ readerEvent() }

// Events of a reader.
type (
	// Start begins the opening; the link to the writer is up.
	Start struct{}
	// FromWriter is a message. Its memory is handed back by a Recycle or a
	// Deliver action.
	FromWriter struct {
		Msg  sstmsg.Message
		Free func()
	}
	// WriterLost says that a control link is gone.
	WriterLost struct{ Err error }
	// Cancel says that the caller of Open has gone.
	Cancel struct{ Err error }
	// Next asks for a step.
	Next struct{}
	// Release says that the application is done with the step.
	Release struct{ Step int64 }
	// Settled says that for a while nothing has come from the writer.
	Settled struct{}
	// Leave closes the reader. Err is what an opening under way ends with.
	Leave struct{ Err error }
)

func (Start) readerEvent()      {}
func (FromWriter) readerEvent() {}
func (WriterLost) readerEvent() {}
func (Cancel) readerEvent()     {}
func (Next) readerEvent()       {}
func (Release) readerEvent()    {}
func (Leave) readerEvent()      {}
func (Settled) readerEvent()    {}

// ReaderAction is something the shell must do, in order.
type ReaderAction interface{ readerAction() }

// Actions of a reader.
type (
	// SendToWriter sends on the control link to a writer rank: 0 but in the Peer
	// pattern.
	SendToWriter struct {
		Msg  sstmsg.Message
		Rank int
	}
	// Opened ends Open with success.
	Opened struct{ Response *sstmsg.WriterResponse }
	// OpenFailed ends Open with an error.
	OpenFailed struct{ Err error }
	// Absorb takes formats and attributes of a step in, whether or not the step
	// is delivered. The step's messages come in order.
	Absorb struct{ Step *sstmsg.TimestepMetadata }
	// Deliver hands a step to the application; Free after its release.
	Deliver struct {
		Step *sstmsg.TimestepMetadata
		Free func()
	}
	// EndOfStream ends a Next: no more steps. Err is nil after WriterClose.
	EndOfStream struct{ Err error }
	// Recycle gives a message's memory back, after the actions before it.
	Recycle struct{ Free func() }
	// Forget drops data that was preloaded for the step.
	Forget struct{ Step int64 }
	// Wake says that a waiting Next may now succeed.
	Wake struct{}
	// Part asks for a Settled event after a while.
	Part struct{}
	// DropLink closes the control link after what was sent.
	DropLink struct{}
)

func (SendToWriter) readerAction() {}
func (Opened) readerAction()       {}
func (OpenFailed) readerAction()   {}
func (Absorb) readerAction()       {}
func (Deliver) readerAction()      {}
func (EndOfStream) readerAction()  {}
func (Recycle) readerAction()      {}
func (Forget) readerAction()       {}
func (Wake) readerAction()         {}
func (DropLink) readerAction()     {}
func (Part) readerAction()         {}

// queued is a step that has arrived and was not taken yet.
type queued struct {
	step *sstmsg.TimestepMetadata
	free func()
}

func (q queued) discarded() bool { return q.step.Metadata == nil }

// Reader is the machine of a reader rank.
type Reader struct {
	cfg       ReaderConfig
	phase     Phase
	abandoned bool   // the caller of Open has gone: finish the handshake, then leave
	plane     string // what the writer chose
	response  *sstmsg.WriterResponse
	peers     map[int]bool // writer ranks that are up, Peer pattern only
	writers   []int64      // WSR_Stream of each writer rank that we talk to
	queue     []queued
	open      int64 // step the application holds, -1 for none
	lastSeen  int64
	firstSeen int64 // -1 before the first step
	closing   bool  // WriterClose came
	failure   error
	skipped   int64 // steps dropped by the writer, or passed over
}

// NewReader returns a machine in phase Idle.
func NewReader(cfg ReaderConfig) *Reader {
	return &Reader{cfg: cfg, open: -1, lastSeen: -1, firstSeen: -1, peers: map[int]bool{}}
}

// Phase returns where the reader stands.
func (r *Reader) Phase() Phase { return r.phase }

// Plane returns the data plane in use, "" before the writer answered.
func (r *Reader) Plane() string { return r.plane }

// Queued returns the steps that have arrived and wait to be taken.
func (r *Reader) Queued() int {
	n := 0
	for _, q := range r.queue {
		if !q.discarded() {
			n++
		}
	}
	return n
}

// FirstStep returns the number of the first step that the writer sent, dropped
// or not, and before it came what the writer announced. A real writer announces
// to a late reader a step that it may not send any more.
func (r *Reader) FirstStep() int64 {
	switch {
	case r.firstSeen >= 0:
		return r.firstSeen
	case r.response != nil:
		return r.response.NextStep
	}
	return 0
}

// Skipped returns how many steps the writer dropped or the reader passed over.
func (r *Reader) Skipped() int64 { return r.skipped }

// Failure returns why the stream ended before its time, nil if it did not.
func (r *Reader) Failure() error { return r.failure }

// Opening reports whether the handshake is under way.
func (r *Reader) Opening() bool { return r.phase <= Registering }

// Pending reports whether the writer still depends on us: the link must not be
// dropped.
func (r *Reader) Pending() bool { return r.phase == Registering || r.phase == Parting }

// Handle takes one event and returns what to do.
func (r *Reader) Handle(e ReaderEvent) []ReaderAction {
	switch e := e.(type) {
	case Start:
		return r.start()
	case FromWriter:
		return r.receive(e)
	case WriterLost:
		return r.lost(e.Err)
	case Cancel:
		return r.cancel(e.Err)
	case Next:
		return r.next()
	case Release:
		return r.release(e.Step)
	case Settled:
		return r.part()
	case Leave:
		return r.leave(e.Err)
	}
	return nil
}

func (r *Reader) start() []ReaderAction {
	if r.phase != Idle {
		return nil
	}
	r.phase = Querying
	return []ReaderAction{SendToWriter{Msg: &sstmsg.DPQuery{
		WriterID: r.cfg.StreamID, Condition: r.cfg.Query, Weft: r.cfg.WeftVersion,
	}}}
}

func (r *Reader) receive(e FromWriter) []ReaderAction {
	if m, ok := e.Msg.(*sstmsg.TimestepMetadata); ok && r.phase == Streaming && m.Step > r.lastSeen {
		return r.step(m, e.Free)
	}
	return append(r.answer(e.Msg), Recycle{e.Free})
}

// answer handles a message that is not kept.
func (r *Reader) answer(msg sstmsg.Message) []ReaderAction {
	switch m := msg.(type) {
	case *sstmsg.DPQueryResponse:
		return r.planeChosen(m)
	case *sstmsg.WriterResponse:
		return r.accepted(m)
	case *sstmsg.WriterClose:
		return r.writerClosed()
	case *sstmsg.PeerSetup:
		return r.peerUp(int(m.WriterRank))
	case *sstmsg.CommPatternLocked:
		return nil // nothing follows from it for a reader that never locks
	case *sstmsg.TimestepMetadata:
		if r.phase != Streaming {
			return r.part() // or a step that crossed our ReaderClose
		}
		return r.broken(fmt.Errorf("step %d after step %d: %w", m.Step, r.lastSeen, errUnexpected))
	}
	return r.broken(fmt.Errorf("%s in phase %v: %w", sstmsg.Name(msg), r.phase, errUnexpected))
}

// planeChosen decides everything that can be refused: after ReaderRegister it
// is too late.
func (r *Reader) planeChosen(m *sstmsg.DPQueryResponse) []ReaderAction {
	if m.DataPlane == PlaneEnded && (r.phase == Querying && m.Condition == r.cfg.Query || r.phase == Registering && m.Condition == r.cfg.Register) {
		r.phase = Closed
		if r.abandoned {
			return []ReaderAction{DropLink{}}
		}
		return []ReaderAction{OpenFailed{ErrTooLate}, DropLink{}}
	}
	if r.phase != Querying || m.Condition != r.cfg.Query {
		return nil // a late answer to a query we gave up
	}
	for _, p := range r.cfg.Planes {
		if p == m.DataPlane {
			r.plane, r.phase = p, Registering
			return []ReaderAction{SendToWriter{Msg: r.registration()}}
		}
	}
	r.phase = Closed
	return []ReaderAction{OpenFailed{&PlaneError{Writer: m.DataPlane, Ours: r.cfg.Planes}}, DropLink{}}
}

// PlaneEnded is the data plane that a Weft writer names when the stream has
// ended: to a query, and, if the reader is Weft too, to a registration. ADIOS2
// has no word for it.
const PlaneEnded = "ended"

// PlaneError says that the writer serves a data plane that this reader lacks.
type PlaneError struct {
	Writer string   // what the writer chose
	Ours   []string // what we have
}

// Error names both sides and the cure.
func (e *PlaneError) Error() string {
	return fmt.Sprintf("the writer serves the data plane %q, this reader has %q; set the engine parameter DataTransport to WAN in the writer", e.Writer, e.Ours)
}

// Unwrap makes the error an ErrPlane.
func (e *PlaneError) Unwrap() error { return ErrPlane }

func (r *Reader) registration() *sstmsg.ReaderRegister {
	m := &sstmsg.ReaderRegister{
		WriterID:  r.cfg.StreamID,
		Condition: r.cfg.Register,
		CP:        []sstmsg.CPReader{r.cfg.CP},
		Evpath:    []sstmsg.EvpathReader{r.cfg.DP},
	}
	if r.cfg.SpecPreload {
		m.SpecPreload = 1
	}
	return m
}

func (r *Reader) accepted(m *sstmsg.WriterResponse) []ReaderAction {
	if r.phase != Registering || m.Condition != r.cfg.Register {
		return nil
	}
	if len(m.CP) == 0 || m.CP[0].WriterID == 0 {
		// Without the writer's ID we cannot even say goodbye.
		return r.broken(fmt.Errorf("WriterResponse without a writer rank: %w", errBadResponse))
	}
	r.response = m
	return r.activate()
}

// peerUp says that a writer rank has made itself known on a link of its own: in
// the Peer pattern it is told what rank 0 is told. It may come before the
// response (docs/wire/sst.md §10.2). Ranks beyond the cohort, and -1, name
// nobody that we must talk to.
func (r *Reader) peerUp(rank int) []ReaderAction {
	if rank < 0 || rank > maxRank || r.phase > Registering {
		return nil
	}
	r.peers[rank] = true
	return r.activate()
}

// maxRank bounds what a writer can make us remember.
const maxRank = 1 << 20

// activate ends the handshake once the response is here, and in the Peer
// pattern every writer rank.
func (r *Reader) activate() []ReaderAction {
	m := r.response
	if r.phase != Registering || m == nil {
		return nil
	}
	r.writers = []int64{m.CP[0].WriterID}
	if m.Params != nil && m.Params.CPCommPattern == sstmsg.PatternPeer {
		for rank, w := range m.CP[1:] {
			if !r.peers[rank+1] {
				return nil
			}
			r.writers = append(r.writers, w.WriterID)
		}
	}
	r.phase = Streaming
	actions := r.tell(func(id int64) sstmsg.Message { return &sstmsg.ReaderActivate{WriterID: id} })
	if err := r.check(m); err != nil && !r.abandoned {
		return append(append(actions, OpenFailed{err}), r.leave(err)...)
	}
	if r.abandoned {
		return append(actions, r.leave(nil)...)
	}
	return append(actions, Opened{m})
}

// tell sends a message to every writer rank that listens to us, each with its
// own identity for us.
func (r *Reader) tell(m func(writerID int64) sstmsg.Message) []ReaderAction {
	actions := make([]ReaderAction, 0, len(r.writers)+1)
	for rank, id := range r.writers {
		actions = append(actions, SendToWriter{m(id), rank})
	}
	return actions
}

// check refuses what we cannot read. The handshake is finished all the same.
func (r *Reader) check(m *sstmsg.WriterResponse) error {
	switch {
	case m.Params == nil:
		return fmt.Errorf("WriterResponse without parameters: %w", errBadResponse)
	case m.Params.MarshalMethod != sstmsg.MarshalBP5:
		return fmt.Errorf("the writer marshals with method %d, only BP5 (%d) can be read; set MarshalMethod to BP5 in the writer: %w",
			m.Params.MarshalMethod, sstmsg.MarshalBP5, ErrMarshal)
	case len(m.Evpath) != len(m.CP):
		return fmt.Errorf("WriterResponse has %d control and %d data contacts: %w", len(m.CP), len(m.Evpath), errBadResponse)
	}
	return nil
}

func (r *Reader) step(m *sstmsg.TimestepMetadata, free func()) []ReaderAction {
	r.lastSeen = m.Step
	if r.firstSeen < 0 {
		r.firstSeen = m.Step
	}
	r.queue = append(r.queue, queued{m, free})
	if m.Metadata == nil {
		r.skipped++
		return nil
	}
	return []ReaderAction{Wake{}}
}

func (r *Reader) writerClosed() []ReaderAction {
	if r.phase != Streaming {
		return r.part()
	}
	r.closing = true
	return []ReaderAction{Wake{}}
}

// next takes the next step off the queue, if there is one.
func (r *Reader) next() []ReaderAction {
	if r.open >= 0 {
		return []ReaderAction{EndOfStream{fmt.Errorf("step %d is still open: %w", r.open, ErrOutOfOrder)}}
	}
	var actions []ReaderAction
	for len(r.queue) > 0 {
		q := r.queue[0]
		r.queue[0] = queued{}
		r.queue = r.queue[1:]
		actions = append(actions, Absorb{q.step})
		switch {
		case q.discarded():
			actions = append(actions, r.drop(q)...)
		case r.cfg.Latest && r.Queued() > 0:
			r.skipped++
			actions = append(actions, r.releaseOf(q.step.Step)...)
			actions = append(actions, r.drop(q)...)
		default:
			r.open = q.step.Step
			return append(actions, Deliver{q.step, q.free})
		}
	}
	switch {
	case r.failure != nil:
		return append(actions, EndOfStream{r.failure})
	case r.phase == Closed || r.phase == Parting:
		return append(actions, EndOfStream{fmt.Errorf("reader was %w: %w", ErrClosed, ErrOutOfOrder)})
	case r.closing:
		r.phase = Ended
		return append(actions, EndOfStream{})
	}
	return actions
}

func (r *Reader) drop(q queued) []ReaderAction {
	return []ReaderAction{Recycle{q.free}, Forget{q.step.Step}}
}

func (r *Reader) releaseOf(step int64) []ReaderAction {
	return r.tell(func(id int64) sstmsg.Message { return &sstmsg.ReleaseTimestep{WriterID: id, Step: step} })
}

func (r *Reader) release(step int64) []ReaderAction {
	if r.open != step {
		return nil
	}
	r.open = -1
	actions := []ReaderAction{Forget{step}}
	if r.phase == Streaming {
		actions = append(actions, r.releaseOf(step)...)
	}
	return actions
}

// lost handles the end of the control link. After WriterClose it is the normal
// end: steps that are here stay readable.
func (r *Reader) lost(err error) []ReaderAction {
	switch r.phase {
	case Querying:
		r.phase = Failed
		return []ReaderAction{OpenFailed{fmt.Errorf("%w: %w: %w", ErrTooLate, ErrWriterLost, orEOF(err))}}
	case Registering:
		r.phase = Failed
		if r.abandoned {
			return nil
		}
		return []ReaderAction{OpenFailed{fmt.Errorf("while opening: %w: %w", ErrWriterLost, orEOF(err))}}
	case Parting:
		r.phase = Closed
		return []ReaderAction{DropLink{}, Wake{}}
	case Streaming:
		if r.closing {
			return []ReaderAction{Wake{}}
		}
		r.phase = Failed
		r.failure = fmt.Errorf("%s: %w: %w", r.after(), ErrWriterLost, orEOF(err))
		return []ReaderAction{Wake{}}
	}
	return nil
}

// after tells how far the stream came.
func (r *Reader) after() string {
	if r.lastSeen < 0 {
		return "before the first step"
	}
	return fmt.Sprintf("after step %d", r.lastSeen)
}

// broken ends a stream whose writer does not keep to the protocol.
func (r *Reader) broken(err error) []ReaderAction {
	was := r.phase
	if was == Idle || was >= Ended {
		return nil
	}
	r.phase, r.failure = Failed, err
	if was == Streaming { // the writer counts on us for its steps, and other streams may need the link
		return append(r.goodbye(), DropLink{}, Wake{})
	}
	if r.abandoned {
		return []ReaderAction{DropLink{}}
	}
	return []ReaderAction{OpenFailed{err}, DropLink{}}
}

// cancel gives up an opening. Once registered, the handshake goes on without
// the caller.
func (r *Reader) cancel(err error) []ReaderAction {
	switch r.phase {
	case Idle, Querying:
		r.phase = Closed
		return []ReaderAction{OpenFailed{err}, DropLink{}}
	case Registering:
		if r.abandoned {
			return nil
		}
		r.abandoned = true
		return []ReaderAction{OpenFailed{err}}
	}
	return nil
}

// goodbye says ReaderClose to every writer rank that listens to us.
func (r *Reader) goodbye() []ReaderAction {
	return r.tell(func(id int64) sstmsg.Message { return &sstmsg.ReaderClose{WriterID: id} })
}

// leave ends what is going on; a writer that must be left with care is not left yet.
func (r *Reader) leave(err error) []ReaderAction {
	var actions []ReaderAction
	switch r.phase {
	case Closed, Parting:
		return nil
	case Idle, Querying, Registering:
		return r.cancel(err)
	}
	if r.open >= 0 {
		actions = append(actions, r.release(r.open)...)
	}
	care := r.phase == Streaming && r.cfg.Cautious && !r.closing
	if !care && (r.phase == Streaming || r.phase == Ended) {
		actions = append(actions, r.goodbye()...)
	}
	for _, q := range r.queue {
		actions = append(actions, r.drop(q)...)
	}
	r.queue = nil
	if care {
		r.phase = Parting
		return append(actions, Part{}, Wake{})
	}
	r.phase = Closed
	return append(actions, DropLink{}, Wake{})
}

// part ends Parting. An ADIOS2 writer gives its lock away while it sends a step,
// and while it takes a reader in; ReaderClose must not come in between. It has
// done with us when the step's metadata is here, or when nothing has come for
// some time (docs/decisions/0006).
func (r *Reader) part() []ReaderAction {
	if r.phase != Parting {
		return nil
	}
	r.phase = Closed
	return append(r.goodbye(), DropLink{}, Wake{})
}
