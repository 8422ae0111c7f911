package cp

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// hostileFew are numbers that a rank can send by mistake or on purpose.
var hostileFew = []int64{0, 0, 1, 1, 2, 3, -1, 7, 1<<63 - 1, -1 << 63}

func hostileNumber(t *rapid.T) int64 { return hostileFew[evenly(t, 4, "number")%len(hostileFew)] }

// hostileMessage draws any message between ranks, with numbers that often fit.
func hostileMessage(t *rapid.T) Message {
	n, m := hostileNumber(t), hostileNumber(t)
	list := []Message{
		&WriterHello{Ranks: 1, Contact: "there"}, &WriterHello{Ranks: int(n)},
		&Contribute{Try: n, Metadata: make([]sstmsg.Block, 1), Attributes: make([]sstmsg.Blob, 1), Bytes: []uint64{uint64(m)}},
		&Contribute{Try: n}, &Contribute{Try: n, Metadata: make([]sstmsg.Block, 1), Bytes: make([]uint64, 1), Native: make([]sstmsg.Block, int(uint64(m)%3))},
		&Contribute{Try: n, Metadata: make([]sstmsg.Block, 2), Bytes: make([]uint64, 1)},
		&Room{n}, &Withdraw{Try: n}, &Admitted{Reader: ReaderKey(n), Control: []int64{m}, Data: []int64{m}}, &Admitted{Reader: ReaderKey(n)},
		&PushFailed{Reader: ReaderKey(n)}, &Finished{}, &Welcome{int(n), int(m)}, &Started{}, &Go{n},
		&Verdict{Try: n, Step: m, Outcome: Outcome(evenly(t, 1, "outcome"))}, &Admit{Reader: ReaderKey(n)}, &Replane{Reader: ReaderKey(n)}, &Dismiss{ReaderKey(n)},
		&Push{ReaderKey(n), m}, &Free{n}, &Drained{}, &ReaderHello{}, &Ask{n}, &Released{n}, &Locked{}, &Left{}, &ReaderOpened{},
		&ReaderOpened{Response: &sstmsg.WriterResponse{}}, &StepTo{Index: n},
		&StepTo{Index: n, Msg: &sstmsg.TimestepMetadata{Step: m}}, &StreamEnd{}, &WriterGone{}, &StreamFailed{},
		&TryRoutes{Try: n}, &Routed{Try: n, Native: int(m), Total: int(n)},
	}
	return list[evenly(t, 6, "message")%len(list)]
}

// TestHostileWriterRanks feeds the leader of a writer anything that a rank or a
// reader may say, right or wrong: it does not panic, and in the end nothing is held.
func TestHostileWriterRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := WriterConfig{
			Members: 2, QueueLimit: evenly(t, 1, "limit"), Discard: rapid.Bool().Draw(t, "discard"), Reserve: evenly(t, 1, "reserve"),
			Distribution: Distribution(evenly(t, 2, "distribution") % 3), BlockInBegin: rapid.Bool().Draw(t, "begin"), LagLimit: evenly(t, 2, "lag"),
			QueueLimitBytes: uint64(evenly(t, 3, "bytes")), FirstPrecious: rapid.Bool().Draw(t, "precious"),
			Planes: [][]string{nil, {PlaneNative, PlaneEvpath}}[evenly(t, 1, "planes")],
		}
		w := NewWriterLeader(cfg)
		tries := 0
		for range evenly(t, 7, "events") {
			k, n := evenly(t, 1, "rank"), hostileNumber(t)
			switch evenly(t, 4, "event") {
			case 0, 1, 2:
				w.Handle(FromMember{k, hostileMessage(t)})
			case 3:
				w.Handle(ContactPublished{})
			case 4:
				key := ReaderKey(n)
				plane := []string{"", PlaneNative, PlaneEvpath, PlaneMixed}[evenly(t, 2, "plane")]
				w.Handle(Register{Reader: key, Weft: plane != "", Msg: &sstmsg.ReaderRegister{Observer: int32(k), Plane: plane, CP: make([]sstmsg.CPReader, 1), Evpath: make([]sstmsg.EvpathReader, 1)}})
				w.Handle(FromMember{0, &Admitted{Reader: key, Control: []int64{1}, Data: []int64{1}}})
				w.Handle(FromMember{1, &Admitted{Reader: key, Control: []int64{1}, Data: []int64{1}}})
			case 5, 6:
				msgs := []sstmsg.Message{
					&sstmsg.ReaderActivate{}, &sstmsg.ReaderActivate{}, &sstmsg.ReleaseTimestep{Step: n}, &sstmsg.ReaderRequestStep{},
					&sstmsg.LockReaderDefinitions{Step: n}, &sstmsg.ReaderClose{}, &sstmsg.DPQuery{}, &sstmsg.ReleaseTimestep{Step: w.NextStep() - 1},
					&sstmsg.ReaderPlane{Plane: PlaneNative}, &sstmsg.ReaderPlane{Plane: PlaneMixed}, &sstmsg.ReaderPlane{Plane: PlaneEvpath}, &sstmsg.ReaderPlane{Plane: "x"},
				}
				w.Handle(FromReader{ReaderKey(evenly(t, 1, "key")), msgs[evenly(t, 4, "said")%len(msgs)]})
			case 7:
				w.Handle(ReaderLost{Reader: ReaderKey(n)})
			default:
				for k := range 2 {
					w.Handle(FromMember{k, &WriterHello{Ranks: 1}})
				}
				w.Handle(ContactPublished{})
				for k := range 2 {
					w.Handle(FromMember{k, &Contribute{Try: w.try, Metadata: make([]sstmsg.Block, 1), Bytes: []uint64{uint64(tries)}}})
				}
				tries++
			}
			w.Laggards()
			w.Reader(ReaderKey(n))
		}
		w.Handle(EndStream{})
		if w.Held() != 0 || w.HeldBytes() != 0 {
			t.Fatalf("%d steps of %d bytes are held", w.Held(), w.HeldBytes())
		}
	})
}

// TestHostileLeaders feeds members of both sides anything that their rank 0 may
// say: they do not panic, and what the shell is told can be carried out.
func TestHostileLeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWriterMember(MemberConfig{BlockInBegin: rapid.Bool().Draw(t, "begin")})
		r := NewReaderMember(MemberReaderConfig{Leads: rapid.Bool().Draw(t, "leads")})
		w.Handle(MemberStart{})
		r.Handle(MemberStart{})
		given := int64(-1)
		for range evenly(t, 7, "events") {
			msg, n := hostileMessage(t), hostileNumber(t)
			w.Handle(FromLeader{msg})
			list := []WriterMemberEvent{BeginTry{}, EndTry{&Contribute{}}, AbortTry{}, MemberFinish{}, BeginTry{}, EndTry{&Contribute{}}, PushBroke{&PushFailed{}}, LeaderLost{}}
			w.Handle(list[evenly(t, 3, "writer")%len(list)])
			for _, e := range []ReaderMemberEvent{FromLeader{msg}, []ReaderMemberEvent{Next{}, Retain{n}, Release{given}, Lock{}, Release{n}, Next{}}[evenly(t, 3, "reader")%6]} {
				for _, a := range r.Handle(e) {
					if err := carriedOut(a, &given); err != nil {
						t.Fatalf("%T: %v", msg, err)
					}
				}
			}
		}
	})
}

// carriedOut says what a shell cannot do.
func carriedOut(a ReaderMemberAction, given *int64) error {
	switch a := a.(type) {
	case Opened:
		if m := a.Response; m.Params == nil || len(m.CP) == 0 || len(m.CP) != len(m.Evpath) {
			return fmt.Errorf("opened with %+v", m)
		}
	case Deliver:
		if a.Msg.Step <= *given {
			return fmt.Errorf("step %d after %d", a.Msg.Step, *given)
		}
		*given = a.Msg.Step
	}
	return nil
}
