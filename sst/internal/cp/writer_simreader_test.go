package cp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// writerSimReader is a reader cohort: a simple model of one, its link and what
// the test knows of it.
type writerSimReader struct {
	key      ReaderKey
	weft     bool
	observer bool
	preload  bool

	registered string // the plane that it has registered for
	planed     bool   // the writer has heard ReaderPlane
	plane      string // as the writer knows it

	up   []sstmsg.Message // under way to the writer
	down []sstmsg.Message // under way to the reader
	cut  bool             // the link is broken, which the writer learns after what is under way
	gone bool             // the writer has dropped it

	// As the writer's messages have it.
	answered bool
	next     int64   // first step that was announced
	whole    []int64 // steps sent
	owes     int64   // steps before this one went by while it had nothing to do
	hollow   []int64 // steps announced as discarded
	due      []int64 // steps discarded while it was there, that are to be announced some time
	closed   bool    // WriterClose sent
	code     int32
	pushed   []int64 // steps pushed, before they are sent

	// As the writer knows it.
	active   bool
	from     int64 // next step when it activated: from here on it misses nothing
	requests int64
	warned   bool    // of its lag
	returned []int64 // releases that have arrived for steps it had
	missed   int64   // step of the newest release, or of the last time it had nothing to do

	// As the reader has it.
	activated  bool
	left       bool    // ReaderClose sent
	has        []int64 // not released
	seen       int64   // last step that arrived
	seenWhole  int
	seenHollow int
	asks       int // unanswered
	ended      bool
	known      map[string]bool
	attributes []string
}

// joinReader registers a reader.
func (s *writerSim) joinReader() {
	if !s.public || s.leaderDead {
		return
	}
	s.nextKey++
	weft := s.coin("weft")
	r := &writerSimReader{
		key: s.nextKey, weft: weft, seen: -1, known: map[string]bool{}, missed: -1,
		observer: weft && s.below("observer", 3) == 0,
		preload:  s.coin("asks for preload"),
	}
	has := ""
	if weft {
		has = []string{"native,evpath", "native,evpath", "", "evpath", "native"}[s.below("planes", 5)]
	}
	plane, ok := ChoosePlane(has, s.cfg.Planes)
	if !ok {
		return // it goes, and the leader never hears of it
	}
	r.registered, r.plane = plane, plane
	m := &sstmsg.ReaderRegister{
		CP:     []sstmsg.CPReader{{Contact: "r", ReaderID: int64(100 + r.key)}, {Contact: "r2", ReaderID: 9}},
		Evpath: []sstmsg.EvpathReader{{Contact: "r", ReaderID: int64(200 + r.key)}, {Contact: "r2", ReaderID: 10}},
	}
	if weft {
		m.Plane = plane
	}
	if r.observer {
		m.Observer = 1
	}
	if r.preload {
		m.SpecPreload = 1
	}
	s.readers = append(s.readers, r)
	s.model.registered(r)
	s.lead(Register{Reader: r.key, Msg: m, Contact: "seen from " + fmt.Sprint(r.key), Weft: weft})
}

func (s *writerSim) byKey(k ReaderKey) *writerSimReader {
	for _, r := range s.readers {
		if r.key == k {
			return r
		}
	}
	s.t.Fatalf("no reader %d", k)
	return nil
}

// sent checks and carries out a SendToReader.
func (r *writerSimReader) sent(s *writerSim, msg sstmsg.Message) {
	if _, again := msg.(*sstmsg.WriterClose); r.gone || r.closed && !(again && r.weft) {
		s.t.Fatalf("%s to reader %d: dismissed %v, closed %v", nameMsg(msg), r.key, r.gone, r.closed)
	}
	switch m := msg.(type) {
	case *sstmsg.WriterResponse:
		r.checkResponse(s, m)
	case *sstmsg.TimestepMetadata:
		r.checkStep(s, m)
	case *sstmsg.WriterClose:
		known := r.active || r.weft && (s.ended || m.Code != sstmsg.CloseNormal)
		switch {
		case r.closed && m.Code == sstmsg.CloseNormal:
			s.t.Fatalf("the normal end of reader %d was said twice", r.key)
		case !known || m.FinalStep != s.model.last:
			s.t.Fatalf("WriterClose %d to reader %d: active %v, last step %d", m.FinalStep, r.key, r.active, s.model.last)
		case !r.weft && m.Code != sstmsg.CloseNormal:
			s.t.Fatalf("a code for ADIOS2 reader %d", r.key)
		case (m.Code == sstmsg.CloseNormal) != (m.Reason == ""):
			s.t.Fatalf("WriterClose with code %d and reason %q", m.Code, m.Reason)
		case m.Code == sstmsg.CloseNormal && !s.ended && len(s.over) < len(s.members):
			s.t.Fatal("WriterClose before every member has finished")
		}
		r.closed, r.code = true, m.Code
	}
	if !r.cut {
		r.down = append(r.down, msg)
	}
}

func (r *writerSimReader) checkResponse(s *writerSim, m *sstmsg.WriterResponse) {
	if r.answered {
		s.t.Fatalf("reader %d was answered twice", r.key)
	}
	r.answered, r.next = true, m.NextStep
	if native := len(m.Native); r.registered == PlaneNative && native != len(m.CP) || r.registered != PlaneNative && m.Native != nil {
		s.t.Fatalf("%d native contacts of %d ranks for a reader that registered for %s", native, len(m.CP), r.registered)
	}
	for _, member := range s.members {
		for i := range member.ranks {
			rank := member.base + i
			contact := member.machine.cfg.Hello.Contact
			if contact == s.cfg.Contact {
				contact = "seen from " + fmt.Sprint(r.key)
			}
			if want := (sstmsg.CPWriter{Contact: contact, WriterID: int64(1000*int(r.key) + rank)}); m.CP[rank] != want {
				s.t.Fatalf("rank %d: control %+v, want %+v", rank, m.CP[rank], want)
			}
			if m.Native != nil && m.Native[rank].Contact != member.machine.cfg.Hello.Native {
				s.t.Fatalf("rank %d: native contact %q, want %q", rank, m.Native[rank].Contact, member.machine.cfg.Hello.Native)
			}
			if got := m.Evpath[rank]; got.WriterID != int64(1000*int(r.key)+500+rank) || got.Contact == "" {
				s.t.Fatalf("rank %d: data %+v", rank, got)
			}
		}
	}
}

// checkStep checks a step against what the members put into it, and the order.
func (r *writerSimReader) checkStep(s *writerSim, m *sstmsg.TimestepMetadata) {
	if !r.active {
		s.t.Fatalf("step %d to reader %d, which is not active", m.Step, r.key)
	}
	for _, n := range slices.Concat(r.whole, r.hollow) {
		if n >= m.Step {
			s.t.Fatalf("step %d to reader %d after step %d", m.Step, r.key, n)
		}
	}
	if m.Metadata == nil {
		r.hollow = append(r.hollow, m.Step)
		if m.Formats != nil || m.Native != nil || len(m.Attributes) == 0 {
			s.t.Fatalf("discarded step %d brings formats, places or no attribute list", m.Step)
		}
		return
	}
	if m.Step < r.next && !r.observer { // a real reader would neither look at it nor release it
		s.t.Fatalf("step %d to reader %d, which was told that step %d is its first", m.Step, r.key, r.next)
	}
	idle := len(r.whole) == len(r.returned)
	r.whole = append(r.whole, m.Step)
	if push := slices.Contains(r.pushed, m.Step); push != (m.PreloadMode == 1) {
		s.t.Fatalf("step %d to reader %d: mode %d, pushed %v", m.Step, r.key, m.PreloadMode, push)
	}
	s.model.sent(r, m)
	if idle {
		r.owes = int64(len(s.model.steps))
		r.missed = r.owes - 1 - int64(len(s.model.keptFor(r)))
	}
	for _, f := range m.Formats {
		id := string(f.ID.Bytes())
		if r.known[id] {
			s.t.Fatalf("format %s came twice to reader %d", id, r.key)
		}
		r.known[id] = true
	}
	if r.attributes == nil {
		r.attributes = make([]string, len(m.Attributes))
	}
	for rank, b := range m.Attributes {
		if b.Data.Len() > 0 {
			r.attributes[rank] = string(b.Data.Bytes())
		}
	}
	s.model.content(r, m)
}

// dropped carries out a DropReader. Who does not go by itself must hear of it.
func (r *writerSimReader) dropped(s *writerSim, err error, cut bool) {
	if r.gone {
		s.t.Fatalf("reader %d was dropped twice", r.key)
	}
	told := r.closed && (r.code != sstmsg.CloseNormal || errors.Is(err, ErrClosed))
	if err != nil && !r.cut && told == cut {
		s.t.Fatalf("reader %d was dropped: %v; told %v, cut %v", r.key, err, told, cut)
	}
	c := s.model.counts(r)
	r.gone = true
	s.model.dropped(r, c, err)
	r.up, r.down = nil, nil
}

// fromReader lets one thing of a reader arrive at the writer.
func (s *writerSim) fromReader(r *writerSimReader) {
	if r.gone || s.leaderDead {
		r.up, r.down = nil, nil
		return
	}
	if len(r.up) == 0 {
		if r.cut {
			s.lead(ReaderLost{r.key, errTest})
		}
		return
	}
	m := r.up[0]
	r.up = r.up[1:]
	switch m := m.(type) {
	case *sstmsg.ReaderPlane:
		r.planed, r.plane = true, m.Plane
	case *sstmsg.ReaderActivate:
		r.active = true
		r.from = s.leader.NextStep()
	case *sstmsg.ReaderRequestStep:
		r.requests++
	case *sstmsg.ReleaseTimestep:
		r.returned = append(r.returned, m.Step)
		r.missed = max(r.missed, m.Step)
		s.model.returned(r, m.Step)
	}
	s.lead(FromReader{r.key, m})
}

// toReader lets one message arrive at a reader.
func (s *writerSim) toReader(r *writerSimReader) {
	if len(r.down) == 0 || r.left || r.cut {
		r.down = nil
		return
	}
	msg := r.down[0]
	r.down = r.down[1:]
	switch m := msg.(type) {
	case *sstmsg.TimestepMetadata:
		if m.Step <= r.seen {
			s.t.Fatalf("step %d comes to reader %d after step %d", m.Step, r.key, r.seen)
		}
		r.seen = m.Step
		if m.Metadata == nil {
			r.seenHollow++
			return
		}
		r.seenWhole++
		r.has = append(r.has, m.Step)
		r.asks = max(r.asks-1, 0)
	case *sstmsg.WriterClose:
		r.ended = true
	}
}

func (r *writerSimReader) say(m sstmsg.Message) { r.up = append(r.up, m) }

// readerActs lets a reader do one thing that it may do.
func (s *writerSim) readerActs(r *writerSimReader) {
	if r.cut || r.gone || r.left {
		return
	}
	switch {
	case r.answered && !r.activated && len(r.down) == 0:
		r.activated = true
		if r.registered == PlaneNative && s.below("says its plane", 8) > 0 {
			r.say(&sstmsg.ReaderPlane{WriterID: 1, Plane: []string{PlaneNative, PlaneMixed, PlaneEvpath}[s.below("plane", 3)]})
		}
		r.say(&sstmsg.ReaderActivate{WriterID: 1})
	case len(r.has) > 0 && (s.settling || s.cfg.Distribution != OnDemand || s.coin("release")):
		i := 0
		if r.weft {
			i = s.below("which", len(r.has))
		}
		r.say(&sstmsg.ReleaseTimestep{Step: r.has[i]})
		r.has = slices.Delete(r.has, i, i+1)
	case r.activated && s.cfg.Distribution == OnDemand && r.asks < 2:
		r.asks++
		r.say(&sstmsg.ReaderRequestStep{})
	}
}

// leave says goodbye, in the middle of anything.
func (r *writerSimReader) leave() {
	if r.activated && !r.left && !r.cut && !r.gone {
		r.left = true
		r.say(&sstmsg.ReaderClose{})
	}
}

// vanish cuts the link; some of what was said is lost.
func (s *writerSim) vanish(r *writerSimReader) {
	if !r.cut && !r.gone {
		r.cut = true
		r.up = r.up[:s.below("kept of the reader", len(r.up)+1)]
		r.down = nil
	}
}
