package loop

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// op is an operation towards a peer, from its post to its completion.
type op struct {
	kind    provider.Kind
	flags   provider.Flags
	context uint64
	link    *link
	seq     uint64 // of the endpoint
	buffer  provutil.Vector
	len     uint64
	tag     uint64
	data    uint64

	// RMA and atomics.
	key     provider.Key
	offset  uint64
	remotes []provider.RemoteSegment
	code    provider.AtomicCode
	typ     provider.DataType
	compare []byte
	result  []byte
	done    uint64 // bytes that were moved

	started bool   // a message that is on its way; counted in link.flying
	copied  []byte // with Inject, while it waits
	cloned  bool   // the lists of segments are ours
	held    bool   // memory of the buffers was closed
	loan    *loan  // the receiver copies from the buffer
}

// Send sends a message.
func (ep *endpoint) Send(o provider.Op) error { return ep.post(provider.SendDone, o) }

// SendTagged sends a tagged message.
func (ep *endpoint) SendTagged(o provider.Op) error { return ep.post(provider.TSendDone, o) }

// Read reads a peer's memory.
func (ep *endpoint) Read(o provider.Op) error { return ep.post(provider.ReadDone, o) }

// Write writes a peer's memory.
func (ep *endpoint) Write(o provider.Op) error { return ep.post(provider.WriteDone, o) }

// Atomic runs an atomic operation on a peer's memory.
func (ep *endpoint) Atomic(a provider.Atomic) error {
	err := provider.CheckAtomic(&ep.domain.info.Limits, &a)
	if err == nil {
		ep.domain.core.Lock()
		defer ep.domain.core.Unlock()
		err = ep.begin(provider.AtomicDone, &a.Op, &a)
	}
	return ep.posted(provider.AtomicDone, a.Op, err)
}

func (ep *endpoint) post(kind provider.Kind, o provider.Op) error {
	err := provider.Check(&ep.domain.info.Limits, kind, &o)
	if err == nil {
		ep.domain.core.Lock()
		defer ep.domain.core.Unlock()
		err = ep.begin(kind, &o, nil)
	}
	return ep.posted(kind, o, err)
}

// posted tells of a post, and says of an error what it was about. It has o by value so that the tracer's pointer costs
// nothing without a tracer.
func (ep *endpoint) posted(kind provider.Kind, o provider.Op, err error) error {
	err = ep.domain.fault(kind, "", err)
	if f := ep.domain.tracer.Post; f != nil {
		traced := o
		f(kind, &traced, err)
	}
	return err
}

// begin takes an operation and starts it if it can start. Locked.
func (ep *endpoint) begin(kind provider.Kind, p *provider.Op, a *provider.Atomic) error {
	d := ep.domain
	if ep.closed {
		return provider.ErrClosed
	}
	st := d.av.Lookup(p.Peer)
	if st == nil {
		return fmt.Errorf("peer %v was not inserted here, or was removed: %w", p.Peer, provider.ErrInvalid)
	}
	if err := provutil.CheckOpen(d, p); err != nil {
		return err
	}
	if ep.ops.Len() >= ep.depth || ep.send != nil && !ep.send.Reserve(1) {
		return refuse(ep.send)
	}
	l := ep.linkTo(p.Peer, st)
	id, o := ep.ops.New()
	*o = op{
		kind: kind, flags: p.Flags, context: p.Context, link: l, buffer: provutil.VectorOf(p), tag: p.Tag, data: p.Data,
		key: p.Key, offset: p.Offset, remotes: p.Remotes,
	}
	o.len = o.buffer.Len()
	if a != nil {
		o.code, o.typ, o.compare, o.result = a.Code, a.Type, a.Compare, a.Result
		o.len = uint64(a.Target())
	}
	ep.seq++
	o.seq = ep.seq
	o.queue().push(id)
	d.budget = pieceBytes
	d.pump(l)
	if o := ep.ops.Get(id); o != nil {
		ep.keep(o)
	}
	if d.outbound.len() > 0 || d.mail.any.Load() {
		d.core.Nudge()
	}
	return nil
}

// keep makes an operation that goes on after the post independent of what the caller has back.
func (ep *endpoint) keep(o *op) {
	if o.flags.Has(provider.Inject) && !o.started {
		o.copied = ep.buffers.Get(int(o.len))
		o.buffer.Gather(0, o.copied)
		o.buffer = provutil.Vector{First: o.copied}
	} else {
		o.buffer.More = ep.domain.segments.Clone(o.buffer.More)
	}
	o.remotes = ep.domain.remotes.Clone(o.remotes)
	o.cloned = true
	if o.loan != nil {
		o.loan.relend(o.buffer)
	}
}

// begun says that it is too late to cancel the operation: the peer has it, or some of its bytes.
func (o *op) begun() bool { return o.started || o.done > 0 }

// queue is where the operation waits: reads, writes and atomics need no room in the lane, so messages that wait for it
// do not hold them up.
func (o *op) queue() *fifo[uint64] {
	if o.kind == provider.SendDone || o.kind == provider.TSendDone {
		return &o.link.messages
	}
	return &o.link.accesses
}

// pump starts the operations of a link that can start, in order, and says whether any moved.
func (d *domain) pump(l *link) (moved bool) {
	for d.pumpQueue(l, &l.accesses) || d.pumpQueue(l, &l.messages) {
		moved = true
	}
	return moved
}

func (d *domain) pumpQueue(l *link, q *fifo[uint64]) (moved bool) {
	for !l.dead && q.len() > 0 {
		id := *q.first()
		o := l.ep.ops.Get(id)
		err := d.ready(l)
		if err == nil && l.why != nil {
			return true // all have ended
		}
		end := false
		if err == nil && !d.mustWait(l, o) {
			before := o.done
			end, err = d.step(l, id, o)
			moved = moved || o.done != before
		}
		switch {
		case err != nil:
			q.pop()
			l.ep.finish(id, o, err)
		case !end:
			return moved
		}
		moved = true
	}
	return moved
}

// mustWait says whether an operation has to wait for earlier ones: with Fence for all of them; a message for
// reads and writes, whose bytes it follows.
func (d *domain) mustWait(l *link, o *op) bool {
	fence := o.flags.Has(provider.Fence)
	if fence && l.flying > 0 {
		return true
	}
	if o.queue() == &l.messages {
		return l.ep.earlier(&l.accesses, o.seq)
	}
	return fence && l.ep.earlier(&l.messages, o.seq)
}

// earlier says whether the first operation of a queue was posted before another one.
func (ep *endpoint) earlier(q *fifo[uint64], seq uint64) bool {
	return q.len() > 0 && ep.ops.Get(*q.first()).seq < seq
}

// ready sees to it that a link can be used.
func (d *domain) ready(l *link) error {
	if l.why != nil {
		return l.why
	}
	if err := d.connect(l); err != nil {
		return err
	}
	if l.pair.down.Load() {
		d.lost(l, l.pair.why)
	}
	return nil
}

// step moves the first operation of a queue. It takes it out when nothing more is to be done for it before the peer
// answers; end is false while it must wait.
func (d *domain) step(l *link, id uint64, o *op) (end bool, err error) {
	if o.queue() == &l.messages {
		return d.transmit(l, id, o), nil
	}
	return d.access(l, id, o)
}

// transmit puts a message into the lane.
func (d *domain) transmit(l *link, id uint64, o *op) bool {
	out := l.out()
	if !out.hasRoom() {
		return false
	}
	p := packet{
		kind: message, tag: o.tag, data: o.data, hasData: o.flags.Has(provider.RemoteData), len: o.len,
		ack: o.flags.Has(provider.DeliveryComplete), op: id,
	}
	if o.kind == provider.TSendDone {
		p.kind = tagged
	}
	if o.len <= d.eager || o.flags.Has(provider.Inject) {
		p.bytes = out.buffer(int(o.len))
		o.buffer.Gather(0, p.bytes)
	} else {
		o.loan = d.newLoan()
		p.loan, p.loanNo, p.ack = o.loan, o.loan.lend(o.buffer), true
	}
	l.messages.pop()
	l.put(p)
	l.numbers.sent++
	l.numbers.bytesSent += o.len
	d.stats.Sent++
	d.stats.BytesSent += o.len
	if p.ack {
		o.started = true
		l.flying++
	} else {
		l.ep.finish(id, o, nil)
	}
	return true
}

// put sends a packet, for which there is room.
func (l *link) put(p packet) {
	if l.out().put(p) {
		l.tell(event{kind: packets})
	}
}

// finish ends an operation: its completion, its count, its memory.
func (ep *endpoint) finish(id uint64, o *op, err error) {
	d, l := ep.domain, o.link
	if o.loan != nil {
		o.loan.end()
		o.loan.next, d.loans = d.loans, o.loan
	}
	if o.copied != nil {
		ep.buffers.Put(o.copied)
	}
	if o.held {
		d.held.Ended(o.buffer, o.compare, o.result)
	}
	if o.cloned {
		d.segments.Put(o.buffer.More)
		d.remotes.Put(o.remotes)
	}
	if o.started {
		l.flying--
	}
	c := provider.Completion{Context: o.context, Kind: o.kind, Len: o.len, Source: l.peer, Err: d.fault(o.kind, l.address, err)}
	if c.Err != nil {
		c.Len = 0
	}
	n := ep.counterOf(o)
	quiet := o.flags.Has(provider.Quiet) && err == nil
	ep.ops.Put(id)
	deliver(ep.send, &c, quiet)
	n.Done(c.Err)
	if l.flying == 0 {
		d.wantPump(l)
	}
}

// deliver queues a completion in its place, or gives the place back, and tells of room.
func deliver(q *provutil.CQ, c *provider.Completion, quiet bool) {
	switch {
	case q == nil:
	case quiet:
		q.Release(1)
	default:
		q.Push(c)
		q.Room() // of the endpoint's depth
	}
}

// counterOf is the counter of an operation.
func (ep *endpoint) counterOf(o *op) *provutil.Counter {
	switch {
	case o.kind == provider.SendDone || o.kind == provider.TSendDone:
		return ep.counters.send
	case o.kind == provider.ReadDone || o.result != nil:
		return ep.counters.read
	}
	return ep.counters.write
}

func (d *domain) newLoan() *loan {
	b := d.loans
	if b == nil {
		return new(loan)
	}
	d.loans = b.next
	b.next = nil
	return b
}
