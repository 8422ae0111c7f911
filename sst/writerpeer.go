package sst

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// This file is the writer's Side towards its readers. Everything here runs on the
// goroutine of some link or channel, or in a call of the application, with w.mu
// held; nothing blocks.

// attached is a reader cohort as a writer's shell knows it. What comes first is
// for rank 0, which speaks with the reader.
type attached struct {
	link    carrier.Link
	addr    string       // where it registered from
	near    carrier.Link // on which messages go that need no socket, nil if there is none
	options sstmsg.Options
	weft    bool
	ranks   []sstmsg.EvpathReader // how its ranks are reached
	ids     []int64               // identities that we issued for it
	plane   string                // by which it reads
	chosen  bool                  // it has said by which
	leaving bool                  // it has said on link that it leaves, and not yet on near
	served  uint64                // bytes that this process has sent to it
	far     map[int][]farPush     // blocks that wait for a connection, by reader rank
	links   map[int]carrier.Link  // to reader ranks that blocks were pushed to
	dials   chan struct{}         // a token for each that is being dialled
	gone    bool                  // dropped
	// observer says that nobody waits for it.
	observer bool
	pushes   []carrier.Record // that go out with the metadata of their step
	notices  notices          // of steps that it does not get, on their way
}

// registration is one that has to wait.
type registration struct {
	link carrier.Link
	msg  *sstmsg.ReaderRegister
}

var errRange = errors.New("read outside the data block")

// query answers DPQuery at once.
func (w *Writer) query(l carrier.Link, m *sstmsg.DPQuery) {
	w.session.peerReads(l, m.Weft != 0)
	plane, _ := cp.ChoosePlane(m.Planes, w.planes) // without a common one, ours tells the reader what there is
	w.session.post(l, &sstmsg.DPQueryResponse{Condition: m.Condition, DataPlane: plane}, sstmsg.Options{}, nil)
}

// register accepts a reader.
func (w *Writer) register(l carrier.Link, m *sstmsg.ReaderRegister) {
	if m.Evpath == nil || len(m.Evpath) != len(m.CP) {
		l.Abort(fmt.Errorf("%w: ReaderRegister with %d control and %d evpath contacts", ErrProtocol, len(m.CP), len(m.Evpath)))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session.use(l, w)
	if !w.published && w.failure == nil || w.hasLeaving(l) {
		w.early = append(w.early, registration{l, m})
		return
	}
	w.registerNow(l, m)
}

// registerNow passes a registration on, or turns it away. The writer uses its link
// already. The caller holds mu.
func (w *Writer) registerNow(l carrier.Link, m *sstmsg.ReaderRegister) {
	if w.failure != nil || w.leader.Ended() {
		w.turnAway(l, m)
		return
	}
	key := w.nextKey
	w.nextKey++
	r := &attached{link: l, addr: l.Info().Peer, options: w.optionsFor(l), ranks: m.Evpath}
	r.weft = r.options.Weft
	w.readers[key] = r
	contact := w.session.cm.ContactFor(l)
	if w.cfg.Params.DataInterface != "" {
		if c, err := w.session.dataContact(&w.cfg.Params); err == nil { // it was right at Create
			contact = c
		}
	}
	w.tellLeader(cp.Register{Reader: key, Msg: m, Contact: contact.String(), Weft: r.weft})
}

// turnAway tells a reader that the stream has ended.
func (w *Writer) turnAway(l carrier.Link, m *sstmsg.ReaderRegister) {
	w.session.turnAway(l, m)
	w.session.unuse(l, w)
}

// optionsFor chooses the message variants that the reader on a link takes.
func (w *Writer) optionsFor(l carrier.Link) sstmsg.Options {
	if w.session.weft(l) {
		return sstmsg.Options{Release: sstmsg.ReleaseMain, Weft: true}
	}
	switch w.cfg.Params.ADIOS2Release {
	case "2.10":
		return sstmsg.Options{Release: sstmsg.Release210}
	case "2.12":
		return sstmsg.Options{Release: sstmsg.Release212}
	case "main":
		return sstmsg.Options{Release: sstmsg.ReleaseMain}
	}
	if l.Info().Release == carrier.Release210 {
		return sstmsg.Options{Release: sstmsg.Release210}
	}
	return sstmsg.Options{Release: sstmsg.Release212}
}

// admit issues the identities by which a reader will address our ranks. At rank 0
// the reader is known already.
func (w *Writer) admit(m *cp.Admit) {
	r := w.readers[m.Reader]
	if r == nil {
		r = &attached{weft: m.Weft, ranks: m.Ranks, options: sstmsg.Options{Release: sstmsg.ReleaseMain, Weft: m.Weft}}
		w.readers[m.Reader] = r
	}
	r.observer, r.plane = m.Observer, m.Plane
	control := w.session.issue(w.cfg.Ranks, route{writer: w, key: m.Reader, weft: m.Weft})
	data := w.session.issue(w.cfg.Ranks, route{writer: w, key: m.Reader, data: true, weft: m.Weft})
	r.ids = append(append(r.ids, control...), data...)
	w.tellMember(cp.ReaderAdmitted{Admitted: &cp.Admitted{Reader: m.Reader, Control: control, Data: data}})
}

// fromReader takes a message of a reader that is registered. Readers speak with
// rank 0: what comes elsewhere means nothing.
func (w *Writer) fromReader(key readerKey, m sstmsg.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.readers[key]
	if w.leader == nil || r == nil {
		return
	}
	if m, ok := m.(*sstmsg.ReleaseTimestep); ok && w.disbelieve(key, r, m) {
		return
	}
	w.tell(event{wire: m, from: int(key)})
}

// readsBy takes in by which plane a reader turns out to read. It says so on the link that
// it wants to be told on from now on.
func (w *Writer) readsBy(l carrier.Link, key readerKey, m *sstmsg.ReaderPlane) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.readers[key]
	if w.leader == nil || r == nil {
		return
	}
	r.chosen = true
	if l != r.link && r.near == nil && m.Plane != cp.PlaneEvpath {
		w.session.use(l, w)
		if r.near = l; m.Alone != 0 {
			w.session.unuse(r.link, w)
			r.link, r.near = l, nil
			w.session.post(l, &sstmsg.ReaderPlane{WriterID: m.Alone, Plane: m.Plane}, r.options, nil)
		}
	}
	w.tell(event{wire: m, from: int(key)})
}

// leaves takes in that a reader leaves. One that has two links says so on both, because
// there is no order between them: what it has said of its steps counts up to there on the
// near one; the other holds up who registers after it. Else a program that closes its reader
// and opens another would be given steps anew that it has had.
func (w *Writer) leaves(l carrier.Link, key readerKey, m *sstmsg.ReaderClose) {
	w.mu.Lock()
	r := w.readers[key]
	if r != nil && r.near != nil && l == r.link {
		r.leaving = true
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	w.fromReader(key, m)
}

// hasLeaving reports whether a reader on a link is leaving. The caller holds mu.
func (w *Writer) hasLeaving(l carrier.Link) bool {
	for _, r := range w.readers {
		if r.leaving && r.link == l {
			return true
		}
	}
	return false
}

// registerHeld lets those in who have waited until nobody on their link was leaving. The
// caller holds mu.
func (w *Writer) registerHeld() {
	if !w.published && w.failure == nil {
		return
	}
	waiting := w.early
	w.early = nil
	for _, r := range waiting {
		if w.hasLeaving(r.link) {
			w.early = append(w.early, r)
			continue
		}
		w.registerNow(r.link, r.msg)
	}
}

// out is the link on which the reader is told of steps; nil but at rank 0.
func (r *attached) out() carrier.Link {
	if r.near != nil {
		return r.near
	}
	return r.link
}

// linkLost drops the readers whose control link is gone.
func (w *Writer) linkLost(l carrier.Link, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.early = slices.DeleteFunc(w.early, func(r registration) bool {
		if r.link == l {
			w.session.unuse(l, w)
		}
		return r.link == l
	})
	for key, r := range w.readers {
		switch {
		case r.link == l && (r.near != nil || r.native() && !r.chosen): // what it says may come beside it
			afterNear(true, func() { w.readerLost(key, l, err) })
		case r.out() == l:
			w.tellLeader(cp.ReaderLost{Reader: key, Err: err})
		}
	}
}

// readerLost gives a reader up, unless it needs the link that was lost no more.
func (w *Writer) readerLost(key readerKey, l carrier.Link, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.readers[key]; r != nil && r.link == l && !w.ended {
		w.tellLeader(cp.ReaderLost{Reader: key, Err: err})
	}
}

// serve answers a read request on the link it came on. There is no error reply
// in the protocol: a request that cannot be answered drops the connection.
func (w *Writer) serve(l carrier.Link, r route, m *sstmsg.ReadRequest) {
	w.mu.Lock()
	reader := w.readers[r.key]
	if reader == nil { // dropped since the request was routed
		w.mu.Unlock()
		if err := w.session.refuse(l, m, r); err != nil {
			l.Abort(err)
		}
		return
	}
	d := w.steps[m.Step]
	held := d != nil
	if !held && reader.weft {
		// It has given the step back over the link beside this one, and wants no more of it.
		w.mu.Unlock()
		if err := w.session.refuse(l, m, r); err != nil {
			l.Abort(err)
		}
		return
	}
	var data [][]byte
	err := fmt.Errorf("step %d is not held: %w", m.Step, errRange)
	if held {
		data, err = d.stores[r.rank].Slices(uint64(m.Offset), uint64(m.Length))
	}
	var p *delivery
	if err == nil {
		p = d.useFor(r.key)
		if !reader.observer {
			d.wasAsked(m.Length)
		}
		reader.served += uint64(m.Length)
		w.noteReply(m.Step, reader, l)
	}
	w.mu.Unlock()
	if err != nil {
		l.Abort(fmt.Errorf("%w: read of bytes %d+%d of step %d, rank %d: %w", ErrProtocol, m.Offset, m.Length, m.Step, r.rank, err))
		return
	}
	reply := &sstmsg.ReadReply{Step: m.Step, ReaderID: m.ReaderID, Data: data, Condition: m.Condition}
	rec, err := record(reply, sstmsg.Options{}, p.done)
	if err == nil {
		rec.Lasting = !d.arena // see taint
		err = l.Send(rec)
	}
	give(l, err)
}

// post sends to the reader's rank 0, together with what was pushed to it: the peer
// then wakes once. Begun, which may be nil, is set when m begins to be written.
func (r *attached) post(m sstmsg.Message, begun *atomic.Bool) {
	last, err := record(m, r.options, nil)
	if err == nil {
		last.Begun = begun
		if isNotice(m) {
			r.notices.add(&last)
		}
		r.pushes = append(r.pushes, last)
	}
	r.flush()
	give(r.out(), err)
}

// flush sends what was pushed.
func (r *attached) flush() {
	if len(r.pushes) == 0 {
		return
	}
	err := r.out().SendAll(r.pushes)
	clear(r.pushes)
	r.pushes = r.pushes[:0]
	give(r.out(), err)
}

// dropReader forgets a reader at rank 0. One that has no ear for the reason sees
// the end of its link, even if other streams share it (docs/decisions/0003).
func (w *Writer) dropReader(a cp.DropReader) {
	r := w.readers[a.Reader]
	if r == nil {
		return
	}
	w.forget(a.Reader)
	if a.Err == nil {
		return
	}
	args := []any{"stream", w.path, "reader", r.addr, "error", a.Err}
	if a.Cut {
		if n := w.session.streamsOn(r.link); n > 0 {
			args = append(args, "other streams that lose the connection with it", n)
		}
		w.abortLinks(r, a.Err)
	}
	if w.failure == nil && w.leader.Failure() == nil {
		what := "a reader failed; the stream goes on"
		if errors.Is(a.Err, ErrEvicted) {
			what = "a reader was detached: it is too slow; the stream goes on"
		}
		w.say(what, args...)
	}
}

// abortLinks ends the links on which rank 0 speaks with a reader.
func (w *Writer) abortLinks(r *attached, err error) {
	for _, l := range []carrier.Link{r.near, r.link} {
		if l != nil {
			l.Abort(err)
		}
	}
}

// forget lets go of what this process has for a reader.
func (w *Writer) forget(key readerKey) {
	r := w.readers[key]
	if r == nil {
		return
	}
	w.taint(key)
	delete(w.readers, key)
	r.gone = true
	r.flush()
	w.session.retire(r.ids...)
	for _, l := range []carrier.Link{r.link, r.near} {
		if l != nil {
			w.session.unuse(l, w)
		}
	}
	for _, l := range r.links {
		w.session.unuse(l, w)
	}
	w.checkRoom() // nobody waits for what is on its way to it
	if r.leaving {
		w.registerHeld()
	}
}

// taint marks the steps that a reader has which goes without giving them back. What
// is sent of a step is lent to the kernel, which may still have it for that reader;
// who has given a step back has no use for what comes of it. It runs before steps
// are freed that nobody else has: the leader dismisses a reader first. The caller
// holds mu.
func (w *Writer) taint(key readerKey) {
	looks := w.readers[key].native() // at any of them: nothing was sent that would tell
	for _, d := range w.steps {
		if d.find(key) != nil || looks && d.arena {
			d.tainted.Store(true)
		}
	}
	for _, u := range w.unread {
		if u.data.find(key) != nil {
			u.data.tainted.Store(true)
		}
	}
}

// lags tells the application of a reader that is behind.
func (w *Writer) lags(a cp.Lagging) {
	r := w.readers[a.Reader]
	if r == nil {
		return
	}
	info := r.info(w.leader.Reader(a.Reader))
	w.say("a reader lags behind", "stream", w.path, "reader", info.Addr, "steps", a.Steps, "held", info.Held, "bytes", info.HeldBytes)
	if tell := w.cfg.OnLag; tell != nil {
		w.session.background(func(context.Context) {
			w.lagging.Lock()
			defer w.lagging.Unlock()
			tell(info)
		})
	}
}

// warnOfQueue warns before memory runs out (field report F11).
func (w *Writer) warnOfQueue(a cp.Watermark) {
	args := []any{"stream", w.path, "steps", a.Steps, "bytes", a.Bytes, "QueueLimit", w.cfg.Params.QueueLimit, "QueueLimitBytes", w.cfg.Params.QueueLimitBytes}
	if r := w.readers[a.Reader]; r != nil {
		args = append(args, "slowest reader", r.addr, "behind by", w.leader.Reader(a.Reader).Lag)
	}
	w.say("steps that wait for readers take much memory; QueueLimit, QueueLimitBytes or LagLimit would bound it", args...)
}
