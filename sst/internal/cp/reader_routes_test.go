package cp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// nativeReaderConfig is of a reader that has both planes, or the native one alone.
func nativeReaderConfig(members int, forced bool) ReaderConfig {
	cfg := testReaderConfig(members)
	if cfg.Planes = []string{PlaneNative, PlaneEvpath}; forced {
		cfg.Planes = cfg.Planes[:1]
	}
	return cfg
}

// nativeResponse is of a writer of n ranks, with a contact for each.
func nativeResponse(n int) ReaderEvent {
	return response(func(m *sstmsg.WriterResponse) {
		m.CP, m.Evpath = nil, nil
		for i := range n {
			m.CP = append(m.CP, sstmsg.CPWriter{Contact: "w", WriterID: testWSR + int64(i)})
			m.Evpath = append(m.Evpath, sstmsg.EvpathWriter{Contact: "w", WriterID: 90 + int64(i)})
			m.Native = append(m.Native, sstmsg.NativeWriter{Contact: fmt.Sprint("native ", i)})
		}
	})
}

// hasTried is a member's answer: it reaches so many of two writer ranks.
func hasTried(m int, try int64, native int) ReaderEvent {
	r := &Routed{Try: try, Native: native, Total: 2}
	if native < 2 {
		r.Cause = NewFault(fmt.Errorf("another host: %w", errTest))
	}
	return FromMember{m, r}
}

// trying is a cohort of two that tries its routes.
func trying(rest ...line) []line {
	return append([]line{
		on(memberHello(0)),
		on(memberHello(1)),
		on(weftAttempt(), "send DPQuery"),
		on(plane(PlaneNative), "send ReaderRegister", "recycle"),
		on(nativeResponse(2), "all: try routes 1", "recycle"),
	}, rest...)
}

// routesTable are the rules of the native plane, for two members.
var routesTable = map[string]struct {
	forced bool
	lines  []line
}{
	"every route": {false, trying(
		on(hasTried(1, 1, 2)),
		on(hasTried(0, 1, 2), "send ReaderPlane native to 42", "send ReaderActivate to 42", "all: readeropened native"),
		on(hasTried(0, 1, 2)),
		on(arrives(0)),
	)},
	"no route": {false, trying(
		on(hasTried(0, 1, 0)),
		on(hasTried(1, 1, 0), "send ReaderPlane evpath to 42", "send ReaderActivate to 42", "all: readeropened"),
	)},
	"some routes of one rank": {false, trying(
		on(hasTried(0, 1, 2)),
		on(hasTried(1, 1, 1), "send ReaderPlane mixed to 42", "send ReaderActivate to 42", "all: readeropened mixed"),
	)},
	"the routes of one rank": {false, trying(
		on(hasTried(0, 1, 0)),
		on(hasTried(1, 1, 2), "send ReaderPlane mixed to 42", "send ReaderActivate to 42", "all: readeropened mixed"),
	)},
	"the first answer counts": {false, trying(
		on(hasTried(0, 1, 2)),
		on(hasTried(0, 1, 0)),
		on(hasTried(1, 1, 2), "send ReaderPlane native to 42", "send ReaderActivate to 42", "all: readeropened native"),
	)},
	"the writer answers evpath": {false, append(trying()[:3:3],
		on(plane(PlaneEvpath), "send ReaderRegister", "recycle"),
		on(nativeResponse(2), "send ReaderActivate to 42", "all: readeropened", "recycle"),
		on(hasTried(0, 1, 2)),
	)},
	"native is wanted, and here": {true, trying(
		on(hasTried(0, 1, 2)),
		on(hasTried(1, 1, 2), "send ReaderPlane native to 42", "send ReaderActivate to 42", "all: readeropened native"),
	)},
	// The handshake is finished, as after every refusal.
	"native is wanted, and not here": {true, trying(
		on(hasTried(0, 1, 1)),
		on(hasTried(1, 1, 0), "send ReaderActivate to 42", "open failed: ErrPlane", "all: failed ErrPlane", "send ReaderClose to 42", "drop link"),
	)},
	"native is wanted, and the writer lacks it": {true, append(trying()[:3:3],
		on(plane(PlaneEvpath), "open failed: ErrPlane", "all: failed ErrPlane", "drop link", "recycle"),
	)},
	// Nothing of ADIOS2's is called so.
	"an ADIOS2 writer says native": {false, []line{
		on(attempt(), "send DPQuery"),
		on(plane(PlaneNative), "open failed: ErrPlane", "all: failed ErrPlane", "drop link", "recycle"),
	}},
	"contacts are missing": {false, append(trying()[:4:4],
		on(response(nil), "send ReaderActivate to 42", "open failed: ErrProtocol", "all: failed ErrProtocol", "send ReaderClose to 42", "drop link", "recycle"),
	)},
	"a response that we cannot read": {false, append(trying()[:4:4],
		on(response(func(m *sstmsg.WriterResponse) { m.Params.MarshalMethod = 0; m.Native = make([]sstmsg.NativeWriter, 1) }),
			"send ReaderActivate to 42", "open failed: ErrMarshal", "all: failed ErrMarshal", "send ReaderClose to 42", "drop link", "recycle"),
	)},

	// Members that go. Who has left is not waited for, and does not count.
	"a rank closes that is waited for": {false, trying(
		on(hasTried(0, 1, 2)),
		on(memberLeaves(1), "send ReaderPlane native to 42", "send ReaderActivate to 42", "all: readeropened native"),
		on(hasTried(1, 1, 0)),
	)},
	"a rank closes that has answered": {false, trying(
		on(hasTried(1, 1, 0)),
		on(memberLeaves(1)),
		on(hasTried(0, 1, 2), "send ReaderPlane native to 42", "send ReaderActivate to 42", "all: readeropened native"),
	)},
	"a rank has closed before": {false, append(trying()[:4:4],
		on(memberLeaves(1)),
		on(nativeResponse(2), "all: try routes 1", "recycle"),
		on(hasTried(0, 1, 2), "send ReaderPlane native to 42", "send ReaderActivate to 42", "all: readeropened native"),
	)},
	"all close": {false, trying(
		on(memberLeaves(1)),
		on(memberLeaves(0), "open failed: ErrClosed", "send ReaderActivate to 42", "send ReaderClose to 42", "drop link"),
		on(hasTried(0, 1, 2)),
	)},
	"a rank dies": {false, trying(
		on(hasTried(0, 1, 2)),
		on(MemberLost{1, errTest}, "open failed: ErrRankLost+errTest", "all: failed ErrRankLost", "send ReaderActivate to 42", "send ReaderClose to 42", "drop link"),
		on(memberLeaves(0)),
	)},
	"a rank fails": {false, trying(
		on(memberFails(1, ErrParam), "open failed: ErrParam", "all: failed ErrParam", "send ReaderActivate to 42", "send ReaderClose to 42", "drop link"),
	)},
	"a rank counts wrongly": {false, trying(
		on(FromMember{1, &Routed{Try: 1, Native: 3, Total: 3}},
			"open failed: ErrProtocol", "all: failed ErrProtocol", "send ReaderActivate to 42", "send ReaderClose to 42", "drop link"),
	)},
	"a rank counts below nothing": {false, trying(
		on(FromMember{1, &Routed{Try: 1, Native: -1, Total: 2}},
			"open failed: ErrProtocol", "all: failed ErrProtocol", "send ReaderActivate to 42", "send ReaderClose to 42", "drop link"),
	)},
	"the time is up": {false, trying(
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error", "send ReaderActivate to 42", "send ReaderClose to 42", "drop link"),
		on(Cancel{errTest}),
		on(hasTried(0, 1, 2)),
	)},
	"leave now": {false, trying(
		on(LeaveNow{ErrTimeout}, "open failed: another error", "all: failed another error", "send ReaderActivate to 42", "send ReaderClose to 42", "drop link"),
	)},
	"the time is up before the response": {false, append(trying()[:4:4],
		on(Cancel{errTest}, "open failed: errTest", "all: failed another error"),
		on(nativeResponse(2), "send ReaderActivate to 42", "send ReaderClose to 42", "drop link", "recycle"),
	)},

	// The writer goes meanwhile.
	"link lost": {false, trying(
		on(WriterLost{errTest}, "open failed: ErrWriterLost+errTest", "all: failed ErrWriterLost", "drop link"),
		on(hasTried(0, 1, 2)),
	)},
	"the writer fails": {false, trying(
		on(closes(sstmsg.CloseFailed, "rank 3 is lost"), "open failed: ErrWriterLost", "all: failed ErrWriterLost", "drop link", "recycle"),
	)},
	"the stream ends, and another one begins": {false, trying(
		on(hasTried(0, 1, 2)),
		on(writerClose(0), "drop link", "try again: ErrTooLate", "recycle"),
		on(hasTried(1, 1, 2)),
		on(weftAttempt(), "send DPQuery"),
		on(plane(PlaneNative), "send ReaderRegister", "recycle"),
		on(nativeResponse(2), "all: try routes 2", "recycle"),
		on(hasTried(1, 1, 2)), // of the writer before
		on(hasTried(1, 2, 0)),
		on(hasTried(0, 2, 0), "send ReaderPlane evpath to 42", "send ReaderActivate to 42", "all: readeropened"),
	)},
	"messages out of place": {false, trying(
		on(nativeResponse(2), "recycle"),
		on(plane(PlaneNative), "recycle"),
		on(endedAtRegister(), "recycle"),
		on(peerSetup(1), "recycle"),
		on(arrives(0), "recycle"),
		on(Settled{}),
		on(weftAttempt()),
		on(asks(0, 0)),
		on(memberHello(1)),
		on(from(&sstmsg.ReaderPlane{}), "open failed: ErrProtocol", "all: failed ErrProtocol", "drop link", "recycle"),
	)},
	"an answer before the question": {false, append(trying()[:4:4],
		on(hasTried(0, 1, 2)),
		on(nativeResponse(2), "all: try routes 1", "recycle"),
		on(hasTried(1, 1, 2)),
		on(hasTried(0, 1, 2), "send ReaderPlane native to 42", "send ReaderActivate to 42", "all: readeropened native"),
	)},
}

func TestReaderRoutes(t *testing.T) {
	for name, c := range routesTable {
		t.Run(name, func(t *testing.T) { play(t, NewReaderLeader(nativeReaderConfig(2, c.forced)), c.lines) })
	}
}

// TestReaderRoutesWake: each change of phase wakes whoever waits for it.
func TestReaderRoutesWake(t *testing.T) {
	for name, c := range routesTable {
		l := NewReaderLeader(nativeReaderConfig(2, c.forced))
		for i, at := range c.lines {
			phase := l.Phase()
			if woken := slices.Contains(l.Handle(at.do), ReaderAction(Wake{})); l.Phase() != phase && !woken {
				t.Errorf("%s: %s: nobody was woken", name, nameReaderEvent(i, at.do))
			}
		}
	}
}

// TestReaderRoutesMessages looks into what is sent, and what the shell is told.
func TestReaderRoutesMessages(t *testing.T) {
	l := NewReaderLeader(nativeReaderConfig(2, false))
	lines := trying()
	sent := func(at line) (m sstmsg.Message, all Message) {
		for _, a := range l.Handle(at.do) {
			switch a := a.(type) {
			case SendToWriter:
				m = a.Msg
			case ToAll:
				all = a.Msg
			}
		}
		return m, all
	}
	runReader(l, lines[:2]...)
	if m, _ := sent(lines[2]); m.(*sstmsg.DPQuery).Planes != "native,evpath" {
		t.Errorf("query %+v", m)
	}
	if m, _ := sent(lines[3]); m.(*sstmsg.ReaderRegister).Plane != PlaneNative {
		t.Errorf("registration %+v", m)
	}
	_, all := sent(lines[4])
	if d := cmp.Diff(&TryRoutes{Try: 1, Contacts: []string{"native 0", "native 1"}}, all); d != "" {
		t.Error(d)
	}
	if !l.Opening() || !l.Pending() || l.Phase() != Routing || l.Plane() != PlaneNative {
		t.Errorf("opening %v, pending %v, phase %v, plane %s", l.Opening(), l.Pending(), l.Phase(), l.Plane())
	}
	l.Handle(hasTried(0, 1, 1))
	if _, all = sent(on(hasTried(1, 1, 2))); all.(*ReaderOpened).Plane != PlaneMixed || l.Plane() != PlaneMixed {
		t.Errorf("opened %+v", all)
	}
}

// TestReaderPlanesOfADIOS2: its writers are not told what they cannot know.
func TestReaderPlanesOfADIOS2(t *testing.T) {
	l := NewReaderLeader(nativeReaderConfig(1, false))
	for _, at := range opening() {
		for _, a := range l.Handle(at.do) {
			s, ok := a.(SendToWriter)
			if !ok {
				continue
			}
			switch m := s.Msg.(type) {
			case *sstmsg.DPQuery:
				if m.Planes != "" {
					t.Errorf("query %+v", m)
				}
			case *sstmsg.ReaderRegister:
				if m.Plane != "" {
					t.Errorf("registration %+v", m)
				}
			}
		}
	}
	if l.Phase() != Streaming {
		t.Errorf("phase %v", l.Phase())
	}
}

// TestUnreached: the error names the ranks that fall short, why, and no more of
// them than people read.
func TestUnreached(t *testing.T) {
	const members = maxCauses + 3
	l := NewReaderLeader(nativeReaderConfig(members, true))
	for m := range members {
		l.Handle(FromMember{m, &ReaderHello{Params: "p"}})
	}
	runReader(l, on(weftAttempt()), on(plane(PlaneNative)), on(nativeResponse(2)))
	l.Handle(hasTried(0, 1, 2))
	l.Handle(FromMember{1, &Routed{Try: 1, Total: 2}})
	for m := 2; m < members; m++ {
		l.Handle(hasTried(m, 1, 1))
	}
	err := l.Failure()
	if rank, ok := ErrorRank(err); !errors.Is(err, ErrPlane) || !ok || rank != 1 {
		t.Fatalf("%v of rank %d, %v", err, rank, ok)
	}
	for _, part := range []string{
		"must be native", "rank 1 reaches 0 of 2 writer ranks: it does not say why", "rank 2 reaches 1 of 2 writer ranks: another host", "and 2 reader ranks more",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %s", err, part)
		}
	}
	for _, part := range []string{"rank 0 reaches", fmt.Sprintf("rank %d reaches", members-1)} {
		if strings.Contains(err.Error(), part) {
			t.Errorf("%q says %s", err, part)
		}
	}
}
