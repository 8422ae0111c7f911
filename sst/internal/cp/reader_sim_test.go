package cp

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// readerSim is a history in progress: the leader, its members with their
// applications, a writer, and the queues between them. It stands in for the
// shell, and checks each action.
type readerSim struct {
	t       *rapid.T
	n       int
	cfg     ReaderConfig
	l       *ReaderLeader
	members []*readerSimMember
	w       *readerSimWriter // of the last attempt, nil before the first
	looking bool             // the shell looks for a writer
	part    bool             // a Settled is due
	dead    bool             // the leader's process is gone
	failed  int              // OpenFailed actions
	left    bool             // LeaveNow
	trouble bool             // something happened that may end the stream early

	tries int64  // TryRoutes
	said  string // ReaderPlane, of the present attempt
	seen  map[string]bool

	memory  []*readerSimMemory
	arrived []readerSimArrival
	order   []int64         // steps handed out, by index
	once    map[string]bool // messages to all that must not come twice
}

// readerSimArrival is what a step's message brought to the leader.
type readerSimArrival struct {
	step  int64
	texts []string // formats and attributes
	whole bool
}

func newReaderSim(t *rapid.T) *readerSim {
	s := &readerSim{t: t, n: 1 + evenly(t, 2, "members"), looking: true, once: map[string]bool{}, seen: map[string]bool{}}
	s.cfg = ReaderConfig{
		Members: s.n, Params: "p", Planes: readerSimPlanes(t),
		SpecPreload: rapid.Bool().Draw(t, "preload"), Latest: rapid.Bool().Draw(t, "latest"),
		Observer: evenly(t, 2, "observer") == 3,
	}
	s.l = NewReaderLeader(s.cfg)
	for i := range s.n {
		hello := memberHello(i).(FromMember).Msg.(*ReaderHello)
		s.members = append(s.members, &readerSimMember{
			sim: s, i: i, m: NewReaderMember(MemberReaderConfig{Hello: *hello, Leads: i == 0}), current: -1, dropped: -1, expected: -1,
			open: map[int64]*sstmsg.TimestepMetadata{}, released: map[int64]bool{},
		})
	}
	return s
}

// readerSimPlanes draws what a Weft side has: mostly both.
func readerSimPlanes(t *rapid.T) []string {
	switch evenly(t, 4, "planes") {
	case 0, 1:
		return []string{PlaneEvpath}
	case 2:
		return []string{PlaneNative}
	}
	return []string{PlaneNative, PlaneEvpath}
}

// attempt connects to a new writer.
func (s *readerSim) attempt() bool {
	if !s.looking || s.dead {
		return false
	}
	s.looking = false
	w := &readerSimWriter{t: s.t, sim: s, oneTime: int32(evenly(s.t, 1, "one-time attributes")), weft: rapid.Bool().Draw(s.t, "weft"), mode: int64(evenly(s.t, 3, "distribution") % 3), released: map[int64]bool{}, lastFreed: -1}
	w.planned = map[int]string{1: "ucx", 2: PlaneEnded}[evenly(s.t, 5, "plane")]
	if w.planned == "ucx" {
		s.trouble = true
	}
	if !w.weft && w.planned != "ucx" {
		w.planned = PlaneEvpath
	}
	w.planes, w.ranks = readerSimPlanes(s.t), 1+evenly(s.t, 1, "writer ranks")
	s.w, s.said = w, ""
	a := Attempt{StreamID: testStream, Query: 7, Register: 8, Contact: "here", Cautious: !w.weft}
	if w.weft {
		a.WeftVersion = 1
	}
	s.lead(a)
	return true
}

// lead feeds the leader and carries out its actions.
func (s *readerSim) lead(e ReaderEvent) {
	if s.dead {
		return
	}
	actions := s.l.Handle(e)
	s.checkQueue()
	for i, a := range actions {
		switch a := a.(type) {
		case SendToWriter:
			s.send(a, actions[i+1:])
		case ToAll:
			s.toAll(a.Msg)
		case OpenFailed:
			if s.failed++; s.failed > 1 || a.Err == nil {
				s.t.Fatalf("OpenFailed %d times, %v", s.failed, a.Err)
			}
		case TryAgain:
			if !s.w.dropped || s.l.Phase() != Idle || !errors.Is(a.Err, ErrTooLate) {
				s.t.Fatalf("TryAgain in phase %v with the link dropped %v", s.l.Phase(), s.w.dropped)
			}
			s.looking = true
		case Recycle:
			a.Free()
		case Part:
			s.part = true
		case DropLink:
			s.dropLink()
		}
	}
}

// checkQueue: what the leader keeps is bounded by what the writer keeps; with
// Latest by two steps, one of them handed out.
func (s *readerSim) checkQueue() {
	if w := s.w; w != nil && (w.weft || w.oneTime == 0) && s.l.queue.len() > 3*s.l.whole+2 {
		s.t.Fatalf("%d entries for %d steps", s.l.queue.len(), s.l.whole)
	}
	if s.cfg.Latest && s.l.Queued() > 1 {
		s.t.Fatalf("%d steps queued, and only the newest is wanted", s.l.Queued())
	}
}

// send checks what goes to the writer.
func (s *readerSim) send(a SendToWriter, after []ReaderAction) {
	w := s.w
	if w.dropped || a.Rank != 0 {
		s.t.Fatalf("%s to rank %d, link dropped %v", nameMsg(a.Msg), a.Rank, w.dropped)
	}
	if w.saidGoodbye() {
		s.t.Fatalf("%s after ReaderClose", nameMsg(a.Msg))
	}
	switch m := a.Msg.(type) {
	case *sstmsg.ReleaseTimestep:
		s.checkRelease(m.Step)
	case *sstmsg.LockReaderDefinitions:
		s.checkLock(m.Step, after)
	case *sstmsg.ReaderPlane:
		s.checkPlane(m.Plane)
	case *sstmsg.ReaderActivate:
		s.checkActivate(after)
	}
	w.up = append(w.up, a.Msg)
}

// checkPlane: said once, when every member that is there has answered, and as they
// have.
func (s *readerSim) checkPlane(plane string) {
	reached, total := 0, 0
	for _, m := range s.members {
		if m.away {
			continue
		}
		if m.answer == nil || m.answer.Try != s.tries {
			s.t.Fatalf("plane %s, and member %d has not answered question %d: %+v", plane, m.i, s.tries, m.answer)
		}
		reached, total = reached+m.answer.Native, total+m.answer.Total
	}
	want := map[int]string{total: PlaneNative, 0: PlaneEvpath}[reached]
	if want == "" {
		want = PlaneMixed
	}
	if s.said != "" || plane != want || plane != PlaneNative && !slices.Contains(s.cfg.Planes, PlaneEvpath) {
		s.t.Fatalf("plane %s with %d of %d routes, planes %v, said before %q", plane, reached, total, s.cfg.Planes, s.said)
	}
	s.said = plane
	s.seen[plane+" of native"] = true
}

// checkActivate: a reader of the native plane has said what that is, or leaves.
func (s *readerSim) checkActivate(after []ReaderAction) {
	goodbye := slices.ContainsFunc(after, func(a ReaderAction) bool {
		m, ok := a.(SendToWriter)
		if !ok {
			return false
		}
		_, is := m.Msg.(*sstmsg.ReaderClose)
		return is
	})
	if s.w.planned == PlaneNative && s.said == "" && !goodbye {
		s.t.Fatal("ReaderActivate, and the writer does not know the plane")
	}
}

// checkRelease: once, never of a discarded step, rising for ADIOS2, and after the
// last use by any member.
func (s *readerSim) checkRelease(n int64) {
	w := s.w
	switch {
	case n < 0 || n >= int64(len(w.steps)) || w.steps[n] != simWhole:
		s.t.Fatalf("release of step %d, which was not sent", n)
	case w.released[n]:
		s.t.Fatalf("step %d released twice", n)
	}
	w.released[n] = true
	if !slices.Contains(s.order, n) {
		if !s.cfg.Latest || s.arrived[len(s.arrived)-1].step <= n {
			s.t.Fatalf("step %d released, but not handed out", n)
		}
		return // passed over for a newer one
	}
	if !w.weft && n < w.lastFreed {
		s.t.Fatalf("step %d released after step %d", n, w.lastFreed)
	}
	w.lastFreed = n
	for _, m := range s.members {
		if !m.left && !m.dead && !m.released[n] {
			s.t.Fatalf("step %d released, but member %d has not", n, m.i)
		}
	}
}

func (s *readerSim) checkLock(n int64, after []ReaderAction) {
	s.w.locks++
	next, ok := after[0].(SendToWriter)
	if !ok || s.w.locks > 1 {
		s.t.Fatalf("locked %d times, followed by %T", s.w.locks, after[0])
	}
	if r, ok := next.Msg.(*sstmsg.ReleaseTimestep); !ok || r.Step != n {
		s.t.Fatalf("lock at step %d followed by %s", n, nameMsg(next.Msg))
	}
	for _, m := range s.members {
		if !m.left && !m.dead && !m.locked {
			s.t.Fatalf("locked, but not by member %d", m.i)
		}
	}
}

// toAll sends to every member: as it is to member 0, as bytes to the others.
func (s *readerSim) toAll(msg Message) {
	switch msg := msg.(type) {
	case *StepTo:
		s.checkStep(msg)
	case *TryRoutes:
		if s.tries++; msg.Try != s.tries || len(msg.Contacts) != s.w.ranks || s.w.planned != PlaneNative || !s.w.responded {
			s.t.Fatalf("%+v as question %d, of a writer of plane %s", msg, s.tries, s.w.planned)
		}
	default:
		kind := fmt.Sprintf("%T", msg)
		if s.once[kind] {
			s.t.Fatalf("%s twice", kind)
		}
		s.once[kind] = true
		if o, ok := msg.(*ReaderOpened); ok && o.Plane != cmp.Or(s.said, PlaneEvpath) {
			s.t.Fatalf("opened with plane %s, the writer was told %q", o.Plane, s.said)
		}
	}
	for _, m := range s.members {
		sent := msg
		if m.i > 0 {
			var err error
			if sent, err = ParseMessage(AppendMessage(nil, msg)); err != nil {
				s.t.Fatal(err)
			}
		}
		m.gets(sent)
	}
}

// checkStep: whole steps in rising order, the others without data.
func (s *readerSim) checkStep(m *StepTo) {
	if s.once["*cp.StreamEnd"] || s.once["*cp.StreamFailed"] {
		s.t.Fatalf("%s after the end", nameCohortMsg(m))
	}
	if m.Index < 0 {
		if m.Msg.Metadata != nil || m.Msg.Attributes == nil {
			s.t.Fatalf("%s with data or without attributes", nameCohortMsg(m))
		}
		return
	}
	if m.Index != int64(len(s.order)) || len(s.order) > 0 && s.order[len(s.order)-1] >= m.Msg.Step || m.Msg.Metadata == nil {
		s.t.Fatalf("%s after %v", nameCohortMsg(m), s.order)
	}
	if s.w.released[m.Msg.Step] {
		s.t.Fatalf("%s, and the writer has it back", nameCohortMsg(m))
	}
	s.order = append(s.order, m.Msg.Step)
}

// dropLink is the end of a link on the leader's side. An ADIOS2 writer must not
// be left between ReaderRegister and ReaderActivate.
func (s *readerSim) dropLink() {
	w := s.w
	if w == nil || w.dropped {
		s.t.Fatal("DropLink without a link")
	}
	w.dropped = true
	register, activate := w.registered, w.activated
	for _, m := range w.up {
		switch m.(type) {
		case *sstmsg.ReaderRegister:
			register = true
		case *sstmsg.ReaderActivate:
			activate = true
		}
	}
	if register && !activate && !w.weft && !w.told {
		s.t.Fatal("an ADIOS2 writer was left in the middle of the handshake")
	}
	for _, m := range w.down {
		m.free()
	}
	w.down = nil
}

// fromWriter lets one thing arrive at the leader.
func (s *readerSim) fromWriter() bool {
	w := s.w
	if w == nil || w.dropped || w.told || s.dead {
		return false
	}
	if len(w.down) == 0 {
		if !w.cut {
			return false
		}
		w.told = true
		s.lead(WriterLost{errTest})
		return true
	}
	m := w.down[0]
	w.down = w.down[1:]
	if step, ok := m.msg.(*sstmsg.TimestepMetadata); ok && s.l.Phase() == Streaming {
		a := readerSimArrival{step: step.Step, whole: step.Metadata != nil, texts: readerSimTexts(step)}
		s.arrived = append(s.arrived, a)
	}
	s.lead(FromWriter{Msg: m.msg, Free: m.free})
	return true
}

func readerSimTexts(m *sstmsg.TimestepMetadata) []string {
	var texts []string
	for _, f := range m.Formats {
		texts = append(texts, string(f.ID.Bytes()))
	}
	for _, a := range m.Attributes {
		if a.Data.Len() > 0 {
			texts = append(texts, string(a.Data.Bytes()))
		}
	}
	return texts
}

// textsBefore lists formats and attributes of all that came up to a step.
func (s *readerSim) textsBefore(step int64) []string {
	var texts []string
	for _, a := range s.arrived {
		if a.step <= step {
			texts = append(texts, a.texts...)
		}
	}
	return texts
}

// enough reports whether what a member has got of formats and attributes says as
// much as what came: all formats, and the newest attributes; or all of them, if
// each record has only what is new.
func (s *readerSim) enough(got, came []string) bool {
	split := func(texts []string) (formats, attributes []string) {
		for _, t := range texts {
			if strings.HasPrefix(t, "format") {
				formats = append(formats, t)
			} else {
				attributes = append(attributes, t)
			}
		}
		return formats, attributes
	}
	f, a := split(got)
	wantF, wantA := split(came)
	if full := s.w.weft || s.w.oneTime == 0; full && len(a) > 0 && len(wantA) > 0 {
		a, wantA = a[len(a)-1:], wantA[len(wantA)-1:]
	}
	return slices.Equal(f, wantF) && slices.Equal(a, wantA)
}

// settled answers Part.
func (s *readerSim) settled() bool {
	if !s.part || s.dead {
		return false
	}
	s.part = false
	s.lead(Settled{})
	return true
}

// dieLeader kills the process of the leader and of member 0.
func (s *readerSim) dieLeader() {
	if s.dead {
		return
	}
	s.dead, s.trouble = true, true
	s.members[0].dead = true
	if w := s.w; w != nil && !w.dropped {
		w.up = w.up[:rapid.IntRange(0, len(w.up)).Draw(s.t, "kept of the leader's messages")]
		w.dropped = true
		w.down = nil
	}
	for _, m := range s.members[1:] {
		m.down = m.down[:rapid.IntRange(0, len(m.down)).Draw(s.t, "kept for a member")]
	}
}

// readerSimMember is a member, its application, and its ends of the channel.
type readerSimMember struct {
	sim  *readerSim
	i    int
	m    *ReaderMember
	up   []Message // to the leader
	down []Message // to the member

	started, left, dead bool
	lossTold            bool // the other side knows of the death

	routes []*TryRoutes // to be answered
	answer *Routed      // that has come to the leader
	away   bool         // the leader knows that it is not there any more

	opens   int
	openErr error
	waiting bool // in BeginStep
	ended   bool
	endErr  error
	locked  bool
	current int64 // must be released or retained before the next step

	open      map[int64]*sstmsg.TimestepMetadata
	delivered []int64
	released  map[int64]bool
	texts     []string // absorbed
	failReads bool
	dropped   int64 // newest step whose data will not be needed
	expected  int64 // newest step whose data will
}

func (m *readerSimMember) gets(msg Message) {
	if !m.dead {
		m.down = append(m.down, msg)
	}
}

// handle feeds the member and carries out its actions.
func (m *readerSimMember) handle(e ReaderMemberEvent) {
	t := m.sim.t
	woken := false
	for _, a := range m.m.Handle(e) {
		switch a := a.(type) {
		case ToLeader:
			if m.left && m.i > 0 {
				t.Fatalf("member %d says %s after it has left", m.i, nameCohortMsg(a.Msg))
			}
			m.say(a.Msg)
		case Route:
			m.routes = append(m.routes, a.TryRoutes)
		case Opened:
			m.opens++
		case OpenFailed:
			m.opens++
			if m.openErr = a.Err; a.Err == nil {
				t.Fatal("Open failed without an error")
			}
		case Absorb:
			m.texts = append(m.texts, readerSimTexts(a.Msg)...)
		case Deliver:
			m.deliver(a.Msg)
		case EndOfStream:
			m.waiting, m.ended, m.endErr = false, true, a.Err
		case Forget:
			if _, open := m.open[a.Step]; open {
				t.Fatalf("data of step %d are forgotten while it is open", a.Step)
			}
		case Drop:
			m.drop(a)
		case Expect:
			if a.Step <= m.expected || a.Step <= m.dropped {
				t.Fatalf("step %d is expected after step %d, and step %d was dropped", a.Step, m.expected, m.dropped)
			}
			m.expected = a.Step
		case FailReads:
			m.failReads = true
			if a.Err == nil {
				t.Fatal("reads fail without an error")
			}
		case Wake:
			woken = true
		}
	}
	if m.opens > 1 {
		t.Fatalf("member %d: Open got %d results", m.i, m.opens)
	}
	if w := m.sim.w; w != nil && (w.weft || w.oneTime == 0) && m.m.queue.len() > 3*m.m.whole+2 {
		t.Fatalf("member %d has %d entries for %d steps", m.i, m.m.queue.len(), m.m.whole)
	}
	if woken && m.waiting {
		m.handle(Next{})
	}
}

// drop: never of a step that the application has, or will get.
func (m *readerSimMember) drop(a Drop) {
	for n := range m.open {
		if a.From <= n && n <= a.To {
			m.sim.t.Fatalf("data of step %d are dropped while it is open", n)
		}
	}
	if a.From != m.dropped+1 && !slices.Contains(m.sim.order, a.From-1) || a.To < a.From {
		m.sim.t.Fatalf("steps %d..%d are dropped after %d, delivered are %v", a.From, a.To, m.dropped, m.sim.order)
	}
	m.dropped = a.To
	for _, n := range m.sim.order {
		if a.From <= n && n <= a.To {
			m.sim.t.Fatalf("data of step %d are dropped, which is handed out", n)
		}
	}
}

// say puts a message on its way to the leader. Those of others than member 0 are
// encoded.
func (m *readerSimMember) say(msg Message) {
	if m.i > 0 {
		var err error
		if msg, err = ParseMessage(AppendMessage(nil, msg)); err != nil {
			m.sim.t.Fatal(err)
		}
	}
	m.up = append(m.up, msg)
}

// deliver checks a step against all that came before it.
func (m *readerSimMember) deliver(msg *sstmsg.TimestepMetadata) {
	t, n := m.sim.t, msg.Step
	i := len(m.delivered)
	switch {
	case m.current >= 0:
		t.Fatalf("step %d delivered while %d is open", n, m.current)
	case i >= len(m.sim.order) || m.sim.order[i] != n:
		t.Fatalf("member %d got step %d as number %d; all get %v", m.i, n, i, m.sim.order)
	case n > m.expected:
		t.Fatalf("step %d delivered, expected is step %d", n, m.expected)
	case !m.sim.enough(m.texts, m.sim.textsBefore(n)):
		t.Fatalf("member %d has %v at step %d, the writer sent %v", m.i, m.texts, n, m.sim.textsBefore(n))
	}
	m.waiting, m.current = false, n
	m.open[n] = msg
	m.delivered = append(m.delivered, n)
	m.check(n)
}

// check looks whether an open step still has its memory.
func (m *readerSimMember) check(n int64) {
	if got := string(m.open[n].Metadata[0].Data.Bytes()); got != fmt.Sprint("step", n) {
		m.sim.t.Fatalf("member %d: the memory of step %d has %q", m.i, n, got)
	}
}

// The application's calls. Each returns whether it did something.

func (m *readerSimMember) start() bool {
	if m.started || m.left || m.dead {
		return false
	}
	m.started = true
	m.handle(MemberStart{})
	return true
}

// try answers a Route, maybe one that is out of date.
func (m *readerSimMember) try() bool {
	if len(m.routes) == 0 || m.dead {
		return false
	}
	r := &Routed{Try: m.routes[0].Try, Total: len(m.routes[0].Contacts)}
	m.routes = m.routes[1:]
	switch evenly(m.sim.t, 2, "routes") {
	case 0:
	case 1:
		r.Native = 1
	default:
		r.Native = r.Total
	}
	if r.Native < r.Total {
		r.Cause = NewFault(errTest)
	}
	m.handle(RoutesTried{r})
	return true
}

func (m *readerSimMember) reads() bool {
	return m.opens == 1 && m.openErr == nil && !m.left && !m.dead
}

func (m *readerSimMember) next() bool {
	if !m.reads() || m.ended || m.waiting || m.current >= 0 {
		return false
	}
	m.waiting = true
	m.handle(Next{})
	return true
}

func (m *readerSimMember) retain() bool {
	if !m.reads() || m.current < 0 {
		return false
	}
	n := m.current
	m.current = -1
	m.handle(Retain{n})
	return true
}

// release gives a step back, which the application may do even after it has
// closed.
func (m *readerSimMember) release(which int) bool {
	if len(m.open) == 0 || m.dead {
		return false
	}
	var list []int64
	for n := range m.open {
		list = append(list, n)
	}
	slices.Sort(list)
	n := list[which%len(list)]
	m.check(n)
	delete(m.open, n)
	m.released[n] = true
	if m.current == n {
		m.current = -1
	}
	m.handle(Release{n})
	return true
}

func (m *readerSimMember) lock() bool {
	if !m.reads() || m.locked {
		return false
	}
	m.locked = true
	m.handle(Lock{})
	return true
}

func (m *readerSimMember) leave() bool {
	if m.left || m.dead || !m.started {
		return false
	}
	m.current, m.waiting = -1, false
	m.handle(MemberLeave{Err: errTest})
	m.left = true
	return true
}

// die kills the member's process; its last messages may be lost.
func (m *readerSimMember) die() {
	if m.dead || m.i == 0 {
		return
	}
	m.dead = true
	m.up = m.up[:rapid.IntRange(0, len(m.up)).Draw(m.sim.t, "kept of a member's messages")]
	m.down = nil
	m.sim.trouble = true
}

// toLeader lets one thing of the member arrive at the leader.
func (m *readerSimMember) toLeader() bool {
	if m.sim.dead {
		return false
	}
	if len(m.up) == 0 {
		if !m.dead || m.lossTold {
			return false
		}
		m.lossTold, m.away = true, true
		m.sim.lead(MemberLost{m.i, errTest})
		return true
	}
	msg := m.up[0]
	m.up = m.up[1:]
	switch msg := msg.(type) {
	case *Routed:
		m.answer = msg
	case *Left:
		m.away = true
	}
	m.sim.lead(FromMember{m.i, msg})
	return true
}

// fromLeader lets one thing of the leader arrive at the member.
func (m *readerSimMember) fromLeader() bool {
	if m.dead {
		return false
	}
	if len(m.down) == 0 {
		if !m.sim.dead || m.lossTold {
			return false
		}
		m.lossTold = true
		m.handle(LeaderLost{errTest})
		return true
	}
	msg := m.down[0]
	m.down = m.down[1:]
	m.handle(FromLeader{msg})
	return true
}
