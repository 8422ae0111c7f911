package cp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// writerClosed handles WriterClose: no step follows, or, from a Weft writer, it
// says why the stream ends for us before its time.
func (l *ReaderLeader) writerClosed(m *sstmsg.WriterClose) {
	var why error
	switch m.Code {
	case sstmsg.CloseEvicted:
		why = l.reason(ErrEvicted, m.Reason)
	case sstmsg.CloseFailed:
		why = l.reason(ErrWriterLost, m.Reason)
	}
	switch {
	case (l.phase == Registering || l.phase == Routing) && l.weft():
		l.turnedAway(why)
	case why != nil && l.closing && (l.phase == Streaming || l.phase == Ended):
		l.deserted(why)
	case why != nil && l.phase == Streaming:
		l.fail(why)
	case l.phase == Streaming:
		l.closing = true
		l.finish()
	default:
		l.part()
	}
}

// turnedAway handles a WriterClose instead of a response: the writer has
// forgotten us. If it was closed, another one may come.
func (l *ReaderLeader) turnedAway(why error) {
	if why == nil {
		l.tooLate(ErrTooLate)
		return
	}
	l.openingFailed(why)
}

// reason puts an error together with what the writer says of it, which may begin
// with the same words.
func (l *ReaderLeader) reason(kind error, text string) error {
	text = strings.TrimLeft(strings.TrimPrefix(text, kind.Error()), " ,:;")
	if text == "" {
		return fmt.Errorf("%s: %w", l.after(), kind)
	}
	return fmt.Errorf("%s: %w: %s", l.after(), kind, text)
}

// after tells how far the stream came.
func (l *ReaderLeader) after() string {
	if l.lastSeen < 0 {
		return "before the first step"
	}
	return fmt.Sprintf("after step %d", l.lastSeen)
}

// finish tells the members of the end as soon as the last step is out.
func (l *ReaderLeader) finish() {
	if l.ended || l.whole > 0 {
		return
	}
	switch {
	case l.phase == Streaming && l.closing:
		l.turn(Ended)
	case l.phase != Broken:
		return
	}
	for l.queue.len() > 0 {
		l.pass(l.queue.pop())
	}
	l.ended = true
	l.emit(ToAll{&StreamEnd{NewFault(l.failure)}})
}

// lost handles the end of the control link. After WriterClose it is the normal
// end, and steps that are here stay readable as far as their data are here: a
// writer that goes before we have released them has not closed, it died.
func (l *ReaderLeader) lost(err error) {
	switch l.phase {
	case Querying:
		l.tooLate(fmt.Errorf("%w: %w: %w", ErrTooLate, ErrWriterLost, orEOF(err)))
	case Registering, Routing:
		l.openingFailed(fmt.Errorf("while opening: %w: %w", ErrWriterLost, orEOF(err)))
	case Parting:
		l.turn(Closed)
		l.dropLink()
	case Streaming, Ended:
		why := fmt.Errorf("%s: %w: its connection ended before it closed the stream: %w", l.after(), ErrWriterLost, orEOF(err))
		if !l.closing {
			l.fail(why)
			return
		}
		if l.observes() {
			why = fmt.Errorf("%s, the last one: %w", l.after(), ErrStepGone)
		}
		l.deserted(why)
	}
}

// deserted takes in that a writer which has closed serves us no more.
func (l *ReaderLeader) deserted(why error) {
	if !l.gone && (l.whole > 0 || l.Held() > 0) {
		l.emit(ToAll{&WriterGone{NewFault(why)}})
	}
	l.gone = true
}

// fail ends a stream whose writer is gone.
func (l *ReaderLeader) fail(err error) {
	l.failure, l.gone = err, true
	l.turn(Broken)
	l.emit(ToAll{&WriterGone{NewFault(err)}})
	l.finish()
}

// broken ends a stream whose writer does not keep to the protocol.
func (l *ReaderLeader) broken(err error) {
	switch l.phase {
	case Querying, Registering, Routing:
		l.openingFailed(err)
	case Streaming: // the writer counts on us for its steps, and other streams may need the link
		l.goodbye()
		l.dropLink()
		l.fail(err)
	}
}

// left notes that a member has closed: what it held counts as released, unless it
// still looks at it.
func (l *ReaderLeader) left(member int, looks []int64) {
	s := &l.seats[member]
	if s.away {
		return
	}
	l.takeOut(member, func(step int64) bool { return slices.Contains(looks, step) })
	switch {
	case l.present == 0:
		l.everybodyLeft()
	case s.hello == nil: // it may have been the last one that was waited for
		l.register()
	default: // so here
		l.agree()
	}
}

// takeOut ends a member's part in everything. Steps that it looks at do not go back: the
// writer would compute the next ones where it looks. It lets go of their memory when the
// reader leaves with them.
func (l *ReaderLeader) takeOut(member int, looks func(step int64) bool) {
	s := &l.seats[member]
	s.away = true
	l.present--
	if !s.locked {
		l.unlocked--
	}
	for _, h := range l.held {
		h.kept = h.kept || !h.done(member) && looks(h.step)
		h.settle(member)
	}
	l.giveBack()
	l.emit(Wake{})
}

// mayLook says of a member that is gone, and cannot be asked, whether its process may
// still look at a step.
func (l *ReaderLeader) mayLook(int64) bool { return l.plane == PlaneNative || l.plane == PlaneMixed }

func (l *ReaderLeader) everybodyLeft() {
	switch l.phase {
	case Idle, Querying, Registering, Routing:
		l.cancel(ErrClosed)
	default:
		l.leave()
	}
}

// memberLost ends the stream for all, unless the member had nothing more to do.
func (l *ReaderLeader) memberLost(member int, err error) {
	if member < 0 || member >= len(l.seats) || l.seats[member].away {
		return
	}
	if l.ended && !l.holds(member) {
		l.left(member, nil)
		return
	}
	l.takeOut(member, l.mayLook)
	l.cohortFails(At(member, fmt.Errorf("reader rank %d: %w: %w", member, ErrRankLost, orEOF(err))))
}

// memberFailed ends the stream for all because of a member that cannot go on, or
// that could not even say hello: its own parameters were refused, say.
func (l *ReaderLeader) memberFailed(member int, cause Fault) {
	if l.seats[member].away {
		return
	}
	l.takeOut(member, l.mayLook)
	l.cohortFails(At(member, fmt.Errorf("reader rank %d: %w", member, orClosed(cause.Err()))))
}

// cohortFails ends the stream for all.
func (l *ReaderLeader) cohortFails(why error) {
	switch l.phase {
	case Idle, Querying, Registering, Routing:
		l.cancel(why)
	case Streaming, Ended, Broken:
		if l.failure == nil {
			l.failure = why
		}
		l.toPresent(&StreamFailed{NewFault(why)})
		l.leave()
	}
}

func (l *ReaderLeader) holds(member int) bool {
	for _, h := range l.held {
		if !h.done(member) {
			return true
		}
	}
	return false
}

func (l *ReaderLeader) leaveNow(err error) {
	switch l.phase {
	case Idle, Querying, Registering, Routing:
		l.cancel(err)
	case Streaming, Ended, Broken:
		l.toPresent(&StreamFailed{NewFault(At(0, orClosed(err)))})
		l.leave()
	}
}

// toPresent sends to all, unless nobody is left to hear it.
func (l *ReaderLeader) toPresent(m Message) {
	if l.present > 0 {
		l.emit(ToAll{m})
	}
}

// leave ends what is going on; a writer that must be left with care is not left
// yet.
func (l *ReaderLeader) leave() {
	if l.phase >= Parting && l.phase != Broken {
		return
	}
	care := l.phase == Streaming && l.attempt.Cautious && !l.closing
	if !care && l.phase != Broken {
		l.goodbye()
	}
	for l.queue.len() > 0 {
		l.recycle(l.queue.pop().free)
	}
	l.whole = 0
	if care {
		l.turn(Parting)
		l.emit(Part{})
		return
	}
	l.turn(Closed)
	l.dropLink()
}

// goodbye says ReaderClose to every writer rank that listens to us.
func (l *ReaderLeader) goodbye() {
	if !l.gone {
		l.tell(func(id int64) sstmsg.Message { return &sstmsg.ReaderClose{WriterID: id} })
	}
	l.gone = true
}

// part ends Parting. An ADIOS2 writer gives its lock away while it sends a step,
// and while it takes a reader in; ReaderClose must not come in between. It has
// done with us when the step's metadata is here, or when nothing has come for
// some time (docs/decisions/0006).
func (l *ReaderLeader) part() {
	if l.phase != Parting {
		return
	}
	l.goodbye()
	l.turn(Closed)
	l.dropLink()
}

// dropLink gives the link of the attempt up, once.
func (l *ReaderLeader) dropLink() {
	if l.linked {
		l.linked = false
		l.emit(DropLink{})
	}
}
