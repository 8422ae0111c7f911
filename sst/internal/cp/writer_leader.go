package cp

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// WriterLeader is the machine that decides for a whole writer cohort. It runs in
// the process of member 0, and alone speaks with readers: their rank 0 is its
// only partner. It never holds array data; the members do, and it tells them
// until when.
type WriterLeader struct {
	actions[WriterAction]

	cfg     WriterConfig
	members []memberState
	hellos  int  // members that have said hello
	ranks   int  // writer ranks of the stream
	waiting bool // PublishContact is out
	open    bool // readers may register
	started bool

	try      int64 // the one that members may be filling
	goTry    int64 // newest one that was let go, with BlockInBegin
	shares   int   // members that have contributed to it
	size     uint64
	finished int  // members that have finished
	closing  bool // every member has, and active readers were told
	drained  bool
	failure  error

	next       int64 // number of the next step
	last       int64 // number of the last step provided, -1 for none
	formats    []sstmsg.FormatBlock
	known      map[string]bool // IDs of formats
	attributes *attributeSet
	none       []sstmsg.Block // one empty block a rank: no new attributes

	readers []*attendee // in order of registration
	active  int         // readers that have activated, observers aside
	turn    int         // RoundRobin: index of the reader whose turn it is
	asking  int         // OnDemand: readers with unanswered requests
	asks    uint64      // counts requests, to serve them in order

	queue   queue
	dropped int64
	noticed bool // the Notice was given
	warned  bool // the Watermark was given

}

// NewWriterLeader returns the leader of a stream without readers and steps.
func NewWriterLeader(cfg WriterConfig) *WriterLeader {
	cfg.Members = max(cfg.Members, 1)
	if len(cfg.Planes) == 0 {
		cfg.Planes = []string{PlaneEvpath}
	}
	w := &WriterLeader{
		cfg: cfg, members: make([]memberState, cfg.Members), last: -1, goTry: -1,
		known: map[string]bool{}, attributes: &attributeSet{},
	}
	w.queue = newQueue(&w.cfg)
	return w
}

// Handle takes one event and returns what to do, in order. The slice belongs to
// the caller.
func (w *WriterLeader) Handle(e WriterEvent) []WriterAction {
	if w.failure == nil {
		w.dispatch(e)
		w.settle()
	} else if r, ok := e.(Register); ok {
		w.refuse(r, w.failure)
	}
	return w.emitted()
}

func (w *WriterLeader) dispatch(e WriterEvent) {
	switch e := e.(type) {
	case FromMember:
		w.fromMember(e.Member, e.Msg)
	case FromReader:
		w.fromReader(e.Reader, e.Msg)
	case Register:
		w.register(e)
	case ReaderLost:
		w.drop(w.reader(e.Reader), orEOF(e.Err), false)
	case ContactPublished:
		w.published(e.Err)
	case MemberLost:
		if !w.drained {
			w.fail(At(e.Member, fmt.Errorf("writer rank %d of %d: %w: %w", e.Member, w.cfg.Members, ErrRankLost, orEOF(e.Err))))
		}
	case EndStream:
		w.end(e.Err)
	}
}

// settle does whatever has become possible: every rule that waits for something
// is here, so that no event can forget one.
func (w *WriterLeader) settle() {
	if w.failure != nil || !w.open {
		return
	}
	w.start()
	w.decide()
	w.letGo()
	w.close()
	w.drain()
	w.watch()
}

func (w *WriterLeader) toAll(m Message) { w.emit(ToAll{m}) }

// fail ends the stream before its time. Weft readers are told why; an ADIOS2
// reader must not take it for a normal end, and learns it from its lost link.
func (w *WriterLeader) fail(err error) {
	if w.failure != nil || w.drained {
		return
	}
	w.toAll(&StreamFailed{NewFault(err)})
	w.dismissAll(err, sstmsg.CloseFailed)
}

// end gives the stream up on demand of the shell. Readers are told that it is
// over only if it was closed: else it has failed.
func (w *WriterLeader) end(err error) {
	if err == nil {
		err = ErrClosed
	}
	if !w.drained {
		w.toAll(&StreamFailed{NewFault(At(0, err))})
	}
	code := int32(sstmsg.CloseFailed)
	if errors.Is(err, ErrClosed) {
		code = sstmsg.CloseNormal
	}
	w.dismissAll(err, code)
}

// dismissAll drops every reader and forgets every step: the members do the same
// when they hear that the stream has failed.
func (w *WriterLeader) dismissAll(err error, code int32) {
	w.failure = err
	for _, r := range w.readers {
		heard := w.sayClose(r, code, err)
		w.emit(DropReader{r.key, err, !heard})
	}
	w.readers, w.active, w.asking = nil, 0, 0
	w.queue = newQueue(&w.cfg)
	w.emit(Changed{})
}

// start lets Create return on every member once enough readers are there.
func (w *WriterLeader) start() {
	if w.started || w.active < w.cfg.Rendezvous {
		return
	}
	w.started = true
	w.toAll(&Started{})
	w.emit(Changed{})
}

// finishing reports whether no step can come any more.
func (w *WriterLeader) finishing() bool {
	return w.finished == len(w.members) && w.shares == 0
}

// close tells active readers that no step follows, once nothing is left to hand
// out. What was kept for readers to come is let go.
func (w *WriterLeader) close() {
	if !w.finishing() || w.owes() {
		return
	}
	if !w.closing {
		w.closing = true
		w.letGoSpare()
	}
	for _, r := range w.readers {
		if r.state == attending {
			w.sayClose(r, sstmsg.CloseNormal, nil)
		}
	}
}

// sayClose tells a reader that no step follows, and why if it is before the time.
// It returns false if the reader has no ear for that: ADIOS2's know of a normal
// end only, and only once they are active.
func (w *WriterLeader) sayClose(r *attendee, code int32, why error) bool {
	if !r.weft && (code != sstmsg.CloseNormal || r.state != attending) {
		return false
	}
	if r.closeSent && code == sstmsg.CloseNormal {
		return true
	}
	if code == sstmsg.CloseNormal && r.state == attending {
		w.announceOwed(r, w.next)
	}
	r.closeSent = true
	m := &sstmsg.WriterClose{ReaderID: r.controlID, FinalStep: w.last, Code: code}
	if code != sstmsg.CloseNormal {
		m.Reason = why.Error()
	}
	w.emit(SendToReader{r.key, m})
	return true
}

// drain ends the stream when no reader needs the members any more. Observers
// hold nobody up: what they look at goes.
func (w *WriterLeader) drain() {
	if w.drained || !w.closing || w.queue.busy > 0 {
		return
	}
	for _, r := range w.readers {
		if !r.observer && r.state != attending {
			return
		}
	}
	w.drained = true
	for _, s := range w.queue.steps.live() {
		w.toAll(&Free{s.number})
	}
	for _, r := range w.readers {
		r.held = stepList{}
	}
	w.queue = newQueue(&w.cfg)
	w.toAll(&Drained{})
	w.emit(Changed{})
}

// watch warns of much memory, once each time that it becomes much.
func (w *WriterLeader) watch() {
	held := w.queue.held
	switch {
	case w.cfg.WarnBytes == 0:
	case w.warned:
		w.warned = held >= w.cfg.WarnBytes/2
	case held > w.cfg.WarnBytes:
		w.warned = true
		a := Watermark{Bytes: held, Steps: w.queue.steps.len()}
		if late := w.Laggards(); len(late) > 0 {
			a.Reader = late[0]
		}
		w.emit(a)
	}
}
