package cp

import "fmt"

// WriterMember is the machine of one member of a writer cohort: it keeps its
// process in step with the others.
//
// Tries are counted alike everywhere: the n-th BeginStep of each member belongs
// to try n. A member may be late for a try that others have given up; its verdict
// is then there before the member begins it.
type WriterMember struct {
	actions[WriterMemberAction]

	cfg     MemberConfig
	phase   WriterPhase
	failure error

	next      int64 // number of the next step
	begun     int64 // tries begun
	open      bool  // the newest try is begun, and neither ended nor given up
	ended     bool  // the newest try has a Contribute
	withdrawn bool  // it has a Withdraw
	decided   bool  // its verdict is here
	verdict   Verdict
	ahead     []verdictRow // of tries that this member has not begun: all aborted
	goTry     int64        // newest try that was let go, with BlockInBegin
}

// NewWriterMember returns the machine of a member that has yet to say hello.
func NewWriterMember(cfg MemberConfig) *WriterMember {
	return &WriterMember{cfg: cfg, goTry: -1}
}

// Phase returns where the member stands.
func (m *WriterMember) Phase() WriterPhase { return m.phase }

// Failure returns why the stream ended before its time, nil if it did not.
func (m *WriterMember) Failure() error { return m.failure }

// NextStep returns the number that the next step will have: while a step is
// open, or has ended and its verdict is out, the number of that one.
func (m *WriterMember) NextStep() int64 { return m.next }

// Open reports whether a step is begun, and neither ended nor given up.
func (m *WriterMember) Open() bool { return m.open }

// CanBegin reports whether a step can be begun now.
func (m *WriterMember) CanBegin() bool {
	return m.phase == WriterStarted && !m.open && (m.begun == 0 || m.decided) && (!m.cfg.BlockInBegin || m.goTry >= m.begun)
}

// LastVerdict returns how the newest try has ended, false while that is not known.
func (m *WriterMember) LastVerdict() (Verdict, bool) { return m.verdict, m.decided }

// over reports whether nothing can change any more.
func (m *WriterMember) over() bool { return m.phase >= WriterDrained }

// Handle takes one event and returns what to do, in order. The slice belongs to
// the caller.
func (m *WriterMember) Handle(e WriterMemberEvent) []WriterMemberAction {
	if m.over() {
		return nil
	}
	switch e := e.(type) {
	case MemberStart:
		hello := m.cfg.Hello
		m.say(&hello)
	case FromLeader:
		m.fromLeader(e.Msg)
	case LeaderLost:
		m.fail(At(0, fmt.Errorf("writer rank 0: %w: %w", ErrRankLost, orEOF(e.Err))))
	case BeginTry:
		m.begin()
	case EndTry:
		m.end(e.Contribute)
	case HasRoom:
		if m.ended && !m.decided {
			m.say(&Room{m.begun - 1})
		}
	case AbortTry:
		m.abort(e.Err)
	case MemberFinish:
		m.finish()
	case ReaderAdmitted:
		m.say(e.Admitted)
	case PushBroke:
		m.say(e.PushFailed)
	}
	return m.emitted()
}

// Hear is Handle of FromLeader, without the memory that an event takes.
func (m *WriterMember) Hear(msg Message) []WriterMemberAction {
	if m.over() {
		return nil
	}
	m.fromLeader(msg)
	return m.emitted()
}

func (m *WriterMember) say(msg Message) { m.emit(ToLeader{msg}) }

func (m *WriterMember) enter(p WriterPhase) {
	m.phase = max(m.phase, p)
	m.emit(Changed{})
}

func (m *WriterMember) fail(err error) {
	m.failure, m.open = err, false
	m.enter(WriterFailed)
}

func (m *WriterMember) fromLeader(msg Message) {
	switch msg := msg.(type) {
	case *Verdict:
		m.decide(*msg)
	case *Free:
		m.emit(FreeStep{msg.Step})
	case *Push:
		m.emit(PushStep{msg.Reader, msg.Step})
	case *Go:
		m.goTry = msg.Try
		m.emit(Changed{})
	case *Admit:
		m.emit(AdmitReader{msg})
	case *Replane:
		m.emit(ReplaneReader{msg.Reader, msg.Plane})
	case *Dismiss:
		m.emit(DismissReader{msg.Reader})
	case *Welcome:
		m.emit(Welcomed{msg.Base, msg.Ranks})
		m.enter(WriterWelcomed)
	case *Started:
		m.enter(WriterStarted)
	case *Drained:
		if m.phase != WriterFinished {
			m.fail(fmt.Errorf("writer rank 0: the stream is over while this rank is %v: %w: %w", m.phase, ErrProtocol, errUnexpected))
			return
		}
		m.enter(WriterDrained)
	case *StreamFailed:
		err := msg.Cause.Err()
		if err == nil {
			err = ErrClosed
		}
		m.fail(err)
	default:
		m.fail(fmt.Errorf("writer rank 0: %T: %w: %w", msg, ErrProtocol, errUnexpected))
	}
}

func (m *WriterMember) begin() {
	if !m.CanBegin() {
		return
	}
	m.begun++
	m.open, m.ended, m.withdrawn, m.decided = true, false, false, false
	m.verdict = Verdict{}
	if len(m.ahead) > 0 {
		row := &m.ahead[0]
		m.verdict, m.decided = row.first, true
		if row.first.Try++; row.first.Try > row.last {
			m.ahead = m.ahead[1:]
		}
	}
}

// end sends the member's share. It goes out even if the try is over: the formats
// and attributes in it will not be sent again.
func (m *WriterMember) end(c *Contribute) {
	if !m.open {
		return
	}
	m.open, m.ended = false, true
	c.Try = m.begun - 1
	m.say(c)
	if m.decided {
		m.apply()
	}
}

func (m *WriterMember) abort(err error) {
	if m.begun == 0 || !m.open && !m.ended || m.withdrawn {
		return
	}
	if m.open {
		m.emit(Changed{})
	}
	m.open = false
	if !m.decided {
		m.withdrawn = true
		m.say(&Withdraw{Try: m.begun - 1, Cause: NewFault(err)})
	}
}

// decide takes a verdict. They come in the order of tries.
func (m *WriterMember) decide(v Verdict) {
	current := m.begun - 1
	if m.decided || m.begun == 0 {
		current++
	}
	if n := len(m.ahead); n > 0 {
		current = m.ahead[n-1].last + 1
	}
	mine := current < m.begun
	if v.Try != current || v.Outcome != Aborted && !(mine && m.ended) {
		m.fail(fmt.Errorf("verdict %d of try %d in try %d: %w: %w", v.Outcome, v.Try, current, ErrProtocol, errUnexpected))
		return
	}
	if !mine {
		m.keepAhead(v)
		return
	}
	m.verdict, m.decided = v, true
	if m.ended {
		m.apply()
	}
	m.emit(Changed{})
}

// verdictRow is verdicts on tries that follow each other, alike but for the number.
type verdictRow struct {
	first Verdict
	last  int64 // try
}

// keepAhead keeps a verdict for a try to come. Others may give up a great many
// steps while this member computes, all for one reason.
func (m *WriterMember) keepAhead(v Verdict) {
	if n := len(m.ahead); n > 0 {
		row := &m.ahead[n-1]
		next := row.first
		if next.Try = v.Try; next == v {
			row.last = v.Try
			return
		}
	}
	m.ahead = append(m.ahead, verdictRow{v, v.Try})
}

// apply carries out the verdict of a try that the member has ended.
func (m *WriterMember) apply() {
	v := &m.verdict
	if v.Outcome != Published {
		m.emit(DropTry{v.Step})
	}
	if v.Outcome != Aborted {
		m.next = v.Step + 1
	}
}

// finish says that no step follows. An open one is given up.
func (m *WriterMember) finish() {
	if m.phase == WriterFinished {
		return
	}
	if m.open {
		m.abort(fmt.Errorf("the stream was closed: %w", ErrClosed))
	}
	m.say(&Finished{})
	m.enter(WriterFinished)
}
