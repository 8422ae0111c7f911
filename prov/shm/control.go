package shm

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// obey does what a control record says.
func (p *pair) obey(r *record) error {
	switch r.op {
	case opAck:
		return p.acked(r)
	case opClear:
		return p.cleared(r)
	case opChunk:
		return p.chunk(r)
	case opRead:
		return p.serveRead(r)
	case opWrite:
		return p.serveWrite(r)
	case opDone:
		return p.done(r)
	case opAtomic:
		return p.serveAtomic(r)
	case opOld:
		return p.old(r)
	case opLane:
		return p.laneAgreed()
	}
	return errRecord
}

// mineOf finds our operation that a record is about.
func (p *pair) mineOf(r *record, want role) (*op, error) {
	o := p.d.ops.Get(r.context)
	if o == nil || o.pair != p || o.role != want && !(want == roleMoving && o.asked()) {
		return nil, fmt.Errorf("%w: operation %d about nothing of ours", errRecord, r.op)
	}
	return o, nil
}

// asked says whether the peer has been asked for a piece of an RMA, all of which may not have been started.
func (o *op) asked() bool { return o.pending > 0 }

// acked: the peer has taken a message that lay in our memory, or that it was asked to acknowledge.
func (p *pair) acked(r *record) error {
	o, err := p.mineOf(r, roleAck)
	if err != nil {
		return err
	}
	p.d.finish(o, statusError(r.status))
	return nil
}

// cleared: the peer waits for our bytes.
func (p *pair) cleared(r *record) error {
	o := p.d.ops.Get(r.context)
	if o == nil || o.pair != p {
		return fmt.Errorf("%w: clear for nothing of ours", errRecord)
	}
	want := r.words[1]
	s := stream{op: o.id, to: r.words[0], left: want}
	switch {
	case o.role == roleOffer && want <= o.length:
		o.role = roleSending
		if want == 0 {
			p.d.finish(o, statusError(r.status))
			return nil
		}
	case o.asked() && o.kind == provider.WriteDone && r.flags&recData != 0 && r.data <= o.length && want <= o.length-r.data && want > 0:
		s.from = r.data
	default:
		return fmt.Errorf("%w: clear of %d bytes", errRecord, want)
	}
	return p.stream(s)
}

// done: the peer has ended its part of a piece of ours.
func (p *pair) done(r *record) error {
	o, err := p.mineOf(r, roleMoving)
	if err != nil {
		return err
	}
	return p.pieceDone(o, statusError(r.status))
}

// pieceDone counts the end of a piece.
func (p *pair) pieceDone(o *op, err error) error {
	p.asked--
	if o.pending--; o.pending < 0 {
		return fmt.Errorf("%w: more answers than pieces", errRecord)
	}
	if err != nil && o.err == nil {
		o.err = err
	}
	if err != nil && o.kind == provider.WriteDone {
		p.written(o) // bytes that nobody wants hold no message up
	}
	p.settle(o)
	return nil
}

// settle ends an operation of which all pieces have ended, and none is to be started.
func (p *pair) settle(o *op) {
	if o.pending > 0 || o.err == nil && !o.started() {
		return
	}
	if o.role == roleQueued {
		return // its queue sees to it
	}
	p.written(o)
	if o.err == nil && o.kind == provider.WriteDone && o.flags.Has(provider.RemoteData) {
		o.role, o.note = roleQueued, true
		p.notes.push(o)
		return
	}
	p.count(o)
	p.d.finish(o, o.err)
}

// count adds an operation that has moved its bytes to the statistics.
func (p *pair) count(o *op) {
	if o.err != nil {
		return
	}
	switch o.kind {
	case provider.ReadDone:
		p.d.stats.Reads++
		p.d.stats.BytesRead += o.length
	case provider.WriteDone:
		p.d.stats.Writes++
		p.d.stats.BytesWritten += o.length
	case provider.AtomicDone:
		p.d.stats.Atomics++
	}
}

// chunk: bytes for one of our operations, or for a peer's write.
func (p *pair) chunk(r *record) error {
	o := p.d.ops.Get(r.context)
	if o == nil || o.pair != p {
		return fmt.Errorf("%w: bytes for nothing of ours", errRecord)
	}
	seg, n := unplace(r.words[1])
	b := r.payload
	if seg != noSegment {
		s := p.segment(seg)
		if s == nil {
			return fmt.Errorf("%w: segment %d is not known", errRecord, seg)
		}
		if b = s.bytes(r.words[2], n); b == nil {
			return fmt.Errorf("%w: %d bytes at %d of segment %d", errRecord, n, r.words[2], seg)
		}
	}
	if n > blockLen && seg != noSegment {
		return fmt.Errorf("%w: a chunk of %d bytes", errRecord, n)
	}
	p.d.chunked += uint64(len(b))
	pos, last := r.words[0], r.flags&recLast != 0
	if pos > o.length || uint64(len(b)) > o.length-pos {
		return fmt.Errorf("%w: %d bytes at %d of %d", errRecord, len(b), pos, o.length)
	}
	switch {
	case o.asked() && o.kind == provider.ReadDone:
		o.local.Scatter(pos, b)
		if last && !p.ended() {
			return p.pieceDone(o, statusError(r.status))
		}
	case o.role == roleReceive && o.src == nil: // else we copy it ourselves
		o.recv.Buffer.Scatter(o.at+pos, b)
		if last && !p.ended() {
			p.d.received(o, nil)
		}
	case o.role == roleServe:
		p.serveBytes(o, pos, b, last)
	default:
		return fmt.Errorf("%w: bytes for an operation that takes none", errRecord)
	}
	return nil
}

// serveRead: the peer wants bytes of registered memory.
func (p *pair) serveRead(r *record) error {
	m := p.d.arena.find(provider.Key(r.words[0]))
	b, status := m.slice(r.words[1], r.words[2], provider.PeerRead)
	switch {
	case status != statusOK:
		p.say(&record{op: opDone, status: status, context: r.context})
	case len(b) <= maxInline && p.streams.len() == 0 && p.replies.len() == 0:
		p.say(&record{op: opChunk, flags: recLast, context: r.context, words: [3]uint64{r.data, place(noSegment, 0)}, payload: b})
	default:
		return p.stream(stream{mem: m, from: r.words[1], base: r.data, left: r.words[2], to: r.context})
	}
	return nil
}

// serveWrite: the peer brings bytes for registered memory, or wants to.
func (p *pair) serveWrite(r *record) error {
	n := r.words[2]
	if r.flags&recWhole != 0 && uint64(len(r.payload)) != n {
		return fmt.Errorf("%w: a write of %d bytes with %d", errRecord, n, len(r.payload))
	}
	m := p.d.arena.find(provider.Key(r.words[0]))
	b, status := m.slice(r.words[1], n, provider.PeerWrite)
	if status != statusOK || r.flags&recWhole != 0 {
		copy(b, r.payload)
		p.say(&record{op: opDone, status: status, context: r.context})
		return nil
	}
	if p.served >= maxAsked {
		return fmt.Errorf("more than %d writes at a time", maxAsked)
	}
	p.served++
	o := p.bareOp(provider.WriteDone, roleServe)
	o.target, o.offset, o.length, o.answers = m, r.words[1], n, r.context
	p.answers.add(o)
	p.say(&record{op: opClear, flags: recData, context: r.context, words: [3]uint64{o.id, n}, data: r.data})
	return nil
}

// serveBytes stores a part of the peer's write, if the memory is still there.
func (p *pair) serveBytes(o *op, pos uint64, b []byte, last bool) {
	to, status := o.target.slice(o.offset+pos, uint64(len(b)), provider.PeerWrite)
	copy(to, b)
	if status != statusOK && o.err == nil {
		o.err = statusError(status)
	}
	if !last || p.ended() {
		return
	}
	if o.err != nil {
		status = statusKey
	}
	p.served--
	p.say(&record{op: opDone, status: status, context: o.answers})
	p.d.free(o)
}

// failAll ends all that waits for the peer.
func (p *pair) failAll(why error) {
	p.cut.Store(true)
	if p.mine != nil {
		p.mine.ended.Store(1) // before anything that the peer may still copy from is used anew
	}
	p.messages, p.notes, p.rmas, p.streams, p.writing = deque[*op]{}, deque[*op]{}, deque[*op]{}, deque[stream]{}, nil
	for p.replies.len() > 0 {
		p.said(p.replies.pop())
	}
	for p.flying.len() > 0 {
		if f := p.flying.pop(); f.block != nil {
			p.giveBlock(f.block)
		}
	}
	for o := p.live.head; o != nil; {
		next := o.next
		if o.role == roleCopying {
			o.err = why // who copies ends it
		} else {
			p.d.finish(o, why)
		}
		o = next
	}
	for o := p.answers.head; o != nil; {
		next := o.next
		switch {
		case o.role == roleServe && p.dying(): // its bytes may be on their way
		case o.role == roleServe:
			p.served--
			p.d.free(o)
		case o.src == nil: // its bytes will not come
			p.d.received(o, why)
		}
		o = next
	}
}

// cancel takes back an operation that has not started.
func (p *pair) cancel(context uint64) bool {
	is := func(o *op) bool {
		return o.context == context && !o.note && o.piece == 0 && o.within == 0
	}
	var found *op
	take := func(o *op) bool {
		if found == nil && is(o) {
			found = o
		}
		return found == o
	}
	if !p.messages.remove(take) && !p.rmas.remove(take) {
		return false
	}
	p.written(found)
	p.d.finish(found, provider.ErrCancelled)
	p.push()
	p.publish()
	return true
}

var (
	_ provutil.Engine  = (*domain)(nil)
	_ provutil.Flusher = (*domain)(nil)
)
