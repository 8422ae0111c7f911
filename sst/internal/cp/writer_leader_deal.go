package cp

import "github.com/weft-fabric/weft/internal/wire/sstmsg"

// This file says who gets a step. With RoundRobin and OnDemand a step that no
// reader has is open: it waits for one, as long as there is one that could take
// it. Real readers want rising numbers, so who has been sent a later step cannot.

// publish makes the shares of the members a step, and sends it.
func (w *WriterLeader) publish() {
	w.giveWay(w.size)
	s := w.newStep()
	w.keep(s)
	w.next++
	w.last = s.number
	w.notice()
	for _, r := range w.readers {
		switch {
		case r.observer:
			w.offer(r, s)
		case !s.open:
			s.refs++
			r.held.push(s)
			if r.state == attending {
				w.send(r, s)
			}
		}
	}
	w.deal()
	w.verdict(s.number, Published, Fault{})
	w.update(s)
	w.chase()
}

// discard drops the shares of the members as a step, and tells the readers
// (docs/wire/sst.md §7.4). Formats and attributes come with the next step: its
// records may need them.
//
// Where steps are dealt out, it was nobody's in particular, and readers are used to
// gaps. To announce it at once would keep those before it from going to somebody
// else, so Weft readers hear of it before their next step, or at the end.
func (w *WriterLeader) discard() {
	number := w.next
	w.next++
	w.dropped++
	for _, r := range w.readers {
		switch {
		case r.state != attending:
		case r.observer || w.cfg.Distribution == AllToAll:
			w.announce(r, number)
		case r.weft && len(r.owed) < maxOwed:
			r.owed = append(r.owed, number)
		}
	}
	w.verdict(number, Discarded, Fault{})
	w.chase()
}

// maxOwed bounds what a reader can still be told of discarded steps: more are a gap
// as others.
const maxOwed = 1024

// announceOwed tells a reader of the discarded steps before a number.
func (w *WriterLeader) announceOwed(r *attendee, before int64) {
	for len(r.owed) > 0 && r.owed[0] < before {
		w.announce(r, r.owed[0])
		if r.owed = r.owed[1:]; len(r.owed) == 0 {
			r.owed = nil
		}
	}
}

// announce tells an active reader that it will not get a step.
func (w *WriterLeader) announce(r *attendee, number int64) {
	if r.closeSent {
		return
	}
	r.dropped++
	w.emit(SendToReader{r.key, &sstmsg.TimestepMetadata{ReaderID: r.controlID, Step: number, CohortSize: int32(w.ranks), Attributes: w.none}})
}

// offer shows a new step to an observer, unless it is still busy with one: so
// it can hold no more than one step in memory.
func (w *WriterLeader) offer(r *attendee, s *heldStep) {
	switch {
	case r.state != attending:
	case r.held.len() == 0:
		w.show(r, s)
	default:
		w.announce(r, s.number)
	}
}

// could reports whether a reader may be sent an open step, now or later. Before it
// is answered it may: what it is told to expect first is not settled yet.
func (r *attendee) could(s *heldStep) bool {
	return !r.observer && !r.closeSent && (r.state == admitting || r.lastSent < s.number)
}

// taken reports whether there is a reader that may take an open step.
func (w *WriterLeader) taken(s *heldStep) bool {
	for _, r := range w.readers {
		if r.could(s) {
			return true
		}
	}
	return false
}

// deal hands open steps to readers.
func (w *WriterLeader) deal() {
	open := &w.queue.open
	for i := 0; i < open.len() && w.active > 0 && (w.cfg.Distribution != OnDemand || w.asking > 0); {
		s := open.at(i)
		r := w.taker(s)
		if r == nil {
			i++
			continue
		}
		open.removeAt(i)
		s.open = false
		s.refs++
		r.held.push(s)
		w.send(r, s)
		w.update(s)
	}
}

// taker returns who gets an open step now, nil for nobody.
func (w *WriterLeader) taker(s *heldStep) *attendee {
	if w.cfg.Distribution == OnDemand {
		return w.firstAsker(s)
	}
	for i := range w.readers {
		at := (w.turn + i) % len(w.readers)
		if r := w.readers[at]; r.state == attending && r.could(s) {
			w.turn = at + 1
			return r
		}
	}
	return nil
}

// firstAsker returns the reader that has waited longest for an answer. Whoever
// has asked several times goes to the end of the line after each.
func (w *WriterLeader) firstAsker(s *heldStep) *attendee {
	var first *attendee
	for _, r := range w.readers {
		if r.asks > 0 && r.state == attending && r.could(s) && (first == nil || r.askedAt < first.askedAt) {
			first = r
		}
	}
	if first == nil {
		return nil
	}
	if first.asks--; first.asks == 0 {
		w.asking--
	}
	w.asks++
	first.askedAt = w.asks
	return first
}

// ask notes that a reader wants a step (OnDemand). Observers get theirs unasked.
func (w *WriterLeader) ask(r *attendee) {
	if r.observer {
		return
	}
	if r.asks++; r.asks == 1 {
		w.asking++
		w.asks++
		r.askedAt = w.asks
	}
	w.deal()
}

// updateOpen counts open steps anew after readers have come or gone: one that
// nobody can take any more is dropped.
func (w *WriterLeader) updateOpen() {
	open := &w.queue.open
	for i := 0; i < open.len(); {
		s := open.at(i)
		w.update(s)
		if s.open {
			i++
		}
	}
}

// owes reports whether an open step still waits for a reader.
func (w *WriterLeader) owes() bool {
	for _, s := range w.queue.open.live() {
		if s.use == useQueue {
			return true
		}
	}
	return false
}

// notice explains a distribution that does not do what its user may think.
func (w *WriterLeader) notice() {
	if w.noticed || w.cfg.Distribution == AllToAll {
		return
	}
	cohorts := 0
	for _, r := range w.readers {
		if !r.observer {
			cohorts++
		}
	}
	if cohorts == 1 {
		w.noticed = true
		w.emit(Notice{"StepDistributionMode " + w.cfg.Distribution.String() +
			" deals steps out to reader cohorts, not to the ranks of one: the one cohort that is attached gets every step"})
	}
}
