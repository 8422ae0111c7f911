package cp

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

func TestReaderLeader(t *testing.T) {
	for name, lines := range readerTable {
		t.Run(name, func(t *testing.T) { play(t, NewReaderLeader(testReaderConfig(0)), lines) })
	}
	for name, lines := range cohortTable {
		t.Run("cohort: "+name, func(t *testing.T) { play(t, NewReaderLeader(testReaderConfig(2)), lines) })
	}
	for name, c := range configTable {
		t.Run("with parameters: "+name, func(t *testing.T) {
			cfg := testReaderConfig(1)
			if c.change != nil {
				c.change(&cfg)
			}
			play(t, NewReaderLeader(cfg), c.lines)
		})
	}
}

func play(t *testing.T, l *ReaderLeader, lines []line) {
	t.Helper()
	for i, at := range lines {
		got := nameLeader(l.Handle(at.do))
		same(t, nameReaderEvent(i, at.do), got, at.want...)
	}
}

// run plays lines without looking, and returns the actions of the last one.
func runReader(l *ReaderLeader, lines ...line) (last []ReaderAction) {
	for _, at := range lines {
		last = l.Handle(at.do)
	}
	return last
}

// TestReaderMessages looks into what a cohort sends while it opens.
func TestReaderMessages(t *testing.T) {
	cfg := testReaderConfig(3)
	cfg.SpecPreload, cfg.Observer = true, true
	l := NewReaderLeader(cfg)
	var q *sstmsg.DPQuery
	for _, a := range l.Handle(weftAttempt()) {
		if s, ok := a.(SendToWriter); ok {
			q = s.Msg.(*sstmsg.DPQuery)
		}
	}
	if q == nil || q.WriterID != testStream || q.Condition != testQuery || q.Weft != 1 {
		t.Errorf("query %+v", q)
	}
	runReader(l, on(plane("evpath")), on(memberHello(0)), on(memberHello(2)))
	var reg *sstmsg.ReaderRegister
	for _, a := range l.Handle(memberHello(1)) {
		if s, ok := a.(SendToWriter); ok {
			reg = s.Msg.(*sstmsg.ReaderRegister)
		}
	}
	if reg == nil || reg.WriterID != testStream || reg.Condition != testRegister || reg.SpecPreload != 1 || reg.Observer != 1 || len(reg.CP) != 3 || len(reg.Evpath) != 3 {
		t.Fatalf("registration %+v", reg)
	}
	// Members 0 and 1 share a contact; on this link it is another one.
	for m, contact := range []string{"here", "here", "other"} {
		if reg.CP[m].Contact != contact || reg.Evpath[m].Contact != contact || reg.CP[m].ReaderID != testReader+int64(m) || reg.Evpath[m].ReaderID != 20+int64(m) {
			t.Errorf("contacts of member %d: %+v %+v", m, reg.CP[m], reg.Evpath[m])
		}
	}
	for _, a := range l.Handle(response(nil)) {
		if all, ok := a.(ToAll); ok {
			o := all.Msg.(*ReaderOpened)
			if !o.Weft || o.Plane != "evpath" || o.Writer != "w:1" || o.Release != "2.10" || o.Response.CP[0].WriterID != testWSR {
				t.Errorf("opened %+v", o)
			}
		}
	}
}

// TestDataContactStays: a member may be reached for data by another interface,
// which no address that a link shows replaces.
func TestDataContactStays(t *testing.T) {
	l := NewReaderLeader(testReaderConfig(1))
	runReader(l, on(attempt()), on(plane("evpath")))
	hello := memberHello(0).(FromMember)
	hello.Msg.(*ReaderHello).DP.Contact = "fast"
	for _, a := range l.Handle(hello) {
		if s, ok := a.(SendToWriter); ok {
			reg := s.Msg.(*sstmsg.ReaderRegister)
			if reg.CP[0].Contact != "here" || reg.Evpath[0].Contact != "fast" {
				t.Errorf("registered by %q, for data by %q", reg.CP[0].Contact, reg.Evpath[0].Contact)
			}
			return
		}
	}
	t.Error("not registered")
}

// TestObserverOfADIOS2: the word is not ADIOS2's, so it is not said there.
func TestObserverOfADIOS2(t *testing.T) {
	cfg := testReaderConfig(1)
	cfg.Observer = true
	l := NewReaderLeader(cfg)
	last := runReader(l, opening()[:3]...)
	for _, a := range last {
		if s, ok := a.(SendToWriter); ok && s.Msg.(*sstmsg.ReaderRegister).Observer != 0 {
			t.Error("it says that it is an observer")
		}
	}
}

// TestReaderState follows what the shell asks between events.
func TestReaderState(t *testing.T) {
	l := NewReaderLeader(testReaderConfig(2))
	check := func(phase Phase, opening, pending bool, queued, held, present int) {
		t.Helper()
		if l.Phase() != phase || l.Opening() != opening || l.Pending() != pending || l.Queued() != queued || l.Held() != held || l.Present() != present {
			t.Errorf("phase %v opening %v pending %v queued %d held %d present %d", l.Phase(), l.Opening(), l.Pending(), l.Queued(), l.Held(), l.Present())
		}
	}
	check(Idle, true, false, 0, 0, 2)
	runReader(l, cohortOf(2, cautiousAttempt())[:3]...)
	check(Querying, true, false, 0, 0, 2)
	l.Handle(plane("evpath"))
	check(Registering, true, true, 0, 0, 2)
	l.Handle(response(nil))
	check(Streaming, false, false, 0, 0, 2)
	runReader(l, on(arrives(0)), on(discarded(1)), on(arrives(2)))
	check(Streaming, false, false, 2, 0, 2)
	l.Handle(asks(1, 0))
	check(Streaming, false, false, 1, 1, 2)
	if got := l.Laggards(); len(got) != 2 {
		t.Errorf("laggards %v", got)
	}
	l.Handle(memberReleases(0, 0))
	if got := l.Laggards(); len(got) != 1 || got[0] != 1 {
		t.Errorf("laggards %v, want 1", got)
	}
	l.Handle(memberReleases(1, 0))
	if got := l.Laggards(); got != nil {
		t.Errorf("laggards %v, want none", got)
	}
	l.Handle(memberLeaves(1))
	check(Streaming, false, false, 1, 0, 1)
	l.Handle(memberLeaves(0))
	check(Parting, false, true, 0, 0, 0)
	l.Handle(Settled{})
	check(Closed, false, false, 0, 0, 0)
	if l.Plane() != "evpath" || l.Failure() != nil || l.Skipped() != 0 {
		t.Errorf("plane %q failure %v skipped %d", l.Plane(), l.Failure(), l.Skipped())
	}
	for p := Idle; p <= Closed; p++ {
		if p.String() == "" {
			t.Errorf("phase %d has no name", p)
		}
	}
}

// TestReaderLeaderWakes: each change of phase, and each member that goes, wakes
// whoever waits for it.
func TestReaderLeaderWakes(t *testing.T) {
	for name, lines := range readerTable {
		l := NewReaderLeader(testReaderConfig(1))
		for i, at := range lines {
			phase, present := l.Phase(), l.Present()
			woken := false
			for _, a := range l.Handle(at.do) {
				woken = woken || a == ReaderAction(Wake{})
			}
			if changed := l.Phase() != phase || l.Present() != present; changed && !woken {
				t.Errorf("%s: %s: nobody was woken", name, nameReaderEvent(i, at.do))
			}
		}
	}
}

// TestReaderErrors: what people read names the ranks, the texts, the cure.
func TestReaderErrors(t *testing.T) {
	var plane *PlaneError
	for name, c := range map[string]struct {
		n     int
		lines []line
		is    error
		parts []string
	}{
		"plane":      {1, readerTable["plane we lack"], ErrPlane, []string{"ucx", "evpath", "DataTransport", "WAN"}},
		"marshal":    {1, readerTable["marshalling we lack"], ErrMarshal, []string{"BP5", "MarshalMethod"}},
		"parameters": {2, cohortTable["other parameters"], ErrParam, []string{"rank 1", `"q"`, `"p"`}},
		"death":      {2, cohortTable["a rank dies"], ErrRankLost, []string{"rank 1", errTest.Error()}},
		"pattern":    {2, cohortTable["Peer pattern is refused"], ErrParam, []string{"CPCommPattern", "Min"}},
		"writer":     {1, readerTable["link lost without WriterClose"], ErrWriterLost, []string{"after step 0", errTest.Error()}},
		"evicted":    {1, configTable["evicted"].lines, ErrEvicted, []string{"after step 0: evicted: slow: 12 steps behind"}},
		"failed":     {1, configTable["the writer says that it failed"].lines, ErrWriterLost, []string{"before the first step", "rank 3 is lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewReaderLeader(testReaderConfig(c.n))
			runReader(l, c.lines...)
			err := l.Failure()
			if !errors.Is(err, c.is) {
				t.Fatalf("%v is not %v", err, c.is)
			}
			if name == "plane" && !errors.As(err, &plane) {
				t.Error("not a PlaneError")
			}
			for _, part := range c.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %s", err, part)
				}
			}
		})
	}
}

// TestEvictedWithoutReason keeps the error whole if the writer gives none.
func TestEvictedWithoutReason(t *testing.T) {
	l := NewReaderLeader(testReaderConfig(1))
	runReader(l, openingBy(weftAttempt(), on(closes(sstmsg.CloseEvicted, "")))...)
	if err := l.Failure(); !errors.Is(err, ErrEvicted) || strings.HasSuffix(err.Error(), ": ") {
		t.Errorf("%q", err)
	}
}

// TestPassedOverIsCopied: what the members get of a step that is not delivered
// does not refer to memory that goes back in the same breath.
func TestPassedOverIsCopied(t *testing.T) {
	for name, whole := range map[string]bool{"passed over": true, "discarded": false} {
		t.Run(name, func(t *testing.T) {
			cfg := testReaderConfig(1)
			cfg.Latest = true
			l := NewReaderLeader(cfg)
			runReader(l, opening()...)
			memory := []byte("formatformatid")
			m := &sstmsg.TimestepMetadata{Step: 0, CohortSize: 1, PreloadMode: 1,
				Formats:    []sstmsg.FormatBlock{{Body: sstmsg.Blob{memory[:6]}, ID: sstmsg.Blob{memory[6:12], memory[12:]}}},
				Attributes: []sstmsg.Block{{Data: sstmsg.Blob{memory[:6]}}},
			}
			if whole {
				m.Metadata = []sstmsg.Block{{Data: sstmsg.Blob{memory}}}
			}
			actions := l.Handle(FromWriter{Msg: m, Free: func() { clear(memory) }})
			actions = append(actions, l.Handle(arrives(1))...)
			var got *StepTo
			for _, a := range append(actions, l.Handle(asks(0, 0))...) {
				switch a := a.(type) {
				case Recycle:
					a.Free()
				case ToAll:
					if s := a.Msg.(*StepTo); s.Index < 0 {
						got = s
					}
				}
			}
			if got == nil || got.Msg.Metadata != nil || len(got.Msg.Attributes) != 1 || len(got.Msg.Formats) != 1 {
				t.Fatalf("%+v", got)
			}
			f := got.Msg.Formats[0]
			if string(f.Body.Bytes()) != "format" || string(f.ID.Bytes()) != "formatid" || string(got.Msg.Attributes[0].Data.Bytes()) != "format" {
				t.Errorf("%q %q", f.Body.Bytes(), f.ID.Bytes())
			}
		})
	}
}

// TestResponseIsKept: the response outlives the message it came in.
func TestResponseIsKept(t *testing.T) {
	l := NewReaderLeader(testReaderConfig(1))
	runReader(l, opening()[:3]...)
	memory := []byte("address")
	m := goodResponse()
	m.Rdma = []sstmsg.RdmaWriter{{WriterID: 1, Address: sstmsg.Blob{memory}}}
	for _, a := range l.Handle(from(m)) {
		if all, ok := a.(ToAll); ok {
			clear(memory)
			if got := all.Msg.(*ReaderOpened).Response.Rdma[0].Address.Bytes(); string(got) != "address" {
				t.Errorf("%q", got)
			}
		}
	}
}

// TestSoloIsCheap: one step of a cohort of one costs few allocations.
func TestSoloIsCheap(t *testing.T) {
	l, m := NewReaderLeader(testReaderConfig(1)), NewReaderMember(MemberReaderConfig{Leads: true})
	free := func() {}
	pass := func(actions []ReaderAction) {
		for _, a := range actions {
			if all, ok := a.(ToAll); ok {
				m.Handle(FromLeader(all))
			}
		}
	}
	answer := func(actions []ReaderMemberAction) {
		for _, a := range actions {
			if up, ok := a.(ToLeader); ok {
				pass(l.Handle(FromMember{0, up.Msg}))
			}
		}
	}
	m.Handle(MemberStart{})
	for _, at := range opening() {
		pass(l.Handle(at.do))
	}
	msg := &sstmsg.TimestepMetadata{Metadata: []sstmsg.Block{{}}, Attributes: []sstmsg.Block{{}}, Step: -1}
	step := func() {
		msg.Step++
		pass(l.Handle(FromWriter{Msg: msg, Free: free}))
		answer(m.Handle(Next{}))
		if m.Handle(Next{}); len(m.open) != 1 {
			t.Fatal("no step")
		}
		answer(m.Handle(Release{msg.Step}))
	}
	const most = 20
	if n := testing.AllocsPerRun(1000, step); n > most {
		t.Errorf("%v allocations for a step, want at most %d", n, most)
	} else {
		t.Logf("%v allocations for a step", n)
	}
}
