package cp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// maxRank bounds what a writer can make us remember.
const maxRank = 1 << 20

func (l *ReaderLeader) weft() bool { return l.attempt.WeftVersion != 0 }

// observes reports whether the writer waits for us never.
func (l *ReaderLeader) observes() bool { return l.cfg.Observer && l.weft() }

// begin starts an opening on a link that is up.
func (l *ReaderLeader) begin(a Attempt) {
	switch l.phase {
	case Idle:
	case Closed: // the opening was given up while the shell connected
		l.emit(DropLink{})
		return
	default:
		return
	}
	l.attempt, l.linked = a, true
	l.plane, l.response, l.peers, l.writers = "", nil, map[int]bool{}, nil
	l.turn(Querying)
	q := &sstmsg.DPQuery{WriterID: a.StreamID, Condition: a.Query, Weft: a.WeftVersion}
	if l.weft() {
		q.Planes = strings.Join(l.cfg.Planes, ",")
	}
	l.send(q)
}

// hello takes a member in. Members that differ in their parameters would not see
// the same stream.
func (l *ReaderLeader) hello(member int, h *ReaderHello) {
	s := &l.seats[member]
	if s.hello != nil || s.away {
		return
	}
	s.hello = h
	if h.Params != l.cfg.Params && (l.phase == Idle || l.phase == Querying) {
		l.openingFailed(At(member, fmt.Errorf("%w: reader rank %d has other parameters than rank 0: %s", ErrParam, member, differing(h.Params, l.cfg.Params))))
		return
	}
	l.register()
}

// answer handles a message that is not kept.
func (l *ReaderLeader) answer(msg sstmsg.Message) {
	switch m := msg.(type) {
	case *sstmsg.DPQueryResponse:
		l.planeChosen(m)
	case *sstmsg.WriterResponse:
		l.accepted(m)
	case *sstmsg.WriterClose:
		l.writerClosed(m)
	case *sstmsg.PeerSetup:
		l.peerUp(int(m.WriterRank))
	case *sstmsg.CommPatternLocked:
		// Each step says itself how it is preloaded.
	case *sstmsg.TimestepMetadata:
		if l.phase != Streaming {
			l.part() // or a step that crossed our ReaderClose
			return
		}
		l.broken(fmt.Errorf("step %d after step %d: %w: %w", m.Step, l.lastSeen, ErrProtocol, errUnexpected))
	default:
		l.broken(fmt.Errorf("%s in phase %v: %w: %w", sstmsg.Name(msg), l.phase, ErrProtocol, errUnexpected))
	}
}

// planeChosen decides everything that can be refused: after ReaderRegister it
// is too late.
func (l *ReaderLeader) planeChosen(m *sstmsg.DPQueryResponse) {
	if m.DataPlane == PlaneEnded && (l.phase == Querying && m.Condition == l.attempt.Query || l.phase == Registering && m.Condition == l.attempt.Register) {
		l.tooLate(ErrTooLate)
		return
	}
	if l.phase != Querying || m.Condition != l.attempt.Query || l.plane != "" {
		return // a late answer to a query we gave up
	}
	if !slices.Contains(l.cfg.Planes, m.DataPlane) || m.DataPlane == PlaneNative && !l.weft() {
		l.openingFailed(&PlaneError{Writer: m.DataPlane, Ours: l.cfg.Planes, Weft: l.weft()})
		return
	}
	l.plane = m.DataPlane
	l.register()
}

// tooLate ends an attempt that left no trace at the writer. The members wait on.
func (l *ReaderLeader) tooLate(err error) {
	l.dropLink()
	if l.abandoned {
		l.turn(Closed)
		return
	}
	l.plane = ""
	l.turn(Idle)
	l.emit(TryAgain{err})
}

// register sends ReaderRegister once the plane is chosen and every member can
// be named in it.
func (l *ReaderLeader) register() {
	if l.phase != Querying || l.plane == "" || !l.assembled() {
		return
	}
	l.turn(Registering)
	l.send(l.registration())
}

// assembled reports whether every member has said hello, or has left before.
func (l *ReaderLeader) assembled() bool {
	for i := range l.seats {
		if s := &l.seats[i]; s.hello == nil && (i == 0 || !s.away) {
			return false
		}
	}
	return true
}

// registration names the members. One that has left without a hello is not known
// to the writer.
func (l *ReaderLeader) registration() *sstmsg.ReaderRegister {
	m := &sstmsg.ReaderRegister{WriterID: l.attempt.StreamID, Condition: l.attempt.Register}
	first := l.seats[0].hello
	for _, s := range l.seats {
		if s.hello == nil {
			continue
		}
		c, d := s.hello.CP, s.hello.DP
		c.Contact = l.contact(c.Contact, first.CP.Contact)
		d.Contact = l.contact(d.Contact, first.CP.Contact) // another one was chosen, and stays
		m.CP = append(m.CP, c)
		m.Evpath = append(m.Evpath, d)
	}
	if l.cfg.SpecPreload {
		m.SpecPreload = 1
		if l.cfg.Insist && l.weft() {
			m.SpecPreload = pushAlways
		}
	}
	if l.observes() {
		m.Observer = 1
	}
	if l.weft() {
		m.Plane = l.plane
	}
	return m
}

// contact replaces what is member 0's own contact by the one that holds on this
// link: which of our addresses a writer can reach depends on the writer.
func (l *ReaderLeader) contact(c, own string) string {
	if c == own && l.attempt.Contact != "" {
		return l.attempt.Contact
	}
	return c
}

func (l *ReaderLeader) accepted(m *sstmsg.WriterResponse) {
	if l.phase != Registering || m.Condition != l.attempt.Register {
		return
	}
	if len(m.CP) == 0 || m.CP[0].WriterID == 0 {
		// Without the writer's ID we cannot even say goodbye.
		l.broken(fmt.Errorf("WriterResponse without a writer rank: %w: %w", ErrProtocol, errBadResponse))
		return
	}
	l.response = ownResponse(m)
	l.activate()
}

// ownResponse copies what refers to the memory of the message: the response
// lives as long as the stream.
func ownResponse(m *sstmsg.WriterResponse) *sstmsg.WriterResponse {
	r := *m
	r.Rdma = nil
	for _, w := range m.Rdma {
		w.Address = ownBlob(w.Address)
		r.Rdma = append(r.Rdma, w)
	}
	return &r
}

// peerUp says that a writer rank has made itself known on a link of its own: in
// the Peer pattern it is told what rank 0 is told. It may come before the
// response (docs/wire/sst.md §10.2). Ranks beyond the cohort, and -1, name
// nobody that we must talk to.
func (l *ReaderLeader) peerUp(rank int) {
	if rank < 0 || rank > maxRank || l.phase != Querying && l.phase != Registering {
		return
	}
	l.peers[rank] = true
	l.activate()
}

// activate goes on once the response is here, and in the Peer pattern every writer
// rank that is member 0's to answer.
func (l *ReaderLeader) activate() {
	m := l.response
	if l.phase != Registering || m == nil {
		return
	}
	l.writers = []int64{m.CP[0].WriterID}
	if peered(m) {
		for rank, w := range m.CP[1:share(len(m.CP), len(l.seats))] {
			if !l.peers[rank+1] {
				return
			}
			l.writers = append(l.writers, w.WriterID)
		}
	}
	err := l.check(m)
	if err == nil && l.plane == PlaneNative && !l.abandoned {
		l.tryRoutes(m)
		return
	}
	l.enter(err)
}

// enter ends the handshake, which the writer counts on even if we cannot stay.
func (l *ReaderLeader) enter(err error) {
	l.turn(Streaming)
	l.tell(func(id int64) sstmsg.Message { return &sstmsg.ReaderActivate{WriterID: id} })
	if l.abandoned {
		l.leave()
		return
	}
	if err != nil {
		l.failure = err
		l.emit(OpenFailed{err})
		l.toPresent(&StreamFailed{NewFault(At(0, err))})
		l.leave()
		return
	}
	l.emit(ToAll{&ReaderOpened{Response: l.response, Plane: l.plane, Weft: l.weft(), Writer: l.attempt.Writer, Release: l.attempt.Release}})
}

func peered(m *sstmsg.WriterResponse) bool {
	return m.Params != nil && m.Params.CPCommPattern == sstmsg.PatternPeer
}

// share returns how many of n writer ranks, from rank 0 on, are peers of rank 0
// of m readers.
func share(n, m int) int {
	s := n / m
	if n%m > 0 {
		s++
	}
	return s
}

// check refuses what we cannot read. The handshake is finished all the same.
func (l *ReaderLeader) check(m *sstmsg.WriterResponse) error {
	if err := readable(m); err != nil {
		return err
	}
	if l.plane == PlaneNative && len(m.Native) != len(m.CP) {
		return fmt.Errorf("WriterResponse has %d native contacts for %d writer ranks: %w: %w", len(m.Native), len(m.CP), ErrProtocol, errBadResponse)
	}
	if peered(m) && len(l.seats) > 1 {
		return fmt.Errorf("the writer has CPCommPattern Peer, which serves one reader rank, not %d; set it to Min in the writer: %w", len(l.seats), ErrParam)
	}
	return nil
}

// readable refuses a response that no rank can work with.
func readable(m *sstmsg.WriterResponse) error {
	switch {
	case m.Params == nil:
		return fmt.Errorf("WriterResponse without parameters: %w: %w", ErrProtocol, errBadResponse)
	case m.Params.MarshalMethod != sstmsg.MarshalBP5:
		return fmt.Errorf("the writer marshals with method %d, only BP5 (%d) can be read; set MarshalMethod to BP5 in the writer: %w",
			m.Params.MarshalMethod, sstmsg.MarshalBP5, ErrMarshal)
	case len(m.CP) == 0 || len(m.Evpath) != len(m.CP):
		return fmt.Errorf("WriterResponse has %d control and %d data contacts: %w: %w", len(m.CP), len(m.Evpath), ErrProtocol, errBadResponse)
	}
	return nil
}

// openingFailed ends an opening that the writer does not depend on.
func (l *ReaderLeader) openingFailed(err error) {
	if !l.abandoned {
		l.failure = err
		l.emit(OpenFailed{err})
		l.toPresent(&StreamFailed{NewFault(At(0, err))})
	}
	l.turn(Closed)
	l.dropLink()
}

// abandon gives up an opening that the writer depends on: the handshake goes on
// without the members.
func (l *ReaderLeader) abandon(err error) {
	if l.abandoned {
		return
	}
	l.abandoned, l.failure = true, err
	l.emit(OpenFailed{err})
	l.toPresent(&StreamFailed{NewFault(At(0, err))})
}

// cancel gives up an opening, in whatever phase.
func (l *ReaderLeader) cancel(err error) {
	switch l.phase {
	case Idle, Querying:
		l.openingFailed(orClosed(err))
	case Registering:
		l.abandon(orClosed(err))
	case Routing: // nothing is missing but our word
		l.abandon(orClosed(err))
		l.enter(nil)
	}
}

func orClosed(err error) error {
	if err == nil {
		return ErrClosed
	}
	return err
}
