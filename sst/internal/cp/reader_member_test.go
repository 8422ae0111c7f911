package cp

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

func testMemberConfig() MemberReaderConfig {
	return MemberReaderConfig{Hello: ReaderHello{Params: "p"}, Leads: true}
}

// Messages of a leader.
func told(m Message) ReaderMemberEvent { return FromLeader{m} }

func toldOpened() ReaderMemberEvent { return told(&ReaderOpened{Response: goodResponse()}) }

// gives is the n-th step that is delivered.
func gives(index, step int64) ReaderMemberEvent {
	return told(&StepTo{Index: index, Msg: &sstmsg.TimestepMetadata{Step: step, Metadata: []sstmsg.Block{{}}}})
}

// givesNot is a step that is not delivered.
func givesNot(step, skipped int64) ReaderMemberEvent {
	return told(&StepTo{Index: -1, Msg: &sstmsg.TimestepMetadata{Step: step}, Skipped: skipped})
}

// givesNotIn is givesNot of a preload mode.
func givesNotIn(mode int32, step int64) ReaderMemberEvent {
	return told(&StepTo{Index: -1, Msg: &sstmsg.TimestepMetadata{Step: step, PreloadMode: mode}, Skipped: step + 1})
}

func toldEnd(err error) ReaderMemberEvent    { return told(&StreamEnd{NewFault(err)}) }
func toldGone() ReaderMemberEvent            { return told(&WriterGone{NewFault(ErrWriterLost)}) }
func toldFailed(err error) ReaderMemberEvent { return told(&StreamFailed{NewFault(err)}) }

type memberLine struct {
	do   ReaderMemberEvent
	want []string
}

func at(do ReaderMemberEvent, want ...string) memberLine { return memberLine{do, want} }

// reading is a member that is open.
func reading(rest ...memberLine) []memberLine {
	return append([]memberLine{
		at(MemberStart{}, "tell readerhello"),
		at(toldOpened(), "opened"),
	}, rest...)
}

// memberTable is one rule a history, for member 0.
var memberTable = map[string][]memberLine{
	"opens, reads, ends": reading(
		at(Next{}, "tell ask 0"),
		at(Next{}), // it waits
		at(gives(0, 4), "expect 4", "wake"),
		at(Next{}, "absorb 4", "deliver 4"),
		at(Release{4}, "forget 4", "tell released 4"),
		at(gives(1, 5), "expect 5", "wake"), // somebody else has asked
		at(toldEnd(nil), "wake"),
		at(Next{}, "absorb 5", "deliver 5"),
		at(Release{5}, "forget 5", "tell released 5"),
		at(Next{}, "end: nil"),
		at(Next{}, "end: nil"),
		at(MemberLeave{}, "tell left", "wake"),
	),
	// While nobody asks, one stands for the whole row; the planes hear of each.
	"steps that are not delivered": reading(
		at(Next{}, "tell ask 0"),
		at(givesNot(0, 1), "drop 0"),
		at(givesNot(1, 2), "drop 1"),
		at(Next{}, "absorb 0"),
		at(givesNot(2, 3), "drop 2"),
		at(gives(0, 3), "expect 3", "wake"),
		at(givesNot(6, 4), "drop 4-6"), // others got 4 and 5
		at(Next{}, "absorb 2", "absorb 3", "deliver 3"),
		at(givesNot(7, 5), "drop 7"),
		at(Release{3}, "forget 3", "tell released 3"),
		at(toldEnd(nil), "wake"),
		at(Next{}, "absorb 6", "end: nil"),
	),
	"steps that are not delivered, in a mode that means something": reading(
		at(givesNotIn(0, 0), "drop 0"),
		at(givesNotIn(1, 1), "drop 1"),
		at(givesNotIn(2, 2), "drop 2"),
		at(givesNotIn(2, 3), "drop 3"),
		at(givesNotIn(0, 4), "drop 4"),
		at(givesNotIn(2, 5), "drop 5"),
		at(Next{}, "absorb 0", "absorb 2 mode 2", "tell ask 0"),
	),

	// Retained steps.
	"retain": reading(
		at(gives(0, 0), "expect 0", "wake"),
		at(gives(1, 1), "expect 1", "wake"),
		at(gives(2, 2), "expect 2", "wake"),
		at(Next{}, "absorb 0", "deliver 0"),
		at(Next{}, "end: ErrOutOfOrder"),
		at(Retain{1}),
		at(Next{}, "end: ErrOutOfOrder"),
		at(Retain{0}),
		at(Retain{0}),
		at(Next{}, "absorb 1", "deliver 1"),
		at(Release{1}, "forget 1", "tell released 1"),
		at(Next{}, "absorb 2", "deliver 2"),
		at(Retain{2}),
		at(Release{0}, "forget 0", "tell released 0"),
		at(Release{0}),
		at(Next{}, "tell ask 3"),
		at(Release{2}, "forget 2", "tell released 2"),
	),
	"a retained step outlives the end": reading(
		at(gives(0, 0), "expect 0", "wake"),
		at(Next{}, "absorb 0", "deliver 0"),
		at(Retain{0}),
		at(toldEnd(nil), "wake"),
		at(Next{}, "end: nil"),
		at(Release{0}, "forget 0", "tell released 0"),
	),
	"steps that are not open": reading(
		at(Release{0}),
		at(Retain{-1}),
		at(Release{-1}),
	),

	"lock": reading(
		at(Lock{}, "tell locked"),
		at(Lock{}),
	),
	"lock before the start": {
		at(Lock{}),
		at(MemberStart{}, "tell readerhello"),
		at(Lock{}, "tell locked"),
	},

	// Openings that fail.
	"the opening fails": {
		at(MemberStart{}, "tell readerhello"),
		at(toldFailed(ErrPlane), "open failed: ErrPlane"),
		at(Next{}, "end: ErrPlane"),
		at(LeaderLost{}, "fail reads: ErrRankLost+errGone"),
		at(MemberLeave{}, "tell left", "wake"),
	},
	"the opening failed before we came": {
		at(toldFailed(ErrNoStream)),
		at(MemberStart{}, "open failed: another error"),
	},
	"the leader is lost before we came": {
		at(LeaderLost{errTest}),
		at(MemberStart{}, "open failed: ErrRankLost+errTest"),
	},
	"the leader is lost while opening": {
		at(MemberStart{}, "tell readerhello"),
		at(LeaderLost{errTest}, "open failed: ErrRankLost+errTest"),
	},
	"opened without a response": {
		at(MemberStart{}, "tell readerhello"),
		at(told(&ReaderOpened{}), "open failed: ErrProtocol"),
	},
	"starts once": {
		at(MemberStart{}, "tell readerhello"),
		at(MemberStart{}),
	},
	"leave before the start": {
		at(MemberLeave{Err: errTest}, "open failed: errTest", "tell left", "wake"),
		at(MemberStart{}),
		at(toldOpened()),
	},
	"leave while opening": {
		at(MemberStart{}, "tell readerhello"),
		at(MemberLeave{}, "open failed: ErrClosed", "tell left", "wake"),
		at(toldOpened()),
		at(toldFailed(ErrClosed)),
		at(LeaderLost{}),
		at(Next{}, "end: ErrClosed+ErrOutOfOrder"),
	},
	"next before the opening": {
		at(Next{}, "end: ErrOutOfOrder"),
		at(MemberStart{}, "tell readerhello"),
		at(Next{}, "end: ErrOutOfOrder"),
		at(gives(0, 0), "tell released 0"),
		at(toldEnd(nil)),
		at(toldGone()),
	},
	"opened twice": reading(
		at(toldOpened()),
	),

	// The native plane: only the answer to the newest question counts.
	"tries its routes": {
		at(MemberStart{}, "tell readerhello"),
		at(RoutesTried{&Routed{}}),
		at(told(&TryRoutes{Try: 1, Contacts: []string{"a"}}), "route 1"),
		at(RoutesTried{&Routed{Try: 1, Native: 1, Total: 1}}, "tell routed 1 of 1"),
		at(RoutesTried{&Routed{Try: 1, Native: 1, Total: 1}}),
		at(told(&TryRoutes{Try: 2}), "route 2"), // of another writer
		at(told(&TryRoutes{Try: 3}), "route 3"),
		at(RoutesTried{&Routed{Try: 2, Total: 1}}),
		at(RoutesTried{&Routed{Try: 3, Total: 2}}, "tell routed 0 of 2"),
		at(toldOpened(), "opened"),
		at(told(&TryRoutes{Try: 4})),
	},
	"leave while trying the routes": {
		at(MemberStart{}, "tell readerhello"),
		at(told(&TryRoutes{Try: 1}), "route 1"),
		at(MemberLeave{}, "open failed: ErrClosed", "tell left", "wake"),
		at(RoutesTried{&Routed{Try: 1}}),
		at(told(&TryRoutes{Try: 2})),
	},
	"the opening fails while the routes are tried": {
		at(MemberStart{}, "tell readerhello"),
		at(told(&TryRoutes{Try: 1}), "route 1"),
		at(toldFailed(ErrPlane), "open failed: ErrPlane"),
		at(RoutesTried{&Routed{Try: 1}}),
		at(told(&TryRoutes{Try: 2})),
	},
	"the leader is lost while the routes are tried": {
		at(MemberStart{}, "tell readerhello"),
		at(told(&TryRoutes{Try: 1}), "route 1"),
		at(LeaderLost{errTest}, "open failed: ErrRankLost+errTest"),
		at(RoutesTried{&Routed{Try: 1}}),
	},
	"routes before the start": {
		at(told(&TryRoutes{Try: 1})),
		at(MemberStart{}, "tell readerhello"),
	},

	// Failures while reading.
	"the writer fails": reading(
		at(gives(0, 0), "expect 0", "wake"),
		at(gives(1, 1), "expect 1", "wake"),
		at(Next{}, "absorb 0", "deliver 0"),
		at(toldGone(), "fail reads: ErrWriterLost"),
		at(toldEnd(ErrWriterLost), "wake"),
		at(Release{0}, "forget 0", "tell released 0"),
		at(Next{}, "absorb 1", "deliver 1"), // it is here
		at(Release{1}, "forget 1", "tell released 1"),
		at(Next{}, "end: ErrWriterLost"),
		at(Next{}, "end: ErrWriterLost"),
		at(MemberLeave{}, "tell left", "wake"),
	),
	"the writer fails at the end": reading(
		at(gives(0, 0), "expect 0", "wake"),
		at(toldEnd(nil), "wake"),
		at(Next{}, "absorb 0", "deliver 0"),
		at(Retain{0}),
		at(Next{}, "end: nil"),
		at(toldGone(), "fail reads: ErrWriterLost"),
		at(Next{}, "end: nil"),
	),
	"a rank fails": reading(
		at(gives(0, 0), "expect 0", "wake"),
		at(gives(1, 1), "expect 1", "wake"),
		at(givesNot(2, 1), "drop 2"),
		at(Next{}, "absorb 0", "deliver 0"),
		at(toldFailed(ErrRankLost), "fail reads: ErrRankLost", "tell released 1", "wake"),
		at(Release{0}, "forget 0", "tell released 0"),
		at(Next{}, "end: ErrRankLost"),
		at(gives(2, 3), "tell released 3"),
		at(givesNot(4, 1)),
		at(toldEnd(nil)),
	),
	"the leader fails": reading(
		at(Next{}, "tell ask 0"),
		at(LeaderLost{errTest}, "fail reads: ErrRankLost+errTest", "wake"),
		at(Next{}, "end: ErrRankLost+errTest"),
	),
	"the leader fails, all is read": reading(
		at(gives(0, 0), "expect 0", "wake"),
		at(Next{}, "absorb 0", "deliver 0"),
		at(Release{0}, "forget 0", "tell released 0"),
		at(toldEnd(nil), "wake"),
		at(LeaderLost{errTest}),
		at(Next{}, "end: nil"),
		at(LeaderLost{errTest}),
		at(Next{}, "end: nil"),
	),
	"the leader fails at the end, with a step": reading(
		at(gives(0, 0), "expect 0", "wake"),
		at(Next{}, "absorb 0", "deliver 0"),
		at(Retain{0}),
		at(toldEnd(nil), "wake"),
		at(Next{}, "end: nil"),
		at(LeaderLost{errTest}, "fail reads: ErrRankLost+errTest"),
		at(Next{}, "end: nil"),
	),
	"failures without a cause": reading(
		at(told(&WriterGone{}), "fail reads: ErrClosed"),
		at(told(&StreamFailed{}), "fail reads: ErrClosed", "wake"),
	),

	// Leaving. Memory of the leader is in use until the application has done with
	// the step.
	"leave with steps": reading(
		at(gives(0, 0), "expect 0", "wake"),
		at(gives(1, 1), "expect 1", "wake"),
		at(gives(2, 2), "expect 2", "wake"),
		at(givesNot(3, 1), "drop 3"),
		at(Next{}, "absorb 0", "deliver 0"),
		at(Retain{0}),
		at(Next{}, "absorb 1", "deliver 1"),
		at(MemberLeave{Err: errTest}, "fail reads: errTest", "tell released 2", "tell left", "wake"),
		at(MemberLeave{}),
		at(Next{}, "end: ErrClosed+ErrOutOfOrder"),
		at(gives(3, 4), "tell released 4"),
		at(givesNot(5, 1)),
		at(toldGone()),
		at(toldFailed(ErrClosed)),
		at(Lock{}),
		at(Retain{1}),
		at(Release{1}, "forget 1", "tell released 1"),
		at(Release{0}, "forget 0", "tell released 0"),
	),
	"messages of a leader that is out of its mind": reading(
		at(told(&StepTo{})),
		at(told(&StepTo{Index: -1})),
		at(told(&Go{})),
		at(toldEnd(nil), "wake"),
		at(toldEnd(ErrWriterLost)),
		at(gives(0, 0), "tell released 0"),
	),
}

func TestReaderMember(t *testing.T) {
	for name, lines := range memberTable {
		t.Run(name, func(t *testing.T) { playMember(t, NewReaderMember(testMemberConfig()), lines) })
	}
}

func playMember(t *testing.T, m *ReaderMember, lines []memberLine) {
	t.Helper()
	for i, l := range lines {
		same(t, nameReaderEvent(i, l.do), nameMember(m.Handle(l.do)), l.want...)
	}
}

// TestReaderMemberElsewhere: a member of another process shares no memory with
// the leader, and says nothing after it has left.
func TestReaderMemberElsewhere(t *testing.T) {
	playMember(t, NewReaderMember(MemberReaderConfig{}), reading(
		at(gives(0, 0), "expect 0", "wake"),
		at(gives(1, 1), "expect 1", "wake"),
		at(Next{}, "absorb 0", "deliver 0"),
		at(MemberLeave{}, "fail reads: ErrClosed", "tell left", "wake"),
		at(Release{0}, "forget 0"),
		at(gives(2, 2)),
	))
}

// TestReaderMemberState follows what the shell asks between events.
func TestReaderMemberState(t *testing.T) {
	m := NewReaderMember(testMemberConfig())
	check := func(phase ReaderMemberPhase, queued int, skipped int64, open ...int64) {
		t.Helper()
		got := m.OpenSteps()
		if m.Phase() != phase || m.Queued() != queued || m.Skipped() != skipped || len(got) != len(open) {
			t.Errorf("phase %v queued %d skipped %d open %v", m.Phase(), m.Queued(), m.Skipped(), got)
			return
		}
		for i := range open {
			if got[i] != open[i] {
				t.Errorf("open %v, want %v", got, open)
			}
		}
	}
	check(ReaderIdle, 0, 0)
	m.Handle(MemberStart{})
	check(ReaderOpening, 0, 0)
	m.Handle(toldOpened())
	check(ReaderReading, 0, 0)
	m.Handle(givesNot(0, 1))
	for i := range int64(2) {
		m.Handle(told(&StepTo{Index: i, Msg: &sstmsg.TimestepMetadata{Step: i + 1}, Skipped: 1}))
	}
	check(ReaderReading, 2, 0)
	m.Handle(Next{})
	check(ReaderReading, 1, 1, 1)
	m.Handle(Retain{1})
	m.Handle(Next{})
	check(ReaderReading, 0, 1, 1, 2)
	m.Handle(toldEnd(ErrEvicted))
	m.Handle(Release{1})
	m.Handle(Release{2})
	if !errors.Is(m.Failure(), ErrEvicted) {
		t.Errorf("failure %v", m.Failure())
	}
	m.Handle(Next{})
	check(ReaderFailed, 0, 1)
	m.Handle(MemberLeave{})
	check(ReaderLeft, 0, 1)
	for p := ReaderIdle; p <= ReaderLeft; p++ {
		if p.String() == "" {
			t.Errorf("phase %d has no name", p)
		}
	}
}

// TestFirstStep: a real writer announces to a late reader the last step that it
// has made, and then sends the next one.
func TestFirstStep(t *testing.T) {
	for name, arrive := range map[string]ReaderMemberEvent{"whole": gives(0, 9), "discarded": givesNot(9, 1)} {
		t.Run(name, func(t *testing.T) {
			m := NewReaderMember(testMemberConfig())
			want := func(n int64) {
				t.Helper()
				if got := m.FirstStep(); got != n {
					t.Errorf("first step %d, want %d", got, n)
				}
			}
			want(0)
			m.Handle(MemberStart{})
			r := goodResponse()
			r.NextStep = 8
			m.Handle(told(&ReaderOpened{Response: r}))
			want(8)
			m.Handle(arrive)
			want(9)
			m.Handle(gives(1, 10))
			want(9)
		})
	}
}

// TestReaderMemberErrors: a rank that hears of a death is told which rank it was.
func TestReaderMemberErrors(t *testing.T) {
	m := NewReaderMember(testMemberConfig())
	m.Handle(MemberStart{})
	m.Handle(LeaderLost{errTest})
	if err := m.Failure(); err == nil || !strings.Contains(err.Error(), "rank 0") {
		t.Errorf("%v", err)
	}
}
