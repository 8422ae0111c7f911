package cp

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// attendance is how far a reader has come.
type attendance uint8

const (
	admitting attendance = iota // the members issue identities for it
	answered                    // WriterResponse sent
	attending                   // ReaderActivate came: steps can be sent
)

// attendee is what the leader knows of one reader cohort.
type attendee struct {
	key       ReaderKey
	msg       *sstmsg.ReaderRegister // until it is answered
	contact   string
	control   []int64 // identities that we issued, one a writer rank, until answered
	data      []int64
	admitted  []bool // by member
	missing   int    // members that have not answered
	controlID int64  // RS_Stream of its rank 0

	state     attendance
	weft      bool
	plane     string // what it has registered for, then what it says
	planed    bool   // it has said it
	observer  bool
	preload   bool
	insists   bool // on pushes, whatever the size
	closeSent bool
	lagging   bool // was reported

	formats int // how many of WriterLeader.formats it has
	version int // of the attributes it has

	held     stepList // kept for it; all of them are sent once it attends
	sent     int64
	released int64
	dropped  int64
	lastSent int64   // or the step before the one that its WriterResponse announced
	base     int64   // newest step it has caught up with
	from     int64   // steps before this one went by while it had nothing to do
	owed     []int64 // RoundRobin, OnDemand: discarded steps that it was not told of
	asks     int     // unanswered ReaderRequestStep
	askedAt  uint64
}

func (w *WriterLeader) reader(k ReaderKey) *attendee {
	if i, ok := w.seat(k); ok {
		return w.readers[i]
	}
	return nil
}

// seat returns where a reader is in the list, or would be: keys rise with each
// registration. There may be thousands of observers.
func (w *WriterLeader) seat(k ReaderKey) (int, bool) {
	return slices.BinarySearchFunc(w.readers, k, func(r *attendee, k ReaderKey) int { return cmp.Compare(r.key, k) })
}

// register lets a reader in: it need not wait for the application. From now on
// what it will be sent is kept for it.
func (w *WriterLeader) register(e Register) {
	if w.drained {
		w.refuse(e, fmt.Errorf("the stream has ended: %w", ErrClosed))
		return
	}
	if known := w.reader(e.Reader); known != nil {
		w.expel(known, sstmsg.CloseFailed, fmt.Errorf("a second ReaderRegister: %w: %w", ErrProtocol, errUnexpected))
		return
	}
	if !w.open || len(e.Msg.CP) == 0 || len(e.Msg.Evpath) != len(e.Msg.CP) {
		w.refuse(e, fmt.Errorf("ReaderRegister with %d control and %d data contacts, stream open %v: %w: %w",
			len(e.Msg.CP), len(e.Msg.Evpath), w.open, ErrProtocol, errUnexpected))
		return
	}
	plane := cmp.Or(e.Msg.Plane, PlaneEvpath)
	if !slices.Contains(w.cfg.Planes, plane) || plane != PlaneEvpath && !e.Weft {
		w.refuse(e, fmt.Errorf("ReaderRegister for the data plane %q, this writer serves %q: %w: %w", plane, w.cfg.Planes, ErrProtocol, errUnexpected))
		return
	}
	r := &attendee{
		key: e.Reader, msg: e.Msg, contact: e.Contact, controlID: e.Msg.CP[0].ReaderID, weft: e.Weft, plane: plane,
		observer: e.Msg.Observer != 0, preload: w.cfg.Preload && e.Msg.SpecPreload != 0, insists: e.Msg.SpecPreload >= pushAlways,
		control: make([]int64, w.ranks), data: make([]int64, w.ranks),
		admitted: make([]bool, len(w.members)), missing: len(w.members), lastSent: -1,
	}
	at, _ := w.seat(r.key)
	w.readers = slices.Insert(w.readers, at, r)
	w.keepFor(r)
	w.toAll(&Admit{Reader: r.key, Ranks: e.Msg.Evpath, Weft: e.Weft, Observer: r.observer, Plane: plane})
}

// refuse does not let a reader in. It may not have told us how to answer it.
func (w *WriterLeader) refuse(e Register, err error) {
	w.emit(DropReader{e.Reader, err, true})
}

// keepFor keeps the steps that are there for a reader that has come.
func (w *WriterLeader) keepFor(r *attendee) {
	switch {
	case r.observer:
	case w.cfg.Distribution != AllToAll:
		w.updateOpen()
	default:
		for _, s := range w.queue.steps.live() {
			if s.use >= useSpare {
				s.refs++
				r.held.push(s)
				w.update(s)
			}
		}
	}
}

// admitted notes the identities that a member has issued; with the last ones the
// reader is answered.
func (w *WriterLeader) admitted(k int, m *Admitted) {
	r := w.reader(m.Reader)
	if r == nil {
		return
	}
	s := &w.members[k]
	if r.state != admitting || r.admitted[k] || len(m.Control) != s.hello.Ranks || len(m.Data) != s.hello.Ranks {
		w.wrong(k, fmt.Sprintf("%d and %d identities for %d ranks", len(m.Control), len(m.Data), s.hello.Ranks))
		return
	}
	r.admitted[k] = true
	copy(r.control[s.base:], m.Control)
	copy(r.data[s.base:], m.Data)
	if r.missing--; r.missing == 0 {
		w.answer(r)
	}
}

// answer tells the reader who we are.
func (w *WriterLeader) answer(r *attendee) {
	params := w.cfg.Wire
	m := &sstmsg.WriterResponse{
		Condition: r.msg.Condition, Params: &params, NextStep: w.firstFor(r),
		CP: make([]sstmsg.CPWriter, 0, w.ranks), Evpath: make([]sstmsg.EvpathWriter, 0, w.ranks),
	}
	for k := range w.members {
		hello := w.members[k].hello
		contact := hello.Contact
		if contact == w.cfg.Contact {
			contact = r.contact
		}
		for range hello.Ranks {
			rank := len(m.CP)
			m.CP = append(m.CP, sstmsg.CPWriter{Contact: contact, WriterID: r.control[rank]})
			m.Evpath = append(m.Evpath, sstmsg.EvpathWriter{Contact: planeInfo(r.plane, rank), WriterID: r.data[rank]})
			if r.plane == PlaneNative {
				m.Native = append(m.Native, sstmsg.NativeWriter{Contact: hello.Native})
			}
		}
	}
	// An earlier step, given back by another reader, is not for it any more: a real
	// reader never looks at one, and so never releases it.
	r.lastSent = m.NextStep - 1
	r.state = answered
	r.msg, r.control, r.data, r.admitted = nil, nil, nil, nil
	w.emit(SendToReader{r.key, m})
}

// planeInfo is a text about a rank's data plane, which nobody parses. It must not
// be empty: real readers crash without one.
func planeInfo(plane string, rank int) string {
	return fmt.Sprintf("weft %s rank %d", plane, rank)
}

// firstFor returns the number of the first step that the reader may get.
func (w *WriterLeader) firstFor(r *attendee) int64 {
	q := &w.queue
	switch {
	case r.observer && q.steps.len() > 0:
		return q.steps.last().number
	case !r.observer && r.held.len() > 0:
		return r.held.at(0).number
	case !r.observer && q.open.len() > 0:
		return q.open.at(0).number
	}
	return w.next
}

func (w *WriterLeader) fromReader(k ReaderKey, msg sstmsg.Message) {
	r := w.reader(k)
	if r == nil {
		return
	}
	switch m := msg.(type) {
	case *sstmsg.ReaderClose:
		w.drop(r, nil, false)
		return
	case *sstmsg.ReaderPlane:
		if r.state == answered && w.replane(r, m.Plane) {
			return
		}
	case *sstmsg.ReaderActivate:
		if r.state != admitting {
			w.activate(r)
			return
		}
	case *sstmsg.ReleaseTimestep:
		w.release(r, m.Step)
		return
	case *sstmsg.LockReaderDefinitions:
		return // we never announce a locked pattern, so nothing follows from it
	case *sstmsg.ReaderRequestStep:
		if w.cfg.Distribution == OnDemand {
			w.ask(r)
			return
		}
	}
	w.expel(r, sstmsg.CloseFailed, fmt.Errorf("%s: %w: %w", sstmsg.Name(msg), ErrProtocol, errUnexpected))
}

// replane notes which plane a reader of the native one turns out to have: it says
// so once. The members hear of it if it is another one. ok is false if it says what
// it must not.
func (w *WriterLeader) replane(r *attendee, plane string) (ok bool) {
	if r.planed || r.plane != PlaneNative || plane != PlaneNative && plane != PlaneEvpath && plane != PlaneMixed {
		return false
	}
	r.planed = true
	if plane == r.plane {
		return true
	}
	r.plane = plane
	if !w.drained {
		w.toAll(&Replane{r.key, plane})
	}
	w.emit(Changed{})
	return true
}

// activate sends what has been kept for the reader.
func (w *WriterLeader) activate(r *attendee) {
	if r.state == attending {
		return
	}
	r.state = attending
	if r.observer {
		if s := w.queue.steps.last(); s != nil && !w.drained {
			w.show(r, s)
		}
		w.emit(Changed{})
		return
	}
	w.active++
	for _, s := range r.held.live() {
		w.send(r, s)
	}
	w.deal()
	w.emit(Changed{})
}

// show sends a step to an observer, which has none.
func (w *WriterLeader) show(r *attendee, s *heldStep) {
	s.looks++
	r.held.push(s)
	w.send(r, s)
	w.update(s)
}

// send hands a step to an active reader, with what it lacks of formats and
// attributes.
func (w *WriterLeader) send(r *attendee, s *heldStep) {
	w.announceOwed(r, s.number)
	m := &sstmsg.TimestepMetadata{
		ReaderID:   r.controlID,
		Step:       s.number,
		CohortSize: int32(w.ranks),
		Metadata:   s.metadata,
		Attributes: w.attributesFor(r, s),
	}
	if r.plane != PlaneEvpath {
		m.Native = s.native
	}
	if s.formats > r.formats {
		m.Formats = w.formats[r.formats:s.formats:s.formats]
		r.formats = s.formats
	}
	push := w.pushes(r, s)
	if r.sent == r.released {
		// It had nothing to do: it owes what it is about to be sent, and not what went
		// by without it.
		r.base, r.from = w.next-1-int64(r.held.len()), w.next
	}
	r.sent++
	r.lastSent = s.number
	if push {
		m.PreloadMode = 1
		w.toAll(&Push{r.key, s.number})
	}
	w.emit(SendToReader{r.key, m})
}

// pushAlways is what a Weft reader says in ReaderRegister.SpecPreload to have steps
// of any size pushed, idle or not; ADIOS2 knows 0 and 1.
const pushAlways = 2

// pushes reports whether the blocks of a step, which the reader is about to be
// sent, go to it unasked. Who can look at them is never pushed any.
func (w *WriterLeader) pushes(r *attendee, s *heldStep) bool {
	switch {
	case !r.preload || r.plane != PlaneEvpath || w.cfg.MaxPush > 0 && s.longest > w.cfg.MaxPush:
		return false
	case w.cfg.AskFrom == 0 || !r.weft || r.insists || s.longest < w.cfg.AskFrom || !s.coarse:
		return true
	}
	return r.sent > r.released
}

// attributesFor returns one block a rank, with the records that are new to the
// reader. The list is never nil: real readers look into it.
func (w *WriterLeader) attributesFor(r *attendee, s *heldStep) []sstmsg.Block {
	a := s.attributes
	if a.version <= r.version {
		return w.none
	}
	blocks := make([]sstmsg.Block, w.ranks)
	for rank, changed := range a.changed {
		if changed > r.version {
			blocks[rank].Data = a.records[rank]
		}
	}
	r.version = a.version
	return blocks
}

// release takes a step back from a reader. What was not sent to it, or is back
// already, means nothing.
func (w *WriterLeader) release(r *attendee, step int64) {
	i, ok := r.held.find(step)
	if !ok || r.state != attending {
		return
	}
	s := r.held.at(i)
	r.held.removeAt(i)
	r.released++
	r.base = max(r.base, step)
	if r.held.len() > 0 {
		r.base = max(r.base, min(r.held.at(0).number, r.from)-1)
	}
	if r.lagging {
		r.lagging = 2*w.lag(r) >= int64(w.cfg.LagNotice)
	}
	if r.observer {
		s.looks--
	} else {
		s.refs--
	}
	w.update(s)
}

// expel drops a reader that has not asked for it, and tells it why.
func (w *WriterLeader) expel(r *attendee, code int32, err error) {
	if r != nil {
		heard := w.sayClose(r, code, err)
		w.drop(r, err, !heard)
	}
}

// drop ends a reader, whatever state it is in; nil is nobody.
func (w *WriterLeader) drop(r *attendee, err error, cut bool) {
	if r == nil {
		return
	}
	i, _ := w.seat(r.key)
	w.readers = slices.Delete(w.readers, i, i+1)
	if i < w.turn {
		w.turn--
	}
	if r.asks > 0 {
		w.asking--
	}
	if r.state == attending && !r.observer {
		w.active--
	}
	w.emit(DropReader{r.key, err, cut})
	if !w.drained {
		w.toAll(&Dismiss{r.key})
	}
	w.takeBack(r)
	w.emit(Changed{})
}

// takeBack ends what was kept for a reader that has gone.
func (w *WriterLeader) takeBack(r *attendee) {
	dealt := w.cfg.Distribution != AllToAll && !r.observer
	for _, s := range r.held.live() {
		switch {
		case r.observer:
			s.looks--
		case dealt:
			s.refs--
			s.open, s.wanted = true, true
			w.queue.open.insert(s)
			continue
		default:
			s.refs--
		}
		w.update(s)
	}
	if dealt {
		w.deal()
		w.updateOpen()
	}
}

// lag returns how many steps a reader is behind: those that came after the newest
// one that it has released, and none while it has nothing to release. One that is
// opening will owe what is kept for it: it must not hold up the others for ever.
func (w *WriterLeader) lag(r *attendee) int64 {
	switch {
	case r.state != attending:
		return int64(r.held.len())
	case r.sent == r.released:
		return 0
	}
	return w.next - 1 - r.base
}

// chase reports readers that lag, and detaches those that lag too much. Observers
// may: they hold nobody up.
func (w *WriterLeader) chase() {
	for i := 0; i < len(w.readers); {
		r := w.readers[i]
		lag := w.lag(r)
		switch {
		case r.observer:
		case w.cfg.LagLimit > 0 && lag > int64(w.cfg.LagLimit):
			w.evict(r, lag)
			i = 0 // what it held may have gone to others
			continue
		case w.cfg.LagNotice > 0 && lag > int64(w.cfg.LagNotice) && !r.lagging:
			r.lagging = true
			w.emit(Lagging{r.key, lag})
		}
		i++
	}
}

func (w *WriterLeader) evict(r *attendee, lag int64) {
	w.expel(r, sstmsg.CloseEvicted, fmt.Errorf("%w: %d steps behind, the limit is %d", ErrEvicted, lag, w.cfg.LagLimit))
}
