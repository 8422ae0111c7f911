package cp

import (
	"errors"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// This file simulates the shell around the machines of a writer cohort: members
// in processes of their own, with ordered queues between each and the leader.
// What the readers do is in writer_simreader_test.go, what must hold in
// writer_simmodel_test.go.

// writerSimShare is what one member put into one try.
type writerSimShare struct {
	try        int64
	formats    []string // every format that the member has used so far
	attributes []string // of each rank, as of this try
	sizes      []uint64
	places     []string // where the data of each rank lie, nil if nowhere
	full       bool     // the member has no room for it yet
}

// writerSimMember is a member, its process and its channel to the leader.
type writerSimMember struct {
	id       int
	machine  *WriterMember
	ranks    int
	base     int
	up, down []Message
	dead     bool
	told     bool // the leader knows that it is dead
	orphan   bool // the leader is dead, which it will learn after what is under way

	data     map[int64]*writerSimShare // by step: what readers may ask for
	admitted map[ReaderKey]bool
	planes   map[ReaderKey]string // of the readers that it knows
	admits   []*Admit             // to be answered
	formats  []string
	attrs    []string
	share    *writerSimShare // of the newest try
	tries    int64
	verdicts []Verdict // one for each try that it has begun, once known
	asked    bool      // MemberFinish was called
	crammed  bool      // it has no room for its newest step
}

// writerSim is a history in progress.
type writerSim struct {
	t       *rapid.T
	cfg     WriterConfig
	leader  *WriterLeader
	members []*writerSimMember
	readers []*writerSimReader
	model   writerSimModel

	publishing bool // PublishContact is out
	public     bool // the contact is out
	leaderDead bool
	ended      bool // EndStream was called
	started    bool
	drained    bool
	settling   bool // readers stop dawdling
	idle       bool // but observers do nothing any more
	failed     bool // StreamFailed was sent
	verdicts   []Verdict
	goTry      int64
	nextKey    ReaderKey
	notices    int
	shares     map[int64]map[int]*writerSimShare // that have reached the leader, by try and member
	over       map[int]bool                      // members whose Finished has reached it
	names      int
	seen       map[string]bool // what the history was about
}

func newWriterSim(t *rapid.T) *writerSim {
	s := &writerSim{t: t, goTry: -1, shares: map[int64]map[int]*writerSimShare{}, over: map[int]bool{}, seen: map[string]bool{}}
	pick := func(name string, list ...int) int { return list[s.below(name, len(list))] }
	cfg := WriterConfig{
		Members: pick("members", 1, 2, 3, 5), Contact: "here", Params: "p", Planes: writerSimPlanes[pick("planes", 0, 1, 1, 1, 1, 1, 1, 2)],
		Rendezvous:      pick("rendezvous", 0, 0, 1, 2),
		QueueLimit:      pick("limit", 0, 1, 1, 2, 3),
		QueueLimitBytes: uint64(pick("bytes", 0, 0, 10, 25)),
		Discard:         s.coin("discard"),
		BlockInBegin:    s.coin("block in begin"),
		Reserve:         pick("reserve", 0, 0, 0, 1, 2),
		FirstPrecious:   s.coin("precious"),
		Distribution:    Distribution(pick("distribution", 0, 0, 1, 2)),
		Preload:         s.coin("preload"),
		MaxPush:         uint64(pick("max push", 0, 5)),
		AskFrom:         uint64(pick("ask from", 0, 3)),
		LagNotice:       pick("lag notice", 0, 0, 2),
		LagLimit:        pick("lag limit", 0, 0, 0, 4),
		WarnBytes:       uint64(pick("warn", 0, 0, 12)),
	}
	s.cfg, s.leader = cfg, NewWriterLeader(cfg)
	s.model.reset(s)
	ranks := 0
	for i := range cfg.Members {
		m := &writerSimMember{id: i, ranks: 1, data: map[int64]*writerSimShare{}, admitted: map[ReaderKey]bool{}, planes: map[ReaderKey]string{}}
		if i > 0 {
			m.ranks = pick("ranks", 1, 1, 0, 2)
		}
		m.base = ranks
		ranks += m.ranks
		m.attrs = make([]string, m.ranks)
		m.machine = NewWriterMember(MemberConfig{
			Hello:        WriterHello{Ranks: m.ranks, Contact: []string{"here", "there"}[s.below("contact", 2)], Native: []string{"", fmt.Sprint("native ", i)}[s.below("native", 2)], Params: "p"},
			BlockInBegin: cfg.BlockInBegin,
		})
		s.members = append(s.members, m)
	}
	for _, m := range s.members {
		s.member(m, MemberStart{})
	}
	return s
}

// below draws a number below n, all alike: rapid's own ranges prefer small ones,
// and histories would hardly begin.
func (s *writerSim) below(name string, n int) int {
	v := 0
	for bit := 1; bit < 8*n; bit *= 2 {
		v *= 2
		if s.coin(name) {
			v++
		}
	}
	return v % n
}

func (s *writerSim) coin(name string) bool { return writerSimCoin.Draw(s.t, name) }

var writerSimCoin = rapid.Bool()

// member feeds a member and carries out its actions.
func (s *writerSim) member(m *writerSimMember, e WriterMemberEvent) {
	if m.dead {
		s.t.Fatal("the test feeds a dead member")
	}
	for _, a := range m.machine.Handle(e) {
		switch a := a.(type) {
		case ToLeader:
			m.up = append(m.up, a.Msg)
		case Welcomed:
			if a.Base != m.base {
				s.t.Fatalf("member %d was told to begin at rank %d, want %d", m.id, a.Base, m.base)
			}
		case AdmitReader:
			m.admits = append(m.admits, a.Admit)
			m.admitted[a.Reader] = true
			m.planes[a.Reader] = a.Plane
			if r := s.byKey(a.Reader); a.Plane != r.registered {
				s.t.Fatalf("member %d is told that reader %d has registered for %q, it has for %s", m.id, a.Reader, a.Plane, r.registered)
			}
		case ReplaneReader:
			if !m.admitted[a.Reader] || m.planes[a.Reader] != PlaneNative || a.Plane == PlaneNative {
				s.t.Fatalf("member %d is told that reader %d has plane %s, admitted %v, before %q", m.id, a.Reader, a.Plane, m.admitted[a.Reader], m.planes[a.Reader])
			}
			m.planes[a.Reader] = a.Plane
		case DismissReader:
			if !m.admitted[a.Reader] {
				s.t.Fatalf("member %d was told to dismiss a stranger", m.id)
			}
			delete(m.admitted, a.Reader)
		case PushStep:
			if m.data[a.Step] == nil || !m.admitted[a.Reader] || m.planes[a.Reader] != PlaneEvpath {
				s.t.Fatalf("member %d was told to push step %d to %d: held %v, admitted %v", m.id, a.Step, a.Reader, m.data[a.Step], m.admitted[a.Reader])
			}
		case FreeStep:
			s.nobodyHas(m, a.Step)
			s.forget(m, a.Step)
		case DropTry:
			s.forget(m, a.Step)
		}
	}
	if v, ok := m.machine.LastVerdict(); ok && int64(len(m.verdicts)) < m.tries {
		m.verdicts = append(m.verdicts, v)
	}
	if p := m.machine.Phase(); (p == WriterFailed) != (m.machine.Failure() != nil) {
		s.t.Fatalf("member %d is in phase %v with failure %v", m.id, p, m.machine.Failure())
	}
}

// nobodyHas checks that a step is freed only when each reader that was sent it has
// given it back, or was dismissed before: its memory is used again, and the kernel may
// still have it for who was not. At the end, when no step follows, nobody waits for
// observers.
func (s *writerSim) nobodyHas(m *writerSimMember, step int64) {
	for _, r := range s.readers {
		if r.observer && len(s.over) == len(s.members) {
			continue
		}
		if m.admitted[r.key] && slices.Contains(r.whole, step) && !slices.Contains(r.returned, step) {
			s.t.Fatalf("member %d was told to let go of step %d, which reader %d has", m.id, step, r.key)
		}
	}
}

// forget gives a step's data back, once.
func (s *writerSim) forget(m *writerSimMember, step int64) {
	if m.data[step] == nil {
		s.t.Fatalf("member %d was told to let go of step %d, which it has not", m.id, step)
	}
	delete(m.data, step)
}

// begin is a BeginStep, if it does not have to wait.
func (s *writerSim) begin(m *writerSimMember) bool {
	if !m.machine.CanBegin() {
		return false
	}
	m.tries++
	m.share = nil
	s.member(m, BeginTry{})
	if !m.machine.Open() {
		s.t.Fatalf("member %d could begin, and has no open step", m.id)
	}
	return true
}

// end is an End.
func (s *writerSim) end(m *writerSimMember) {
	if !m.machine.Open() {
		return
	}
	c := &Contribute{}
	if s.below("format", 4) == 0 {
		s.names++
		id := fmt.Sprint("f", s.below("id", s.names+1)) // others may have it too
		m.formats = append(m.formats, id)
		c.Formats = []sstmsg.FormatBlock{{ID: sstmsg.ByteBlob([]byte(id)), Body: sstmsg.ByteBlob([]byte("b"))}}
	}
	if m.ranks > 0 && s.below("attributes", 4) == 0 {
		c.Attributes = make([]sstmsg.Blob, m.ranks)
		s.names++
		rank := s.below("rank", m.ranks)
		m.attrs[rank] = fmt.Sprint("a", s.names)
		c.Attributes[rank] = sstmsg.ByteBlob([]byte(m.attrs[rank]))
	}
	share := &writerSimShare{full: s.below("full", 4) == 0, try: m.tries - 1, formats: append([]string{}, m.formats...), attributes: append([]string{}, m.attrs...)}
	for range m.ranks {
		size := []uint64{0, 1, 4, 9}[s.below("size", 4)]
		share.sizes = append(share.sizes, size)
		c.Metadata = append(c.Metadata, sstmsg.Block{Data: sstmsg.ByteBlob(fmt.Appendf(nil, "m%d t%d", m.base+len(c.Metadata), share.try))})
	}
	if share.places = s.places(m); share.places != nil {
		for _, p := range share.places {
			c.Native = append(c.Native, sstmsg.Block{Data: sstmsg.ByteBlob([]byte(p))})
		}
	}
	c.Bytes = append([]uint64{}, share.sizes...)
	c.Full, m.crammed = share.full, share.full
	m.share = share
	if m.data[m.machine.NextStep()] != nil {
		s.t.Fatalf("member %d has data of step %d already", m.id, m.machine.NextStep())
	}
	m.data[m.machine.NextStep()] = share
	s.member(m, EndTry{c})
}

// places draws where the data of a member's ranks lie: all, some or none of them
// where a reader can look.
func (s *writerSim) places(m *writerSimMember) []string {
	if s.coin("heap") {
		return nil
	}
	list := make([]string, m.ranks)
	for i := range list {
		if s.below("place", 4) > 0 {
			list[i] = fmt.Sprintf("p%d t%d", m.base+i, m.tries-1)
		}
	}
	return list
}

// room ends a shortage.
func (s *writerSim) room(m *writerSimMember) bool {
	if !m.crammed || m.dead {
		return false
	}
	m.crammed = false
	s.member(m, HasRoom{})
	return true
}

// toLeader lets one message of a member arrive at the leader.
func (s *writerSim) toLeader(m *writerSimMember) {
	if s.leaderDead {
		m.up = nil
		return
	}
	if len(m.up) == 0 {
		if m.dead && !m.told {
			m.told = true
			s.lead(MemberLost{m.id, errTest})
		}
		return
	}
	msg := m.up[0]
	m.up = m.up[1:]
	switch msg := msg.(type) {
	case *Contribute:
		if s.shares[msg.Try] == nil {
			s.shares[msg.Try] = map[int]*writerSimShare{}
		}
		s.shares[msg.Try][m.id] = m.shareOf(msg)
	case *Room:
		if share := s.shares[msg.Try][m.id]; share != nil {
			share.full = false
		}
	case *Finished:
		s.over[m.id] = true
	}
	s.lead(FromMember{m.id, msg})
}

// shareOf remembers what a message was made of: a member has one try at a time.
func (m *writerSimMember) shareOf(c *Contribute) *writerSimShare {
	if m.share != nil && m.share.try == c.Try {
		return m.share
	}
	return nil // late: the try is over
}

// toMember lets one message of the leader arrive at a member.
func (s *writerSim) toMember(m *writerSimMember) {
	if m.dead {
		m.down = nil
		return
	}
	if len(m.down) > 0 {
		msg := m.down[0]
		m.down = m.down[1:]
		s.member(m, FromLeader{msg})
		return
	}
	if s.leaderDead && !m.orphan {
		m.orphan = true
		s.member(m, LeaderLost{errTest})
	}
}

// admit answers one AdmitReader.
func (s *writerSim) admit(m *writerSimMember) {
	if len(m.admits) == 0 || m.dead {
		return
	}
	a := m.admits[0]
	m.admits = m.admits[1:]
	answer := &Admitted{Reader: a.Reader}
	for rank := range m.ranks {
		answer.Control = append(answer.Control, int64(1000*int(a.Reader)+m.base+rank))
		answer.Data = append(answer.Data, int64(1000*int(a.Reader)+500+m.base+rank))
	}
	s.member(m, ReaderAdmitted{answer})
}

// lead feeds the leader, carries out its actions, and checks what must hold.
func (s *writerSim) lead(e WriterEvent) {
	if s.leaderDead {
		return
	}
	actions := s.leader.Handle(e)
	s.t.Log(writerEventText(e), "->", writerActionTexts(actions))
	for _, a := range actions {
		switch a := a.(type) {
		case ToMember:
			s.members[a.Member].down = append(s.members[a.Member].down, a.Msg)
		case ToAll:
			s.told(a.Msg)
			for _, m := range s.members {
				m.down = append(m.down, a.Msg)
			}
		case PublishContact:
			s.publishing = true
		case SendToReader:
			s.byKey(a.Reader).sent(s, a.Msg)
		case DropReader:
			s.byKey(a.Reader).dropped(s, a.Err, a.Cut)
		case Notice:
			s.notices++
		}
	}
	s.model.check()
	s.model.checkWarnings(actions)
}

// told notes what the leader says to all members.
func (s *writerSim) told(msg Message) {
	if s.failed || s.drained {
		s.t.Fatalf("%T after the end", msg)
	}
	switch msg := msg.(type) {
	case *Verdict:
		s.model.verdict(*msg)
		s.verdicts = append(s.verdicts, *msg)
	case *Go:
		s.goTry = msg.Try
		if msg.Try != int64(len(s.verdicts)) {
			s.t.Fatalf("try %d was let go in try %d", msg.Try, len(s.verdicts))
		}
	case *Started:
		s.started = true
	case *Push:
		r := s.byKey(msg.Reader)
		r.pushed = append(r.pushed, msg.Step)
		if r.plane != PlaneEvpath {
			s.t.Fatalf("step %d is pushed to reader %d of plane %s", msg.Step, r.key, r.plane)
		}
		s.saw("push after native", r.registered == PlaneNative)
	case *Replane:
		r := s.byKey(msg.Reader)
		if r.active || !r.planed || msg.Plane != r.plane || msg.Plane == PlaneNative {
			s.t.Fatalf("reader %d has plane %s, which it says is %q; active %v", r.key, msg.Plane, r.plane, r.active)
		}
		s.saw("replane", true)
	case *Free:
		s.model.free(msg.Step)
	case *Drained:
		s.drained = true
		s.model.drained()
	case *StreamFailed:
		s.failed = true
	}
}

// contact publishes the contact file, or cannot.
func (s *writerSim) contact(err error) {
	if s.publishing {
		s.publishing = false
		s.public = err == nil
		s.lead(ContactPublished{err})
	}
}

// saw notes what the history was about.
func (s *writerSim) saw(what string, is bool) { s.seen[what] = s.seen[what] || is }

// writerSimPlanes are what a writer may serve.
var writerSimPlanes = [][]string{{PlaneEvpath}, {PlaneNative, PlaneEvpath}, {PlaneNative}}

// kill ends a member's process; what it has sent may be lost. With member 0 goes
// the leader.
func (s *writerSim) kill(m *writerSimMember) {
	if m.dead {
		return
	}
	m.dead = true
	m.up = m.up[:s.below("kept of the dead", len(m.up)+1)]
	if m.id > 0 {
		return
	}
	s.leaderDead = true
	for _, o := range s.members {
		o.down = o.down[:s.below("kept for the orphan", len(o.down)+1)]
	}
}

// giveUp is the abort of a whole stream.
func (s *writerSim) giveUp(err error) {
	first := !s.failed && !s.ended
	s.ended = true
	s.lead(EndStream{err})
	if first && !s.leaderDead && !errors.Is(s.leader.Failure(), err) {
		s.t.Fatalf("failure is %v after the stream ended with %v", s.leader.Failure(), err)
	}
}
