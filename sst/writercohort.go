package sst

import (
	"context"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// This file feeds the machines of a writer and carries messages between the
// ranks of its cohort. Each rank has a member machine, rank 0 the leader as well.
// What these two say to each other goes through Writer.work, as pointers.

// event is for one of the two machines. Messages, of which every step has some, stand in
// it as they are: as cp's events they would take memory.
type event struct {
	leader cp.WriterEvent
	member cp.WriterMemberEvent
	heard  cp.Message     // of the leader, for the member
	said   cp.Message     // of member from, for the leader
	wire   sstmsg.Message // of reader from, for the leader
	from   int
}

// tellLeader and tellMember hand an event to a machine, and do what follows from
// it, before they return, unless somebody further up is at it. The caller holds mu.
func (w *Writer) tellLeader(e cp.WriterEvent)       { w.tell(event{leader: e}) }
func (w *Writer) tellMember(e cp.WriterMemberEvent) { w.tell(event{member: e}) }

func (w *Writer) tell(e event) {
	w.work = append(w.work, e)
	if w.working {
		return
	}
	w.working = true
	for i := 0; i < len(w.work); i++ {
		switch e := w.work[i]; {
		case e.said != nil:
			w.carryOut(w.leader.Handle(cp.FromMember{Member: e.from, Msg: e.said}))
		case e.wire != nil:
			w.carryOut(w.leader.Handle(cp.FromReader{Reader: readerKey(e.from), Msg: e.wire}))
		case e.heard != nil:
			w.obey(w.member.Hear(e.heard))
		case e.leader != nil:
			w.carryOut(w.leader.Handle(e.leader))
		case e.member != nil:
			w.obey(w.member.Handle(e.member))
		}
	}
	clear(w.work)
	w.work = w.work[:0]
	w.working = false
	w.settle()
}

// carryOut does what the leader wants.
func (w *Writer) carryOut(list []cp.WriterAction) {
	for _, a := range list {
		w.lead(a)
	}
	w.leader.Done(list)
}

// obey does what the member wants.
func (w *Writer) obey(list []cp.WriterMemberAction) {
	for _, a := range list {
		w.act(a)
	}
	w.member.Done(list)
}

// settle notes what waits of the application are for.
func (w *Writer) settle() {
	if st := w.ending; st != nil {
		if v, ok := w.member.LastVerdict(); ok {
			st.verdict, st.settled, w.ending = v, true, nil
			w.changed.notify()
		}
	}
	if w.failure == nil && w.member.Phase() == cp.WriterFailed {
		w.failure = w.member.Failure()
		w.changed.notify()
	}
}

// lead carries out an action of the leader.
func (w *Writer) lead(a cp.WriterAction) {
	switch a := a.(type) {
	case cp.SendToReader:
		if r := w.readers[a.Reader]; r != nil && r.link != nil {
			r.post(a.Msg, w.noteStep(a.Reader, a.Msg))
			w.chaseNotices(a.Reader, r)
		}
	case cp.ToAll:
		w.written.told(a.Msg)
		w.toOwnMember(a.Msg)
		w.ranks.send(a.Msg, w.ranks.others()...)
	case cp.ToMember:
		if a.Member == 0 {
			w.toOwnMember(a.Msg)
		} else {
			w.ranks.send(a.Msg, a.Member)
		}
	case cp.DropReader:
		w.dropReader(a)
	case cp.PublishContact:
		w.publish = true
		w.changed.notify()
	case cp.Lagging:
		w.lags(a)
	case cp.Watermark:
		w.warnOfQueue(a)
	case cp.Notice:
		w.say(a.Text, "stream", w.path)
	case cp.Changed:
		w.changed.notify()
	}
}

// toOwnMember hands a message of the leader to the member beside it. A push does
// not wait for its turn: it should leave before the metadata of its step, so that
// the data is there when the reader learns of it, as with real writers.
func (w *Writer) toOwnMember(m cp.Message) {
	if _, ok := m.(*cp.Push); !ok {
		w.tell(event{heard: m})
		return
	}
	w.obey(w.member.Hear(m))
}

// act carries out an action of this rank's member.
func (w *Writer) act(a cp.WriterMemberAction) {
	switch a := a.(type) {
	case cp.ToLeader:
		if w.leader != nil {
			w.fromMember(0, a.Msg)
		} else {
			w.ranks.send(a.Msg, 0)
		}
	case cp.Welcomed:
		w.base, w.total = a.Base, a.Ranks
	case cp.AdmitReader:
		w.admit(a.Admit)
	case cp.ReplaneReader:
		if r := w.readers[a.Reader]; r != nil {
			r.plane = a.Plane
		}
	case cp.DismissReader:
		w.forget(a.Reader)
	case cp.PushStep:
		w.push(a.Reader, a.Step)
	case cp.FreeStep:
		w.free(a.Step)
	case cp.DropTry:
		w.free(a.Step)
	case cp.Changed:
		w.changed.notify()
	}
}

// free lets go of a step's data, when all that is on its way is sent.
func (w *Writer) free(number int64) {
	if d := w.steps[number]; d != nil {
		delete(w.steps, number)
		if d.arena && w.finished && w.isWatched() {
			d.tainted.Store(true)
		}
		w.retire(number, d)
		w.checkRoom()
	}
	w.checkReplies(number)
}

// join opens this rank's end of the channel. Broken is what is wrong here already:
// the others are told of it at once, and it is returned.
func (w *Writer) join(broken error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return w.failure // the session was closed
	}
	err := w.ranks.join(w.cfg.Cohort, "writer "+contactPath(w.name), w)
	if broken == nil && err != nil {
		return err
	}
	var hello cp.WriterHello
	if broken == nil {
		hello, broken = w.hello()
	}
	if broken != nil {
		w.failure = broken
		w.ranks.sayFailed(broken)
		return broken
	}
	if w.ranks.rank == 0 {
		w.states = make([]rankState, w.ranks.size)
		w.leader = cp.NewWriterLeader(w.leaderConfig(hello))
	}
	w.member = cp.NewWriterMember(cp.MemberConfig{Hello: hello, BlockInBegin: w.cfg.Params.BlockAt == atBeginStep})
	w.tellMember(cp.MemberStart{})
	return w.failure
}

// rankLost tells the machine that needs to know. Ranks other than 0 hear of each
// other from rank 0.
func (w *Writer) rankLost(rank int, err error) {
	switch {
	case w.leader != nil:
		w.tellLeader(cp.MemberLost{Member: rank, Err: err})
	case w.member != nil && rank == 0:
		w.tellMember(cp.LeaderLost{Err: err})
	}
}

// rankState is what rank 0 notes of a rank, to explain waits.
type rankState struct {
	hello    bool
	tries    int64 // steps that it has ended
	finished bool
}

// fromMember hands a message of a member to the leader.
func (w *Writer) fromMember(member int, m cp.Message) {
	state := &w.states[member]
	switch m := m.(type) {
	case *cp.WriterHello:
		state.hello = true
	case *cp.Contribute:
		state.tries = m.Try + 1
		w.written.contributed(m)
	case *cp.Withdraw:
		state.tries = m.Try + 1
	case *cp.Finished:
		state.finished = true
	}
	w.tell(event{said: m, from: member})
}

// holdups says whom a wait is for, as arguments of a log line: ranks that are not
// there yet, or else readers that hold the oldest step. Mu is not held.
func (w *Writer) holdups(behind func(rankState) bool) []any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leader == nil {
		return append([]any{"rank", w.ranks.rank, "see", "the log of rank 0"}, w.unreadArgs()...)
	}
	var ranks []int
	for i, s := range w.states {
		if behind(s) {
			ranks = append(ranks, i)
		}
	}
	if len(ranks) > 0 && len(w.states) > 1 {
		return []any{"waiting for ranks", ranks}
	}
	args := []any{"steps", w.leader.Held(), "bytes", w.leader.HeldBytes()}
	for _, k := range w.leader.Laggards() {
		if r := w.readers[k]; r != nil && r.link != nil {
			args = append(args, "reader", r.addr)
		}
	}
	return append(args, w.unreadArgs()...)
}

func rankMissing(s rankState) bool    { return !s.hello }
func rankUnfinished(s rankState) bool { return !s.finished }

// rankBehind finds ranks that have ended fewer steps.
func rankBehind(tries int64) func(rankState) bool {
	return func(s rankState) bool { return s.tries < tries }
}

// say logs from a goroutine of its own: the logger may be slow, or ask us
// something.
func (w *Writer) say(text string, args ...any) {
	w.session.background(func(ctx context.Context) { w.session.log.WarnContext(ctx, text, args...) })
}

// heardRank takes a message of another rank.
func (w *Writer) heardRank(from int, m cp.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.member == nil || w.ended: // this rank could not even begin, or has left
	case w.leader != nil && from > 0 && from < len(w.states):
		w.fromMember(from, m)
	case w.leader == nil && from == 0:
		w.tell(event{heard: m})
	}
}

// lostRank takes in that another rank is gone.
func (w *Writer) lostRank(rank int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.rankLost(rank, err)
	}
}
