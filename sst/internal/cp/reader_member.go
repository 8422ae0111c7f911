package cp

import (
	"fmt"
	"slices"
)

// ReaderMember is the machine of one rank of a reader: it asks the leader for
// steps, hands them to the application in order, and tells when they are over.
type ReaderMember struct {
	actions[ReaderMemberAction]

	cfg     MemberReaderConfig
	phase   ReaderMemberPhase
	failure error

	opened  *ReaderOpened
	trying  int64 // TryRoutes that is still to be answered, 0 for none
	locked  bool
	queue   fifo[*StepTo]
	whole   int        // steps in queue that are to be delivered
	index   int64      // of the next step to deliver
	asked   int64      // index that was asked for last
	current int64      // step that must be released or retained before the next, -1 for none
	open    []int64    // steps that the application has, rising
	end     *StreamEnd // nil before it came

	firstSeen int64 // -1 before the first step
	newest    int64 // number of the step that came last, -1 for none
	skipped   int64
}

// NewReaderMember returns a member that has not started.
func NewReaderMember(cfg MemberReaderConfig) *ReaderMember {
	return &ReaderMember{cfg: cfg, asked: -1, current: -1, firstSeen: -1, newest: -1}
}

// Phase returns where the member stands.
func (m *ReaderMember) Phase() ReaderMemberPhase { return m.phase }

// Queued returns the steps that are here and wait to be taken.
func (m *ReaderMember) Queued() int { return m.whole }

// FirstStep returns the number of the first step that the writer sent, dropped
// or not, and before it came what the writer announced. A real writer announces
// to a late reader a step that it may not send any more.
func (m *ReaderMember) FirstStep() int64 {
	switch {
	case m.firstSeen >= 0:
		return m.firstSeen
	case m.opened != nil:
		return m.opened.Response.NextStep
	}
	return 0
}

// Skipped returns how many steps, up to the last one taken, the writer dropped or
// the cohort passed over.
func (m *ReaderMember) Skipped() int64 { return m.skipped }

// Failure returns why the stream ended before its time, nil if it did not.
func (m *ReaderMember) Failure() error { return m.failure }

// OpenSteps returns the steps that the application has, rising.
func (m *ReaderMember) OpenSteps() []int64 { return slices.Clone(m.open) }

// Handle takes one event and returns what to do. The list belongs to the caller.
func (m *ReaderMember) Handle(e ReaderMemberEvent) []ReaderMemberAction {
	switch e := e.(type) {
	case MemberStart:
		m.start()
	case FromLeader:
		m.receive(e.Msg)
	case LeaderLost:
		m.fail(At(0, fmt.Errorf("reader rank 0: %w: %w", ErrRankLost, orEOF(e.Err))))
	case RoutesTried:
		m.routesTried(e.Routed)
	case Next:
		m.next()
	case Retain:
		m.retain(e.Step)
	case Release:
		m.release(e.Step)
	case Lock:
		m.lock()
	case MemberLeave:
		m.leave(e)
	}
	return m.emitted()
}

// Hear is Handle of FromLeader, without the memory that an event takes.
func (m *ReaderMember) Hear(msg Message) []ReaderMemberAction {
	m.receive(msg)
	return m.emitted()
}

func (m *ReaderMember) tell(msg Message) { m.emit(ToLeader{msg}) }

func (m *ReaderMember) start() {
	switch m.phase {
	case ReaderFailed: // the others were faster to fail
		m.emit(OpenFailed{m.failure})
	case ReaderIdle:
		m.phase = ReaderOpening
		m.tell(&m.cfg.Hello)
	}
}

func (m *ReaderMember) receive(msg Message) {
	switch msg := msg.(type) {
	case *TryRoutes:
		m.tryRoutes(msg)
	case *ReaderOpened:
		m.openedUp(msg)
	case *StepTo:
		if msg.Msg != nil {
			m.stepCame(msg)
		}
	case *StreamEnd:
		m.endCame(msg)
	case *WriterGone:
		if m.phase == ReaderReading || m.phase == ReaderAtEnd {
			m.emit(FailReads{orClosed(msg.Cause.Err())})
		}
	case *StreamFailed:
		m.fail(orClosed(msg.Cause.Err()))
	}
}

func (m *ReaderMember) tryRoutes(t *TryRoutes) {
	if m.phase == ReaderOpening {
		m.trying = t.Try
		m.emit(Route{t})
	}
}

// routesTried passes the answer on, if it is to the newest question.
func (m *ReaderMember) routesTried(r *Routed) {
	if m.phase == ReaderOpening && m.trying != 0 && m.trying == r.Try {
		m.trying = 0
		m.tell(r)
	}
}

func (m *ReaderMember) openedUp(o *ReaderOpened) {
	switch {
	case m.phase != ReaderOpening:
	case o.Response == nil:
		m.fail(fmt.Errorf("opened without a response: %w", ErrProtocol))
	default:
		if err := readable(o.Response); err != nil { // rank 0 would not have passed it on
			m.fail(fmt.Errorf("reader rank 0: %w", err))
			return
		}
		m.phase, m.opened = ReaderReading, o
		m.emit(Opened{o})
	}
}

func (m *ReaderMember) stepCame(s *StepTo) {
	if m.phase != ReaderReading || m.end != nil {
		m.unused(s)
		return
	}
	if s.Msg.Step <= m.newest {
		m.fail(fmt.Errorf("reader rank 0: step %d after step %d: %w: %w", s.Msg.Step, m.newest, ErrProtocol, errUnexpected))
		return
	}
	before := m.newest
	m.newest = s.Msg.Step
	if m.firstSeen < 0 {
		m.firstSeen = s.Msg.Step
	}
	if s.Index < 0 {
		m.emit(Drop{before + 1, s.Msg.Step})
		if !m.merges(s) {
			m.queue.push(s)
		}
		return
	}
	m.queue.push(s)
	m.whole++
	m.emit(Expect{s.Msg.Step})
	m.emit(Wake{})
}

// merges lets the step before it stand for one that is not delivered, if that is
// not delivered either.
func (m *ReaderMember) merges(s *StepTo) bool {
	last := m.queue.last()
	if last == nil || (*last).Index >= 0 || !merge((*last).Msg, s.Msg, fullAttributes(m.opened.Weft, m.opened.Response)) {
		return false
	}
	(*last).Skipped = s.Skipped
	return true
}

// unused tells the leader of memory that nobody will use here.
func (m *ReaderMember) unused(s *StepTo) {
	if m.cfg.Leads && s.Index >= 0 {
		m.tell(&Released{s.Msg.Step})
	}
}

func (m *ReaderMember) endCame(e *StreamEnd) {
	if m.phase != ReaderReading || m.end != nil {
		return
	}
	m.end, m.failure = e, e.Cause.Err()
	m.emit(Wake{})
}

// next delivers the next step, or says why there is none, or asks for it.
func (m *ReaderMember) next() {
	switch {
	case m.current >= 0:
		m.emit(EndOfStream{fmt.Errorf("step %d is still open: %w", m.current, ErrOutOfOrder)})
		return
	case m.phase == ReaderLeft:
		m.emit(EndOfStream{fmt.Errorf("reader was %w: %w", ErrClosed, ErrOutOfOrder)})
		return
	case m.phase < ReaderReading:
		m.emit(EndOfStream{fmt.Errorf("the stream is not open yet: %w", ErrOutOfOrder)})
		return
	case m.phase > ReaderReading:
		m.emit(EndOfStream{m.failure})
		return
	}
	if m.advance() {
		return
	}
	switch {
	case m.end != nil:
		m.phase = ReaderAtEnd
		if m.failure != nil {
			m.phase = ReaderFailed
		}
		m.emit(EndOfStream{m.failure})
	case m.asked < m.index:
		m.asked = m.index
		m.tell(&Ask{m.index})
	}
}

// advance goes through the queue up to the next step to deliver, if it is here.
func (m *ReaderMember) advance() bool {
	for m.queue.len() > 0 {
		s := m.queue.pop()
		m.skipped = s.Skipped
		m.emit(Absorb{s.Msg})
		if s.Index < 0 {
			continue
		}
		m.whole--
		m.index++
		m.current = s.Msg.Step
		m.open = append(m.open, m.current)
		m.emit(Deliver{s.Msg})
		return true
	}
	return false
}

func (m *ReaderMember) retain(step int64) {
	if m.current == step && step >= 0 {
		m.current = -1
	}
}

func (m *ReaderMember) release(step int64) {
	i, open := slices.BinarySearch(m.open, step)
	if !open {
		return
	}
	m.open = slices.Delete(m.open, i, i+1)
	if m.current == step {
		m.current = -1
	}
	m.emit(Forget{step})
	if m.phase != ReaderLeft || m.cfg.Leads {
		m.tell(&Released{step})
	}
}

func (m *ReaderMember) lock() {
	if m.locked || m.phase != ReaderOpening && m.phase != ReaderReading {
		return
	}
	m.locked = true
	m.tell(&Locked{})
}

// fail ends the stream here and now: steps that were not delivered will not be.
func (m *ReaderMember) fail(err error) {
	switch m.phase {
	case ReaderIdle: // MemberStart will tell
		m.phase, m.failure = ReaderFailed, err
	case ReaderOpening:
		m.phase, m.failure = ReaderFailed, err
		m.emit(OpenFailed{err})
	case ReaderReading, ReaderAtEnd, ReaderFailed:
		if m.over() {
			return
		}
		m.emit(FailReads{err})
		m.drain()
		if m.phase == ReaderReading {
			m.phase, m.failure = ReaderFailed, err
			m.emit(Wake{})
		}
	}
}

// over reports whether all is delivered and given back, so that no failure can
// take anything away any more.
func (m *ReaderMember) over() bool { return m.end != nil && m.queue.len() == 0 && len(m.open) == 0 }

// drain lets go of what was not delivered.
func (m *ReaderMember) drain() {
	for m.queue.len() > 0 {
		m.unused(m.queue.pop())
	}
	m.whole = 0
}

func (m *ReaderMember) leave(e MemberLeave) {
	if m.phase == ReaderLeft {
		return
	}
	err := orClosed(e.Err)
	switch {
	case m.phase < ReaderReading:
		m.emit(OpenFailed{err})
	case len(m.open) > 0:
		m.emit(FailReads{err})
	}
	m.phase, m.current = ReaderLeft, -1
	m.drain()
	m.tell(&Left{e.Looks})
	m.emit(Wake{})
}
