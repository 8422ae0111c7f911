package sst

import (
	"time"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// This file carries out what the machines want: the member's on every rank, the
// leader's on rank 0. At rank 0 they talk to each other as well: through queues,
// so that no machine is called while the actions of its last event are carried
// out. All of it runs with mu held; nothing blocks.

// inbox holds what the two machines of rank 0 have for each other.
type inbox struct {
	leader mail // of the leader, for member 0
	member mail // of member 0, for the leader
}

// mail is messages in order. Its memory is used again when all are read.
type mail struct {
	list []cp.Message
	read int
}

func (m *mail) put(msg cp.Message) { m.list = append(m.list, msg) }

func (m *mail) empty() bool { return m.read == len(m.list) }

// next takes the first message out; there must be one.
func (m *mail) next() cp.Message {
	msg := m.list[m.read]
	m.list[m.read] = nil
	if m.read++; m.empty() {
		m.list, m.read = m.list[:0], 0
	}
	return msg
}

// taken is what one Next brought.
type taken struct {
	deliver *sstmsg.TimestepMetadata
	end     *cp.EndOfStream
	err     error // the step's records make no sense
}

func (t taken) nothing() bool { return t.deliver == nil && t.end == nil && t.err == nil }

// leaderEvent handles an event of the leader, which may end the reader. The
// caller does not hold mu.
func (r *Reader) leaderEvent(e cp.ReaderEvent) {
	r.mu.Lock()
	r.lead(e)
	r.unlock()
}

// memberEvent is leaderEvent for the member.
func (r *Reader) memberEvent(e cp.ReaderMemberEvent) {
	r.mu.Lock()
	r.handle(e)
	r.unlock()
}

// unlock gives mu up, and then what the machines have no use for any more.
func (r *Reader) unlock() {
	old := r.old
	r.old = nil
	var why error
	if r.leaving {
		if why = r.leader.Failure(); why == nil {
			why = ErrClosed
		}
	}
	r.mu.Unlock()
	for _, l := range old {
		r.session.unuse(l, r)
	}
	if why != nil {
		r.giveBack(why)
	}
}

// lead feeds the leader. The caller holds mu.
func (r *Reader) lead(e cp.ReaderEvent) {
	r.leaderActions(r.leader.Handle(e))
	r.settle()
}

// handle feeds the member, and returns what a Next brought. The caller holds mu.
func (r *Reader) handle(e cp.ReaderMemberEvent) taken {
	t := r.memberActions(r.member.Handle(e))
	r.settle()
	return t
}

// settle lets the machines of rank 0 talk until they have no more to say.
func (r *Reader) settle() {
	q := &r.inbox
	for {
		if !q.leader.empty() {
			r.memberActions(r.member.Hear(q.leader.next()))
			continue
		}
		if q.member.empty() {
			break
		}
		r.leaderActions(r.leader.Handle(cp.FromMember{Member: 0, Msg: q.member.next()}))
	}
	if r.leader != nil {
		r.tellSession()
	}
}

// tellSession says what the session need not wait for any more.
func (r *Reader) tellSession() {
	if r.parting && r.leader.Phase() != cp.Parting {
		r.parting = false
		r.session.unpend()
	}
	if r.opening && !r.leader.Opening() {
		r.opening = false
		r.session.endOpening(r)
	}
}

func (r *Reader) leaderActions(actions []cp.ReaderAction) {
	for _, a := range actions {
		switch a := a.(type) {
		case cp.SendToWriter:
			r.toWriter(a)
		case cp.ToMember:
			if a.Member == 0 {
				r.inbox.leader.put(a.Msg)
			} else {
				r.ranks.send(a.Msg, a.Member)
			}
		case cp.ToAll:
			r.inbox.leader.put(a.Msg)
			r.ranks.send(a.Msg, r.ranks.others()...)
		case cp.OpenFailed:
			r.outcome(outcome{err: a.Err})
		case cp.TryAgain:
			r.forgetAttempt()
			r.outcome(outcome{err: a.Err, again: true})
		case cp.Recycle:
			if a.Free != nil {
				a.Free()
			}
		case cp.Part:
			r.parting = true
			r.session.pend()
			time.AfterFunc(partingTime, func() { r.leaderEvent(cp.Settled{}) })
		case cp.DropLink:
			r.leaving = true
		case cp.Wake:
			r.changed.notify()
		}
	}
	r.leader.Done(actions)
}

// toWriter sends a message to a writer rank. The caller holds mu.
func (r *Reader) toWriter(a cp.SendToWriter) {
	r.turnNear(a.Msg)
	links := []carrier.Link{r.controlLink(a.Rank)}
	if _, leaves := a.Msg.(*sstmsg.ReaderClose); leaves && r.near != nil && a.Rank == 0 {
		links = append(links, r.link) // see Writer.leaves
	}
	for _, l := range links {
		if l != nil {
			r.session.post(l, a.Msg, r.options(a.Msg), nil)
		}
	}
}

func (r *Reader) memberActions(actions []cp.ReaderMemberAction) (t taken) {
	for _, a := range actions {
		switch a := a.(type) {
		case cp.ToLeader:
			if r.ranks.rank == 0 {
				r.inbox.member.put(a.Msg)
			} else {
				r.ranks.send(a.Msg, 0)
			}
		case cp.Route:
			r.tryRoutes(a.TryRoutes)
		case cp.Opened:
			r.accepted(a.ReaderOpened)
			r.outcome(outcome{})
		case cp.OpenFailed:
			r.outcome(outcome{err: a.Err})
		case cp.Absorb:
			r.plane.Saw(a.Msg.Step, a.Msg.PreloadMode)
			if t.err == nil {
				t.err = r.absorb(a.Msg)
			}
		case cp.Deliver:
			t.deliver = a.Msg
			r.counts.taken++
			r.counts.saw(a.Msg)
		case cp.EndOfStream:
			t.end = &a
		case cp.Forget:
			r.plane.Forget(a.Step)
		case cp.Expect:
			r.plane.Announce(a.Step)
		case cp.Drop:
			r.plane.Drop(a.From, a.To)
		case cp.FailReads:
			r.plane.Fail(r.failLocked("read", a.Err))
		case cp.Wake:
			r.changed.notify()
		}
	}
	r.member.Done(actions)
	return t
}

// partingTime is how long nothing must have come from an ADIOS2 writer before we
// leave it, unless a whole step comes first.
const partingTime = 200 * time.Millisecond

// outcome is how one attempt to open has ended.
type outcome struct {
	err   error
	again bool // look for another writer
}

// outcome tells Open. The first final result counts. The caller holds mu.
func (r *Reader) outcome(o outcome) {
	select {
	case old := <-r.opened: // Open has not seen it yet
		if !old.again {
			o = old
		}
	default:
	}
	r.opened <- o
	if o.err != nil && !o.again {
		r.stop(o.err) // whoever still looks for a writer
	}
}

// receive takes a message of the writer. The memory of a whole step is not used
// again but left to the garbage collector: what its records say can be asked
// after the step has ended, for as long as the program keeps it.
func (r *Reader) receive(m sstmsg.Message, free func()) {
	if r.leader == nil { // a writer talks to rank 0 only
		free()
		return
	}
	r.mu.Lock()
	if m, ok := m.(*sstmsg.TimestepMetadata); ok {
		r.counts.came(m.Step)
		r.plane.Announce(m.Step) // steps can wait long before they are handed out
		if m.Metadata != nil {
			free = nil
		}
	}
	r.lead(cp.FromWriter{Msg: m, Free: free})
	r.unlock()
}

// controlLink returns the link to what a writer rank listens on. The caller holds mu.
func (r *Reader) controlLink(rank int) carrier.Link {
	switch {
	case rank != 0:
		return r.peers[rank]
	case r.near != nil:
		return r.near
	}
	return r.link
}

// peerSetup takes in the link that a writer rank has made (Peer pattern).
func (r *Reader) peerSetup(l carrier.Link, m *sstmsg.PeerSetup, free func()) {
	rank := int(m.WriterRank)
	r.mu.Lock()
	if rank > 0 && rank <= maxRanks && r.leader != nil && !r.released && r.peers[rank] == nil {
		if r.peers == nil {
			r.peers = map[int]carrier.Link{}
		}
		r.peers[rank] = l
		r.session.use(l, r)
	}
	r.mu.Unlock()
	r.receive(m, free)
}

// options chooses the variant of a message: our extra fields go to Weft writers
// only, all else is alike for every writer.
func (r *Reader) options(m sstmsg.Message) sstmsg.Options {
	weft := false
	switch m.(type) {
	case *sstmsg.DPQuery, *sstmsg.ReaderRegister, *sstmsg.ReaderPlane:
		weft = r.weft
	}
	return sstmsg.Options{Release: sstmsg.ReleaseMain, Weft: weft}
}
