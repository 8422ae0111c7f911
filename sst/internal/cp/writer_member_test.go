package cp

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// writerMemberLine is an event of a member, and what must follow from it.
type writerMemberLine struct {
	do   WriterMemberEvent
	want []string
}

func memberOn(do WriterMemberEvent, want ...string) writerMemberLine {
	return writerMemberLine{do, want}
}

func hears(m Message) WriterMemberEvent { return FromLeader{m} }

// Verdicts on a try, for a step.
func published(try, step int64) WriterMemberEvent {
	return hears(&Verdict{Try: try, Step: step, Outcome: Published})
}

func discards(try, step int64) WriterMemberEvent {
	return hears(&Verdict{Try: try, Step: step, Outcome: Discarded})
}

func aborted(try, step int64) WriterMemberEvent {
	return hears(&Verdict{Try: try, Step: step, Outcome: Aborted, Cause: NewFault(fmt.Errorf("rank 7: %w", ErrStepAborted))})
}

func endsTry() WriterMemberEvent { return EndTry{&Contribute{}} }

// joined is how every stream begins.
var joined = []writerMemberLine{
	memberOn(MemberStart{}, "say hello of 1"),
	memberOn(hears(&Welcome{Base: 2, Ranks: 5}), "welcomed at 2 of 5"),
	memberOn(hears(&Started{})),
}

func TestWriterMember(t *testing.T) {
	for name, c := range map[string]struct {
		begun bool // Go comes first
		lines []writerMemberLine
	}{
		"two steps, to the end": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 0"),
			memberOn(published(0, 0)),
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 1"),
			memberOn(hears(&Free{0}), "free 0"),
			memberOn(published(1, 1)),
			memberOn(MemberFinish{}, "say finished"),
			memberOn(hears(&Free{1}), "free 1"),
			memberOn(hears(&Drained{})),
			memberOn(LeaderLost{errTest}), // it may go now
			memberOn(MemberFinish{}),
		}},
		"readers come and go": {false, []writerMemberLine{
			memberOn(hears(&Admit{Reader: 1}), "admit [1]"),
			memberOn(hears(&Dismiss{Reader: 1}), "dismiss [1]"),
			memberOn(ReaderAdmitted{&Admitted{Reader: 1}}, "say admitted [1]"), // too late, and harmless
		}},
		"preload": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 0"),
			memberOn(hears(&Push{Reader: 1, Step: 0}), "push 0 [1]"), // before the verdict
			memberOn(PushBroke{&PushFailed{Reader: 1}}, "say push failed [1]"),
			memberOn(published(0, 0)),
		}},
		"there is room at last": {false, []writerMemberLine{
			memberOn(HasRoom{}),
			memberOn(BeginTry{}),
			memberOn(HasRoom{}),
			memberOn(endsTry(), "say share of try 0"),
			memberOn(HasRoom{}, "say room for try 0"),
			memberOn(published(0, 0)),
			memberOn(HasRoom{}),
		}},
		"discarded": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 0"),
			memberOn(discards(0, 0), "drop 0"),
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 1"),
			memberOn(published(1, 1)),
		}},
		"another member gives up after we have ended": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 0"),
			memberOn(aborted(0, 0), "drop 0"),
		}},
		"another member gives up while the step is open: formats are sent all the same": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(aborted(0, 0)),
			memberOn(endsTry(), "say share of try 0", "drop 0"),
		}},
		"both give up": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(aborted(0, 0)),
			memberOn(AbortTry{errTest}),
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 1"),
		}},
		"other members give up, twice, before we begin": {false, []writerMemberLine{
			memberOn(aborted(0, 0)),
			memberOn(aborted(1, 0)),
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 0", "drop 0"),
			memberOn(BeginTry{}),
			memberOn(AbortTry{errTest}),
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 2"),
			memberOn(published(2, 0)),
		}},
		"we give up an open step": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(AbortTry{errTest}, "say withdraw from try 0"),
			memberOn(endsTry()),
			memberOn(AbortTry{errTest}),
			memberOn(BeginTry{}), // not before the verdict
			memberOn(aborted(0, 0)),
			memberOn(BeginTry{}),
		}},
		"we give up while the verdict is out": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 0"),
			memberOn(AbortTry{errTest}, "say withdraw from try 0"),
			memberOn(aborted(0, 0), "drop 0"),
			memberOn(AbortTry{errTest}),
		}},
		"we give up too late": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 0"),
			memberOn(AbortTry{errTest}, "say withdraw from try 0"),
			memberOn(published(0, 0)),
			memberOn(hears(&Free{0}), "free 0"),
		}},
		"nothing to give up": {false, []writerMemberLine{
			memberOn(AbortTry{errTest}),
			memberOn(endsTry()),
		}},
		"closed with an open step": {false, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(MemberFinish{}, "say withdraw from try 0", "say finished"),
			memberOn(aborted(0, 0)),
			memberOn(BeginTry{}),
			memberOn(MemberFinish{}),
		}},
		"held up until there is room": {true, []writerMemberLine{
			memberOn(BeginTry{}),
			memberOn(hears(&Go{Try: 0})),
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 0"),
			memberOn(published(0, 0)),
			memberOn(BeginTry{}),
			memberOn(endsTry()),
			memberOn(hears(&Go{Try: 1})),
			memberOn(BeginTry{}),
			memberOn(endsTry(), "say share of try 1"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewWriterMember(MemberConfig{Hello: WriterHello{Ranks: 1}, BlockInBegin: c.begun})
			for i, l := range append(joined[:len(joined):len(joined)], c.lines...) {
				same(t, fmt.Sprintf("line %d: %T", i, l.do), writerMemberTexts(m.Handle(l.do)), l.want...)
			}
			if m.Failure() != nil {
				t.Errorf("it failed: %v", m.Failure())
			}
		})
	}
}

// TestWriterMemberAnswers follows what can be asked of a member through two tries.
func TestWriterMemberAnswers(t *testing.T) {
	m := NewWriterMember(MemberConfig{Hello: WriterHello{Ranks: 1}})
	check := func(when string, canBegin, open, decided bool, next int64) {
		t.Helper()
		_, got := m.LastVerdict()
		if m.CanBegin() != canBegin || m.Open() != open || got != decided || m.NextStep() != next {
			t.Errorf("%s: can begin %v, open %v, decided %v, next %d; want %v, %v, %v, %d",
				when, m.CanBegin(), m.Open(), got, m.NextStep(), canBegin, open, decided, next)
		}
	}
	check("new", false, false, false, 0)
	for _, l := range joined {
		m.Handle(l.do)
	}
	check("started", true, false, false, 0)
	m.Handle(BeginTry{})
	check("begun", false, true, false, 0)
	m.Handle(endsTry())
	check("ended", false, false, false, 0)
	m.Handle(published(0, 0))
	check("published", true, false, true, 1)
	m.Handle(aborted(1, 1))
	m.Handle(BeginTry{})
	check("begun, and given up by another one", false, true, true, 1)
	if v, _ := m.LastVerdict(); v.Outcome != Aborted || !errors.Is(v.Cause, ErrStepAborted) {
		t.Errorf("verdict %+v", v)
	}
	m.Handle(AbortTry{errTest})
	check("given up", true, false, true, 1)
	m.Handle(BeginTry{})
	m.Handle(endsTry())
	m.Handle(discards(2, 1))
	check("discarded", true, false, true, 2)
	m.Handle(BeginTry{})
	m.Handle(AbortTry{errTest})
	check("given up, verdict out", false, false, false, 2)
	m.Handle(MemberFinish{})
	m.Handle(aborted(3, 2))
	check("finished", false, false, true, 2)
}

// TestWriterMemberFails: whatever ends the stream ends it here, once, and nothing
// is said any more.
func TestWriterMemberFails(t *testing.T) {
	for name, c := range map[string]struct {
		do   WriterMemberEvent
		want error
	}{
		"told so":                   {hears(&StreamFailed{NewFault(ErrRankLost)}), ErrRankLost},
		"told so without a cause":   {hears(&StreamFailed{}), ErrClosed},
		"the leader dies":           {LeaderLost{errTest}, errTest},
		"the leader is just gone":   {LeaderLost{}, ErrRankLost},
		"a verdict on no step":      {published(0, 0), ErrProtocol},
		"a verdict on another try":  {aborted(3, 0), ErrProtocol},
		"a message of another side": {hears(&StepTo{}), ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewWriterMember(MemberConfig{Hello: WriterHello{Ranks: 1}})
			for _, l := range joined {
				m.Handle(l.do)
			}
			m.Handle(BeginTry{})
			m.Handle(c.do)
			if m.Phase() != WriterFailed || !errors.Is(m.Failure(), c.want) || m.Open() || m.CanBegin() {
				t.Fatalf("phase %v, failure %v, open %v; want %v", m.Phase(), m.Failure(), m.Open(), c.want)
			}
			for _, e := range []WriterMemberEvent{endsTry(), BeginTry{}, MemberFinish{}, LeaderLost{}, hears(&Drained{})} {
				same(t, fmt.Sprintf("%T", e), writerMemberTexts(m.Handle(e)))
			}
			if !errors.Is(m.Failure(), c.want) {
				t.Errorf("failure is %v now", m.Failure())
			}
		})
	}
}

// TestWriterMemberHello: a member says who it is, and its share is what it was
// given.
func TestWriterMemberHello(t *testing.T) {
	hello := WriterHello{Ranks: 3, Contact: "c", Params: "p"}
	m := NewWriterMember(MemberConfig{Hello: hello})
	if got := m.Handle(MemberStart{})[0].(ToLeader).Msg.(*WriterHello); *got != hello {
		t.Errorf("hello %+v, want %+v", got, hello)
	}
	m.Handle(hears(&Welcome{}))
	m.Handle(hears(&Started{}))
	m.Handle(BeginTry{})
	c := &Contribute{Try: 99, Bytes: []uint64{1, 2, 3}, Metadata: make([]sstmsg.Block, 3)}
	if got := m.Handle(EndTry{c})[0].(ToLeader).Msg; got != Message(c) || c.Try != 0 {
		t.Errorf("share %+v of try %d", got, c.Try)
	}
}

// TestWriterNames: what logs and pages show.
func TestWriterNames(t *testing.T) {
	if got := fmt.Sprint(AllToAll, RoundRobin, OnDemand, Distribution(9)); got != "AllToAll RoundRobin OnDemand unknown" {
		t.Errorf("distributions %s", got)
	}
	if got := fmt.Sprint(WriterJoining, WriterWelcomed, WriterStarted, WriterFinished, WriterDrained, WriterFailed); got != "joining welcomed started finished drained failed" {
		t.Errorf("phases %s", got)
	}
}
