package cp

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// This file is the leader's side towards the members of its own cohort.

// maxWriterRanks bounds what the hellos of a cohort may add up to.
const maxWriterRanks = 1 << 20

// memberState is what the leader knows of a member.
type memberState struct {
	hello    *WriterHello
	base     int         // first writer rank
	share    *Contribute // to the try under way
	finished bool
}

func (w *WriterLeader) fromMember(k int, msg Message) {
	if w.drained || k < 0 || k >= len(w.members) {
		return
	}
	m := &w.members[k]
	if hello, ok := msg.(*WriterHello); ok && m.hello == nil {
		w.hello(k, hello)
		return
	}
	if failed, ok := msg.(*StreamFailed); ok {
		w.fail(At(k, fmt.Errorf("rank %d of the writer: %w", k, orClosed(failed.Cause.Err()))))
		return
	}
	if !w.open {
		w.wrong(k, fmt.Sprintf("%T before the stream is open", msg))
		return
	}
	switch msg := msg.(type) {
	case *Contribute:
		w.contribute(k, msg)
	case *Room:
		if s := m.share; s != nil && s.Try == msg.Try {
			s.Full = false
		}
	case *Withdraw:
		w.withdraw(k, msg)
	case *Admitted:
		w.admitted(k, msg)
	case *PushFailed:
		code := int32(sstmsg.CloseFailed)
		if msg.Cause.Is(ErrEvicted) {
			code = sstmsg.CloseEvicted
		}
		w.expel(w.reader(msg.Reader), code, fmt.Errorf("push of rank %d: %w", k, orEOF(msg.Cause.Err())))
	case *Finished:
		w.memberFinished(k)
	default:
		w.wrong(k, fmt.Sprintf("%T", msg))
	}
}

// wrong fails the stream because of a member that breaks the rules: it may be of
// another version.
func (w *WriterLeader) wrong(k int, what string) {
	w.fail(At(k, fmt.Errorf("rank %d of the writer: %s: %w: %w", k, what, ErrProtocol, errUnexpected)))
}

// hello takes a member in; with the last one the stream can be published.
func (w *WriterLeader) hello(k int, h *WriterHello) {
	if h.Params != w.cfg.Params {
		w.fail(At(k, fmt.Errorf("%w: rank %d of the writer has other parameters than rank 0: %s", ErrParam, k, differing(h.Params, w.cfg.Params))))
		return
	}
	if h.Ranks < 0 || h.Ranks > maxWriterRanks {
		w.wrong(k, fmt.Sprintf("hello of %d ranks", h.Ranks))
		return
	}
	w.members[k].hello = h
	w.hellos++
	if w.hellos < len(w.members) {
		return
	}
	for i := range w.members {
		w.members[i].base = w.ranks
		w.ranks += w.members[i].hello.Ranks
	}
	if w.ranks == 0 || w.ranks > maxWriterRanks {
		w.fail(fmt.Errorf("%w: the writer has %d ranks in all: must be 1 to %d", ErrParam, w.ranks, maxWriterRanks))
		return
	}
	w.none = make([]sstmsg.Block, w.ranks)
	w.queue.rankBytes = make([]uint64, w.ranks)
	w.attributes.resize(w.ranks)
	w.waiting = true
	w.emit(PublishContact{})
}

// published lets readers and members in, or nobody.
func (w *WriterLeader) published(err error) {
	if !w.waiting {
		return
	}
	w.waiting = false
	if err != nil {
		w.fail(At(0, err))
		return
	}
	w.open = true
	for k := range w.members {
		w.emit(ToMember{k, &Welcome{Base: w.members[k].base, Ranks: w.ranks}})
	}
}

// contribute takes a member's share of a step. What it brings of formats and
// attributes counts even if the try is over: the member does not send it again.
func (w *WriterLeader) contribute(k int, c *Contribute) {
	m := &w.members[k]
	n := m.hello.Ranks
	some := func(length int) bool { return length == 0 || length == n }
	if len(c.Metadata) != n || len(c.Bytes) != n || !some(len(c.Attributes)) || !some(len(c.Native)) {
		w.wrong(k, fmt.Sprintf("step of %d records, %d sizes, %d attribute records and %d places for %d ranks",
			len(c.Metadata), len(c.Bytes), len(c.Attributes), len(c.Native), n))
		return
	}
	w.learn(c.Formats)
	w.attributes = w.attributes.with(m.base, c.Attributes)
	if c.Try < w.try {
		return
	}
	if c.Try > w.try || m.share != nil || m.finished {
		w.wrong(k, fmt.Sprintf("share of try %d in try %d, again %v, finished %v", c.Try, w.try, m.share != nil, m.finished))
		return
	}
	m.share = c
	w.shares++
	for _, b := range c.Bytes {
		w.size += b
	}
	w.abortIfFinished()
}

// learn adds formats that no member has brought before.
func (w *WriterLeader) learn(list []sstmsg.FormatBlock) {
	for _, f := range list {
		if id := string(f.ID.Bytes()); !w.known[id] {
			w.known[id] = true
			w.formats = append(w.formats, f)
		}
	}
}

// abortIfFinished gives the try up if somebody waits for a member that will not
// come any more.
func (w *WriterLeader) abortIfFinished() {
	if w.shares == 0 || w.finished == 0 {
		return
	}
	for k := range w.members {
		if m := &w.members[k]; m.finished && m.share == nil {
			w.abort(At(k, fmt.Errorf("%w: rank %d of the writer has closed the stream: %w", ErrStepAborted, k, ErrClosed)))
			return
		}
	}
}

func (w *WriterLeader) withdraw(k int, m *Withdraw) {
	switch {
	case m.Try > w.try:
		w.wrong(k, fmt.Sprintf("withdrawal from try %d in try %d", m.Try, w.try))
	case m.Try == w.try:
		err := fmt.Errorf("%w by rank %d of the writer", ErrStepAborted, k)
		if !m.Cause.None() {
			err = fmt.Errorf("%w: %w", err, m.Cause)
		}
		w.abort(At(k, err))
	}
}

func (w *WriterLeader) memberFinished(k int) {
	if w.members[k].finished {
		return
	}
	w.members[k].finished = true
	w.finished++
	w.abortIfFinished()
}

// abort ends the try as if it had never begun.
func (w *WriterLeader) abort(err error) {
	w.verdict(w.next, Aborted, NewFault(err))
}

// verdict ends the try for every member.
func (w *WriterLeader) verdict(step int64, o Outcome, cause Fault) {
	w.toAll(&Verdict{Try: w.try, Step: step, Outcome: o, Cause: cause})
	w.try++
	w.shares, w.size = 0, 0
	for k := range w.members {
		w.members[k].share = nil
	}
}

// decide ends the try if every member has contributed, and there is room.
func (w *WriterLeader) decide() {
	if w.shares < len(w.members) {
		return
	}
	switch {
	case w.queue.fits(w.size) && !w.full():
		w.publish()
	case w.cfg.Discard:
		w.discard()
	}
}

// full reports whether a member has no room although the queue has.
func (w *WriterLeader) full() bool {
	return slices.ContainsFunc(w.members, func(m memberState) bool { return m.share.Full })
}

// letGo lets the members begin the next try once there is room for one step more.
func (w *WriterLeader) letGo() {
	if !w.cfg.BlockInBegin || !w.started || w.goTry == w.try || w.finished == len(w.members) {
		return
	}
	if !w.cfg.Discard {
		if !w.queue.fits(1) {
			return
		}
		w.giveWay(1)
	}
	w.goTry = w.try
	w.toAll(&Go{w.try})
}

// attributeSet is the newest attribute record of each rank. Steps refer to it as
// it was in their time, so it is copied before it changes.
type attributeSet struct {
	records []sstmsg.Blob
	changed []int // version as of which each record is new
	version int
	shared  bool // a step refers to it
}

func (a *attributeSet) resize(ranks int) {
	a.records, a.changed = make([]sstmsg.Blob, ranks), make([]int, ranks)
}

// with returns the set with records from rank base on; empty ones stay as they were.
func (a *attributeSet) with(base int, records []sstmsg.Blob) *attributeSet {
	if !slices.ContainsFunc(records, func(b sstmsg.Blob) bool { return b.Len() > 0 }) {
		return a
	}
	if a.shared {
		a = &attributeSet{slices.Clone(a.records), slices.Clone(a.changed), a.version, false}
	}
	a.version++
	for i, b := range records {
		if b.Len() > 0 {
			a.records[base+i], a.changed[base+i] = b, a.version
		}
	}
	return a
}
