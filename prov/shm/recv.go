package shm

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

type (
	recv    = provutil.Recv
	waiting = provutil.Message[kept]
)

// Recv posts a receive.
func (ep *endpoint) Recv(o provider.Op) error { return ep.postRecv(provider.RecvDone, &o) }

// RecvTagged posts a receive of a tagged message, or looks for one.
func (ep *endpoint) RecvTagged(o provider.Op) error { return ep.postRecv(provider.TRecvDone, &o) }

func (ep *endpoint) postRecv(kind provider.Kind, o *provider.Op) error {
	d := ep.d
	d.core.Lock()
	err := ep.beginRecv(kind, o)
	d.core.Unlock()
	if err != nil || d.tracer.Post != nil {
		return d.posted(kind, o, err)
	}
	return nil
}

// beginRecv takes a receive, and gives it the messages that wait for it.
func (ep *endpoint) beginRecv(kind provider.Kind, o *provider.Op) error {
	d := ep.d
	if ep.closed {
		return provider.ErrClosed
	}
	if err := provider.Check(&d.info.Limits, kind, o); err != nil {
		return err
	}
	if o.Flags.Has(provider.Multi) && len(o.Local.Bytes) < ep.minMulti {
		return fmt.Errorf("multi receive of %d bytes, MinMultiRecv is %d: %w", len(o.Local.Bytes), ep.minMulti, provider.ErrInvalid)
	}
	var from *peer
	if o.Peer != 0 {
		v := d.av.Lookup(o.Peer)
		if v == nil {
			_, err := d.av.Address(o.Peer)
			return err
		}
		from = *v
	}
	if err := provutil.CheckOpen(d, o); err != nil {
		return err
	}
	if d.restart != nil {
		d.resume() // older ones come first
	}
	if ep.receives >= ep.depth || !reserve(ep.recvCQ) {
		return refuse(ep.recvCQ)
	}
	ep.receives++
	r := ep.matcher.NewRecv()
	r.Context, r.Tagged, r.Tag, r.Ignore, r.Peer, r.Flags = o.Context, kind == provider.TRecvDone, o.Tag, o.Ignore, o.Peer, o.Flags
	r.Least = uint64(ep.minMulti)
	if from != nil {
		r.Peer = ep.sourceOf(from)
	}
	r.Buffer = provutil.VectorOf(o)
	r.Buffer.More = d.locals.Clone(o.Locals)
	if o.Flags&(provider.Peek|provider.Claim) != 0 {
		ep.look(r)
	} else if !ep.feed(r) {
		ep.matcher.Add(r)
		if from != nil && from.why != nil && !from.left(ep) {
			ep.endRecv(r, from.why)
		}
	}
	if d.stuck {
		d.stuck = false
		d.core.Poll()
	}
	if len(d.dirty) > 0 && !o.Flags.Has(provider.More) {
		d.Flush()
	}
	return nil
}

// reserve gets a place in a queue, if there is one to have places in.
func reserve(q *provutil.CQ) bool { return q == nil || q.Reserve(1) }

func refuse(q *provutil.CQ) error {
	if q == nil {
		return provider.ErrAgain
	}
	return q.Refuse()
}

// feed gives waiting messages to a receive, posted or not, and says whether it is used up. It is stalled if there is no place
// for a completion.
func (ep *endpoint) feed(r *recv) bool {
	for m := ep.matcher.Find(r); m != nil; m = ep.matcher.Find(r) {
		part, ok := r.Take(m.Len, ep.recvCQ)
		if !ok {
			r.Stalled = true
			if !slices.Contains(ep.d.restart, ep) {
				ep.d.restart = append(ep.d.restart, ep)
			}
			return false
		}
		if part.Last {
			ep.matcher.Remove(r)
		}
		ep.hand(r, m, part)
		if part.Last {
			return true
		}
	}
	return false
}

// resume tries again to feed the receives that are stalled, where there is room now.
func (d *domain) resume() {
	for range len(d.restart) { // feed may add to it
		ep := d.restart[0]
		d.restart = slices.Delete(d.restart, 0, 1)
		if !ep.closed && ep.recvCQ.Free() == 0 {
			ep.recvCQ.Stall()
			d.restart = append(d.restart, ep)
			continue
		}
		ep.matcher.Unstall(func(r *recv) { ep.feed(r) })
	}
}

// give gives a message that arrives to a posted receive. False if there is no place for its completion.
func (ep *endpoint) give(r *recv, a *arrival, k *kept, payload []byte) bool {
	part, ok := r.Take(a.len, ep.recvCQ)
	if !ok {
		return false
	}
	if part.Last {
		ep.matcher.Remove(r)
	}
	ep.fill(r, a, k, payload, part)
	return true
}

// hand gives a waiting message to a receive that has taken it.
func (ep *endpoint) hand(r *recv, m *waiting, part provutil.Part) {
	ep.matcher.Take(m)
	p := m.Extra.pair
	p.lets(m.Extra.cost)
	a := arrival{tagged: m.Tagged, hasData: m.HasData, source: m.Source, tag: m.Tag, data: m.Data, len: m.Len}
	ep.fill(r, &a, &m.Extra, m.Bytes, part)
	if m.Bytes != nil {
		ep.d.bufs.Put(m.Bytes)
	}
	ep.matcher.FreeMessage(m)
	p.publish()
}

// look carries out a receive with Peek or Claim.
func (ep *endpoint) look(r *recv) {
	ep.d.looks = true
	ep.d.core.Poll() // what has arrived counts
	ep.d.looks = false
	var m *waiting
	peek := r.Flags.Has(provider.Peek)
	if peek {
		m = ep.matcher.Find(r)
	} else {
		m = ep.matcher.Claimed(r.Context)
	}
	switch {
	case m == nil:
		ep.endRecv(r, provider.ErrNoMessage)
	case !peek && !r.Flags.Has(provider.Discard):
		part, _ := r.Take(m.Len, nil) // it is not Multi
		ep.hand(r, m, part)
	default:
		ep.found(r, m)
	}
}

// found completes a peek, or a discard, without the message's bytes.
func (ep *endpoint) found(r *recv, m *waiting) {
	m.Extra.pair.peer.seen = true
	c := &ep.d.scratch
	*c = provider.Completion{Context: r.Context, Kind: r.Kind(), Len: m.Len, Tag: m.Tag, Source: m.Source}
	if m.HasData {
		c.Data, c.Flags = m.Data, provider.HasData
	}
	switch {
	case r.Flags.Has(provider.Discard):
		ep.matcher.Take(m)
		ep.discard(m)
	case r.Flags.Has(provider.Claim):
		ep.matcher.Claim(m, r.Context)
		m.Extra.claimed = true
		c.Flags |= provider.Claimed
	}
	ep.count(c)
	ep.push(ep.recvCQ, false)
	ep.freeRecv(r)
}

// discard drops a message that was taken out of the matcher, and tells its sender.
func (ep *endpoint) discard(m *waiting) {
	p, k := m.Extra.pair, &m.Extra
	p.lets(k.cost)
	if p.state == pairUp {
		switch {
		case k.how == opOffer:
			p.say(&record{op: opClear, context: k.context})
		case k.ack:
			p.say(&record{op: opAck, context: k.context})
		}
		p.publish()
	}
	if m.Bytes != nil {
		ep.d.bufs.Put(m.Bytes)
	}
	ep.matcher.FreeMessage(m)
}

// fill moves a message into its part of a receive, or starts to.
func (ep *endpoint) fill(r *recv, a *arrival, k *kept, payload []byte, part provutil.Part) {
	p, base, n := k.pair, part.At, part.Len
	switch {
	case k.why != nil:
		ep.filled(r, p.peer, a, base, 0, k.why)
	case k.how == opInline:
		r.Buffer.Scatter(base, payload[:n])
		if k.ack && p.state == pairUp {
			p.say(&record{op: opAck, context: k.context})
		}
		ep.filled(r, p.peer, a, base, n, nil)
	case k.how == opPlaced:
		p.fetch(r, a, k, base, n)
	case n == 0:
		p.say(&record{op: opClear, context: k.context})
		ep.filled(r, p.peer, a, base, 0, nil)
	default:
		o := p.receive(r, a, base, n)
		p.say(&record{op: opClear, context: k.context, words: [3]uint64{o.id, n}})
	}
}

// receive is our part in a message whose bytes come later.
func (p *pair) receive(r *recv, a *arrival, base, n uint64) *op {
	o := p.bareOp(provider.RecvDone, roleReceive)
	o.recv, o.arr, o.at, o.length = r, *a, base, n
	p.answers.add(o)
	return o
}

// fetch copies a message out of the sender's memory.
func (p *pair) fetch(r *recv, a *arrival, k *kept, base, n uint64) {
	s := p.segment(k.seg)
	var b []byte
	if s != nil {
		b = s.bytes(k.off, a.len)
	}
	if b == nil {
		if p.state == pairUp {
			p.breach(fmt.Errorf("%w: message of %d bytes at %d of segment %d", errRecord, a.len, k.off, k.seg))
		}
		p.ep.filled(r, p.peer, a, base, 0, provider.ErrPeerGone)
		return
	}
	grown, ok := k.growing(s)
	if !ok {
		p.breach(fmt.Errorf("%w: message of %d bytes at %d of segment %d grows", errRecord, a.len, k.off, k.seg))
		p.ep.filled(r, p.peer, a, base, 0, provider.ErrPeerGone)
		return
	}
	if n <= copyBytes && (grown == nil || grown.Load() >= n) {
		r.Buffer.Scatter(base, b[:n])
		if p.ended() {
			p.ep.filled(r, p.peer, a, base, 0, p.gone())
			return
		}
		p.taken(k.context)
		p.ep.filled(r, p.peer, a, base, n, nil)
		return
	}
	o := p.receive(r, a, base, n)
	o.src, o.seg, o.answers, o.grown = b, s, k.context, grown
	s.users++ // the sender may drop it meanwhile
	if grown != nil {
		p.growths++
	}
	p.copies.push(o)
	p.d.core.Later()
}

// taken tells the sender that its memory is free.
func (p *pair) taken(context uint64) {
	if p.state == pairUp {
		p.say(&record{op: opAck, context: context})
	}
}

// pushCopies goes on with long copies.
func (p *pair) pushCopies() bool {
	if p.copies.len() == 0 {
		return false
	}
	o := *p.copies.front()
	part := o.src[o.within:min(o.length, o.within+copyBytes, max(o.within, o.there()))]
	if len(part) == 0 {
		if p.state != pairDraining {
			return false // the sender is about to copy it
		}
		p.copies.pop() // it was not sent in full
		p.growths--
		p.d.received(o, p.peer.why)
		return true
	}
	o.recv.Buffer.Scatter(o.at+o.within, part)
	switch o.within += uint64(len(part)); {
	case p.ended():
		p.copies.pop()
		if o.grown != nil {
			p.growths--
		}
		p.d.received(o, p.gone())
	case o.within == o.length:
		p.copies.pop()
		if o.grown != nil {
			p.growths--
		}
		p.taken(o.answers)
		p.d.received(o, nil)
	}
	return true
}

// received ends our part in a message that has come in pieces.
func (d *domain) received(o *op, err error) {
	r, a, base, n, p := o.recv, o.arr, o.at, o.length, o.pair
	if err != nil {
		n = 0
	}
	d.free(o)
	p.ep.filled(r, p.peer, &a, base, n, err)
}

// filled ends a message that has reached its receive, or failed to.
func (ep *endpoint) filled(r *recv, from *peer, a *arrival, base, n uint64, err error) {
	d := ep.d
	if err == nil && n < a.len {
		err = &provider.TruncatedError{Message: a.len, Room: n}
	}
	d.stats.Received++
	d.stats.BytesRecv += n
	from.stats.Received++
	from.stats.BytesRecv += n
	c := &d.scratch
	*c = provider.Completion{Context: r.Context, Kind: r.Kind(), Len: n, Source: a.source}
	if err != nil {
		c.Err = fail(c.Kind.String(), from.text, err)
	}
	if r.Tagged {
		c.Tag = a.tag
	}
	if a.hasData {
		c.Data, c.Flags = a.data, provider.HasData
	}
	end := r.Complete(c, base)
	ep.count(c)
	ep.push(ep.recvCQ, r.Flags.Has(provider.Quiet))
	if end {
		ep.freeRecv(r)
	} else if r.Ended != nil && r.Pending == 0 {
		ep.endRecv(r, r.Ended)
	}
}

// freeRecv lets go of a receive that is not posted any more.
func (ep *endpoint) freeRecv(r *recv) {
	ep.receives--
	if r.Held {
		ep.d.held.Ended(r.Buffer)
	}
	ep.d.locals.Put(r.Buffer.More)
	ep.matcher.FreeRecv(r)
	if ep.recvCQ != nil {
		ep.recvCQ.Room()
	}
}

// endRecv ends a receive without a message.
func (ep *endpoint) endRecv(r *recv, err error) {
	ep.matcher.Remove(r)
	if r.Pending > 0 { // messages are on their way into its buffer
		r.Ended = err
		return
	}
	var from provider.Address
	if v := ep.d.av.Lookup(r.Peer); v != nil {
		from = (*v).text
	}
	c := &ep.d.scratch
	*c = provider.Completion{Context: r.Context, Kind: r.Kind(), Err: fail(r.Kind().String(), from, err)}
	if r.Flags.Has(provider.Multi) {
		c.Flags |= provider.MultiDone
	}
	ep.count(c)
	ep.push(ep.recvCQ, false)
	ep.freeRecv(r)
}

// failReceives ends our part in messages of a peer that sends no more, and drops those that are still with it.
func (p *pair) failReceives(why error) {
	p.copies, p.growths = deque[*op]{}, 0
	for p.answers.head != nil {
		p.d.received(p.answers.head, why) // served writes have ended before
	}
	p.dropKept(why, opOffer, opPlaced)
}

// dropKept drops the messages that wait here for a receive and whose bytes are with the peer in one of these ways.
func (p *pair) dropKept(why error, ways ...uint8) {
	ep := p.ep
	ep.matcher.EachMessage(func(m *waiting) {
		k := &m.Extra
		if k.pair != p || !slices.Contains(ways, k.how) {
			return
		}
		if k.claimed {
			k.why = why
			return
		}
		ep.matcher.Take(m)
		p.lets(k.cost)
		ep.matcher.FreeMessage(m)
	})
}

// failDirected ends receives from peers that are gone and have left nothing.
func (ep *endpoint) failDirected() {
	ep.matcher.EachRecv(func(r *recv) {
		if r.Peer == 0 {
			return
		}
		v := ep.d.av.Lookup(r.Peer)
		switch {
		case v == nil:
			ep.endRecv(r, provider.ErrCancelled)
		case (*v).why != nil && !(*v).left(ep):
			ep.endRecv(r, (*v).why)
		}
	})
}
