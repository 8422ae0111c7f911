package cp

import (
	"slices"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// arrival is a step that has come and was not handed out yet. The discarded ones
// are copies.
type arrival struct {
	msg   *sstmsg.TimestepMetadata
	free  func()
	drops int64 // steps that the writer dropped, from this one on: 0 of a whole step
}

// heldRead is a step that was handed out.
type heldRead struct {
	step int64
	free func() // memory of its message, nil once it went back
	owed int    // present members that have not released it
	by   []bool // which members have; nil for a cohort of one
	told bool   // the writer has its release, or will not get one
	kept bool   // it gets none: a member that has gone may still look at its memory
}

func (h *heldRead) done(member int) bool {
	if h.by == nil {
		return h.owed == 0
	}
	return h.by[member]
}

func (h *heldRead) settle(member int) {
	if h.done(member) {
		return
	}
	h.owed--
	if h.by != nil {
		h.by[member] = true
	}
}

// step takes a step in. What a writer drops while nobody asks for a step must
// not pile up: of a row of announcements the first one stands for all.
func (l *ReaderLeader) step(m *sstmsg.TimestepMetadata, free func()) {
	l.lastSeen = m.Step
	if m.Metadata == nil {
		if last := l.queue.last(); last != nil && last.drops > 0 && merge(last.msg, m, fullAttributes(l.weft(), l.response)) {
			last.drops++
		} else {
			l.queue.push(arrival{msg: withoutData(m), drops: 1})
		}
		l.recycle(free)
		return
	}
	if l.cfg.Latest && l.whole > 0 {
		l.passQueue()
	}
	l.queue.push(arrival{msg: m, free: free})
	l.whole++
	l.requested = false
	l.pump()
}

func (l *ReaderLeader) ask(member int, index int64) {
	if index < l.taken {
		return // it is on its way
	}
	l.seats[member].asked = index
	l.pump()
}

// wanted reports whether a member waits for the next step.
func (l *ReaderLeader) wanted() bool {
	for i := range l.seats {
		if s := &l.seats[i]; s.asked == l.taken && !s.away {
			return true
		}
	}
	return false
}

// pump hands a step out if one is wanted and here, asks for one if the writer
// waits to be asked, and tells of the end.
func (l *ReaderLeader) pump() {
	if l.phase != Streaming && l.phase != Broken {
		return
	}
	if l.wanted() {
		switch {
		case l.whole > 0:
			l.take()
		case l.onDemand() && l.phase == Streaming && !l.requested && !l.closing:
			l.requested = true
			l.send(&sstmsg.ReaderRequestStep{WriterID: l.writers[0]})
		}
	}
	l.finish()
}

// onDemand reports whether the writer waits for requests. To an observer it
// sends without, and to ask would take a step from others.
func (l *ReaderLeader) onDemand() bool {
	return l.response.Params.StepDistributionMode == distributeOnDemand && !l.observes()
}

// distributeOnDemand is the StepDistributionMode of a writer that waits to be
// asked (docs/wire/sst.md §4).
const distributeOnDemand = 2

// take hands out the next whole step.
func (l *ReaderLeader) take() {
	for l.whole > 0 {
		a := l.queue.pop()
		if a.drops > 0 {
			l.pass(a)
			continue
		}
		l.whole--
		l.handOut(a)
		l.giveBack() // nobody may be left to release it
		return
	}
}

// passQueue passes over all that is queued, because a newer step is here and
// nobody wants another one (AlwaysProvideLatestTimestep). The writer hears of it at
// once: it must neither wait nor keep steps for a reader that is busy with an older
// one. So does ADIOS2's own reader, and its writer counts the readers of each step:
// one that is in use is safe, although a later one goes back first.
func (l *ReaderLeader) passQueue() {
	for l.queue.len() > 0 {
		a := l.queue.pop()
		if a.drops > 0 {
			l.pass(a)
			continue
		}
		l.whole--
		a.msg, a.drops = withoutData(a.msg), 1
		l.pass(a)
		l.sayReleased(a.msg.Step)
	}
}

// pass tells the members of a step, or a row of them, that they do not get.
func (l *ReaderLeader) pass(a arrival) {
	l.skipped += a.drops
	l.emit(ToAll{&StepTo{Index: -1, Msg: a.msg, Skipped: l.skipped}})
	l.recycle(a.free)
}

func (l *ReaderLeader) handOut(a arrival) {
	h := &heldRead{step: a.msg.Step, free: a.free, owed: l.present}
	if len(l.seats) > 1 {
		h.by = make([]bool, len(l.seats))
		for i, s := range l.seats {
			h.by[i] = s.away
		}
	}
	l.held = append(l.held, h)
	l.emit(ToAll{&StepTo{Index: l.taken, Msg: a.msg, Skipped: l.skipped}})
	l.taken++
}

// released notes that a member is done with a step. Member 0 says so even if it
// has left before: only then its memory is free.
func (l *ReaderLeader) released(member int, step int64) {
	i, ok := slices.BinarySearchFunc(l.held, step, func(h *heldRead, n int64) int { return int(min(max(h.step-n, -1), 1)) })
	if !ok {
		return
	}
	h := l.held[i]
	h.settle(member)
	l.giveBack()
	if member == 0 {
		l.recycle(h.free)
		h.free = nil
		l.sweep()
	}
}

// giveBack releases to the writer what every member has released. An ADIOS2
// writer takes the last number as a mark below which all is released, so there a
// step waits for the older ones (docs/wire/sst.md §6.2). Those that were passed over
// do not: the newest step is never one of them, so the last mark is right.
func (l *ReaderLeader) giveBack() {
	for _, h := range l.held {
		if h.owed > 0 {
			if !l.weft() {
				break
			}
			continue
		}
		if !h.told {
			h.told = true
			if !h.kept {
				l.release(h.step)
			}
		}
	}
	l.sweep()
}

// sweep forgets the steps that are over.
func (l *ReaderLeader) sweep() {
	l.held = slices.DeleteFunc(l.held, func(h *heldRead) bool { return h.told && h.free == nil })
}

// release gives a step back that was handed out.
func (l *ReaderLeader) release(step int64) {
	if l.gone || l.phase != Streaming && l.phase != Ended {
		return
	}
	if !l.lockSaid && l.unlocked == 0 && l.present > 0 {
		l.lockSaid = true
		l.tell(func(id int64) sstmsg.Message { return &sstmsg.LockReaderDefinitions{WriterID: id, Step: step} })
	}
	l.sayReleased(step)
}

func (l *ReaderLeader) sayReleased(step int64) {
	l.tell(func(id int64) sstmsg.Message { return &sstmsg.ReleaseTimestep{WriterID: id, Step: step} })
}

// locked notes that a member's selections are fixed. The writer hears of it
// right before the next release, once it holds for all (docs/wire/sst.md §6.3).
func (l *ReaderLeader) locked(member int) {
	if s := &l.seats[member]; !s.locked && !s.away {
		s.locked = true
		l.unlocked--
	}
}
