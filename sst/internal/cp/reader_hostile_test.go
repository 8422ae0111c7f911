package cp

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// TestReaderHostile feeds a leader and a member anything in any order: they never
// panic, say nothing after ReaderClose or DropLink, give all memory back once,
// and are closed in the end.
func TestReaderHostile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := testReaderConfig(2)
		planes := evenly(t, 2, "planes")
		if planes > 0 {
			cfg.Planes = nativeReaderConfig(2, planes == 1).Planes
		}
		cfg.Latest = rapid.Bool().Draw(t, "latest")
		h := &readerHostile{t: t, l: NewReaderLeader(cfg), m: NewReaderMember(testMemberConfig())}
		if planes > 1 { // which a wild history hardly comes to
			h.linked = true
			for _, at := range trying() {
				h.lead(at.do)
			}
		}
		for range evenly(t, 7, "events") {
			h.lead(h.event())
		}
		h.lead(LeaveNow{})
		h.lead(WriterLost{})
		for n := range int64(4) {
			h.lead(FromMember{0, &Released{n}})
		}
		for id, n := range h.freed {
			if n != 1 {
				t.Fatalf("message %d was freed %d times", id, n)
			}
		}
		if p := h.l.Phase(); p != Closed {
			t.Fatalf("phase %v", p)
		}
		h.m.Handle(MemberLeave{})
	})
}

type readerHostile struct {
	t                *rapid.T
	l                *ReaderLeader
	m                *ReaderMember
	freed            []int
	linked, goodbye  bool
	register, active bool
}

// event draws one.
func (h *readerHostile) event() ReaderEvent {
	small := func(label string) int64 { return int64(evenly(h.t, 2, label)) }
	switch evenly(h.t, 4, "event") {
	case 0, 1:
		h.linked = true
		a := cautiousAttempt().(Attempt)
		a.WeftVersion = int32(evenly(h.t, 1, "weft"))
		return a
	case 2:
		return WriterLost{errTest}
	case 3:
		return Settled{}
	case 4:
		if evenly(h.t, 3, "cancel") == 0 {
			return Cancel{errTest}
		}
	case 5:
		if evenly(h.t, 4, "lost") == 0 {
			return MemberLost{evenly(h.t, 1, "member"), errTest}
		}
	case 6, 7, 8, 9:
		h.member()
		m := evenly(h.t, 1, "member")
		return []ReaderEvent{
			memberHello(m), asks(m, small("index")), memberReleases(m, small("step")), memberHello(0), memberHello(1), locks(m), asks(m, small("index")), memberReleases(m, small("step")),
			hasTried(0, small("try"), evenly(h.t, 1, "native")), hasTried(m, 1, 2), hasTried(m, small("try"), 2), hasTried(m, 1, 2), hasTried(m, 1, 0), hasTried(m, 1, 1),
			FromMember{m, &Routed{Try: 1, Native: int(small("native"))}},
			memberLeaves(m),
		}[evenly(h.t, 4, "message")]
	}
	return h.message(small("number"))
}

// message draws a message of the writer, right or wrong.
func (h *readerHostile) message(n int64) ReaderEvent {
	list := []ReaderEvent{
		plane("evpath"), plane("evpath"), plane("ucx"), plane(PlaneEnded), endedAtRegister(), plane(PlaneNative), plane(PlaneNative), nativeResponse(2), nativeResponse(2),
		response(nil), onDemandResponse(), peerResponse(3), response(func(m *sstmsg.WriterResponse) { m.Params = nil }), from(&sstmsg.WriterResponse{Condition: testRegister}),
		peerSetup(int32(n)), peerSetup(1), arrives(n), arrives(n), discarded(n), discardedWith(n, "a"), writerClose(n), closes(int32(n), "why"),
		from(&sstmsg.CommPatternLocked{}), from(&sstmsg.ReaderClose{}), from(&sstmsg.ReadReply{}),
	}
	e := list[evenly(h.t, 6, "message")%len(list)].(FromWriter)
	id := len(h.freed)
	h.freed = append(h.freed, 0)
	e.Free = func() { h.freed[id]++ }
	return e
}

// member feeds the member something as wild.
func (h *readerHostile) member() {
	n := int64(evenly(h.t, 2, "number"))
	list := []ReaderMemberEvent{
		MemberStart{},
		told(&TryRoutes{Try: n}),
		RoutesTried{&Routed{Try: n}},
		toldOpened(), gives(n, n), givesNot(n, n), told(&StepTo{}), toldEnd(nil), toldEnd(ErrEvicted), toldGone(),
		Next{},
		Next{},
		Retain{n},
		Release{n},
		Lock{},
		told(&Go{}), told(&ReaderOpened{}),
		Next{},
	}
	h.m.Handle(list[evenly(h.t, 5, "member's event")%len(list)])
}

func (h *readerHostile) lead(e ReaderEvent) {
	for _, a := range h.l.Handle(e) {
		switch a := a.(type) {
		case Recycle:
			a.Free()
		case DropLink:
			h.linked = false
			h.goodbye = false
		case SendToWriter:
			h.send(a)
		}
	}
}

func (h *readerHostile) send(a SendToWriter) {
	_, is := a.Msg.(*sstmsg.ReaderClose)
	if !h.linked || h.goodbye && !is {
		h.t.Fatalf("%s, linked %v, after ReaderClose %v", nameMsg(a.Msg), h.linked, h.goodbye)
	}
	h.goodbye = h.goodbye || is
	switch a.Msg.(type) {
	case *sstmsg.ReaderRegister:
		h.register = true
	case *sstmsg.ReaderPlane:
		if !h.register || h.active {
			h.t.Fatalf("%s, registered %v, active %v", nameMsg(a.Msg), h.register, h.active)
		}
	case *sstmsg.ReaderActivate:
		h.active = true
	case *sstmsg.ReaderClose, *sstmsg.ReleaseTimestep, *sstmsg.ReaderRequestStep:
		if !h.register || !h.active {
			h.t.Fatalf("%s before the handshake is over", nameMsg(a.Msg))
		}
	}
}
