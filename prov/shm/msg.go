package shm

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

const (
	eagerMax = 64 << 10  // longer messages of private memory wait until they are asked for
	placeMax = 1<<32 - 1 // longer messages in an arena do, too
	keepCost = 64        // what a message that waits counts besides its bytes
)

// Send sends a message.
func (ep *endpoint) Send(o provider.Op) error { return ep.post(provider.SendDone, &o) }

// SendTagged sends a tagged message.
func (ep *endpoint) SendTagged(o provider.Op) error { return ep.post(provider.TSendDone, &o) }

// begin is what all operations towards a peer start with: it checks the arguments, finds the pair, and reserves a place for
// the completion.
func (ep *endpoint) begin(kind provider.Kind, o *provider.Op) (*pair, error) {
	d := ep.d
	if ep.closed {
		return nil, provider.ErrClosed
	}
	if err := provider.Check(&d.info.Limits, kind, o); err != nil {
		return nil, err
	}
	v := d.av.Lookup(o.Peer)
	if v == nil {
		_, err := d.av.Address(o.Peer)
		return nil, err
	}
	if err := provutil.CheckOpen(d, o); err != nil {
		return nil, err
	}
	to := *v
	if ep.posted >= ep.depth || !reserve(ep.sendCQ) {
		ep.short = true
		return nil, refuse(ep.sendCQ)
	}
	p := to.pair(ep)
	if p == nil {
		p = ep.alias(to)
	}
	if p == nil {
		p = ep.newPair(to)
	}
	return p, nil
}

// post takes a message.
func (ep *endpoint) post(kind provider.Kind, o *provider.Op) error {
	d := ep.d
	d.core.Lock()
	err := ep.send(kind, o)
	d.core.Unlock()
	if err != nil || d.tracer.Post != nil {
		return d.posted(kind, o, err)
	}
	return nil
}

// posted tells the tracer of a post, and names the operation in its error. o is copied: the ordinary way must not make
// it escape.
func (d *domain) posted(kind provider.Kind, o *provider.Op, err error) error {
	if err != nil && err != provider.ErrAgain { //nolint:errorlint // the core returns this very error
		var to provider.Address
		d.core.Lock()
		if v := d.av.Lookup(o.Peer); v != nil {
			to = (*v).text
		}
		d.core.Unlock()
		err = fail(kind.String(), to, err)
	}
	if d.tracer.Post != nil {
		c := *o
		d.tracer.Post(kind, &c, err)
	}
	return err
}

func (ep *endpoint) send(kind provider.Kind, o *provider.Op) error {
	if ep.sendShort(kind, o) {
		return nil
	}
	p, err := ep.begin(kind, o)
	if err != nil {
		return err
	}
	n := p.newOp(kind, o)
	n.pin(o)
	p.messages.push(n)
	p.start()
	p.out(o.Flags)
	return nil
}

// start goes on with what was queued, or connects, or ends it.
func (p *pair) start() {
	switch p.state {
	case pairNew:
		p.connect()
	case pairUp:
		p.push()
	case pairDraining: // it takes nothing any more
		p.failAll(p.peer.why)
	}
}

// out publishes what a post has made, and those before, unless another follows at once.
func (p *pair) out(f provider.Flags) {
	if f.Has(provider.More) {
		p.later()
		return
	}
	p.publish()
	if len(p.d.dirty) > 0 {
		p.d.Flush()
	}
}

// pin remembers that the message lies in a block of our arena, so that it is not used anew before the peer has
// taken it.
func (o *op) pin(from *provider.Op) {
	m, ok := from.Local.Memory.(*memory)
	if !ok || o.own != nil || len(from.Locals) > 0 || m.domain != o.pair.d || m.kind != nil || m.closed || o.length <= maxInline || o.length > placeMax {
		return
	}
	if _, inside := m.position(from.Local.Bytes); inside {
		o.mem = m
		m.pins.Add(1)
	}
}

// sent counts a message.
func (p *pair) sent(n int) {
	p.d.stats.Sent++
	p.d.stats.BytesSent += uint64(n)
	p.peer.stats.Sent++
	p.peer.stats.BytesSent += uint64(n)
}

// head fills in what messages have in common.
func (p *pair) head(r *record, kind provider.Kind, f provider.Flags, data uint64) {
	if kind == provider.TSendDone {
		r.flags |= recTagged
	}
	if f.Has(provider.RemoteData) {
		r.flags |= recData
		r.data = data
	}
	if int64(p.wroteAt-p.saidAfter) > 0 {
		r.flags |= recAfter
		r.after = p.wroteAt
	}
}

// inline puts a message into the lane; false if there is no room. With an id the peer acknowledges it.
func (p *pair) inline(kind provider.Kind, f provider.Flags, tag, data uint64, v provutil.Vector, id uint64) bool {
	r := record{op: opInline, words: [3]uint64{tag}}
	p.head(&r, kind, f, data)
	if id != 0 {
		r.flags |= recAck
		r.context = id
	}
	b, err := p.data.Reserve(recordLen(r.op, r.flags) + int(v.Len()))
	if err != nil {
		return p.dataFull(err)
	}
	v.Gather(0, b[r.put(b):])
	p.commit(&r)
	return true
}

// commit ends a record of the data lane.
func (p *pair) commit(r *record) {
	p.data.Commit()
	if r.flags&recAfter != 0 {
		p.saidAfter = r.after
	}
}

// pushMessages starts what goes into the data lane, each kind in its order.
func (p *pair) pushMessages() bool {
	moved := p.moveLane()
	moved = p.pushLane(&p.notes) || moved
	return p.pushLane(&p.messages) || moved
}

func (p *pair) pushLane(q *deque[*op]) bool {
	moved := false
	for p.state == pairUp && q.len() > 0 {
		o := *q.front()
		// What is posted after a write is seen after its bytes.
		if len(p.writing) > 0 && p.writing[0].seq < o.seq || o.flags.Has(provider.Fence) && p.live.head != o && !o.note {
			break
		}
		if !p.startMessage(o) {
			break
		}
		q.pop()
		p.started(o)
		moved = true
	}
	return moved
}

// started ends an operation whose record is in the lane, if nothing is to be waited for.
func (p *pair) started(o *op) {
	if !o.note {
		p.sent(int(o.length))
	}
	if o.role == roleQueued {
		if o.note {
			p.count(o)
		}
		p.d.finish(o, nil)
	}
}

// startMessage puts the record of a message, or of a write's end, into the lane. False if there is no room.
func (p *pair) startMessage(o *op) bool {
	switch {
	case o.note:
		return p.place(o, &record{op: opNote, words: [3]uint64{o.length}})
	case o.length <= maxInline:
		id := uint64(0)
		if o.flags.Has(provider.DeliveryComplete) {
			id = o.id
		}
		if !p.inline(o.kind, o.flags, o.tag, o.data, o.local, id) {
			return false
		}
		if id != 0 {
			o.role = roleAck
		}
		return true
	case o.mem != nil && !o.mem.closed && p.sees(o.mem.access) && p.knows(o.mem.extent.seg):
		at, _ := o.mem.position(o.local.First)
		r := record{op: opPlaced, context: o.id, words: [3]uint64{o.tag, place(o.mem.extent.seg, int(o.length)), o.mem.extent.off + at}}
		if !p.place(o, &r) {
			return false
		}
		o.role = roleAck
		return true
	}
	return p.startLarge(o)
}

// startLarge is startMessage for a message of private memory.
func (p *pair) startLarge(o *op) bool {
	if o.length <= eagerMax {
		if block := p.takeBlock(true); block != nil {
			r := record{op: opPlaced, context: o.id, words: [3]uint64{o.tag, place(block.seg, int(o.length)), block.off}}
			grows := p.grows(o)
			if grows {
				r.flags = recGrows
				block.grown.Store(0)
			} else {
				o.local.Gather(0, block.bytes)
			}
			if !p.place(o, &r) {
				p.giveBlock(block)
				return false
			}
			o.block, o.role = block, roleAck
			if grows {
				p.grow(o)
			}
			return true
		}
		if p.state != pairUp {
			return false
		}
	}
	if !p.place(o, &record{op: opOffer, context: o.id, words: [3]uint64{o.tag, o.length}}) {
		return false
	}
	o.role = roleOffer
	return true
}

// sees says whether the peer maps memory with this access: what peers may write, other users do not get.
func (p *pair) sees(a provider.Access) bool { return p.uid == p.d.uid || !a.Has(provider.PeerWrite) }

// knows says whether the peer can be pointed at a segment of ours that it sees.
func (p *pair) knows(seg uint32) bool {
	if int(seg) >= p.announced {
		p.announce()
	}
	return int(seg) < p.announced
}

// place puts a record without payload into the data lane.
func (p *pair) place(o *op, r *record) bool {
	p.head(r, o.kind, o.flags, o.data)
	b, err := p.data.Reserve(recordLen(r.op, r.flags))
	if err != nil {
		return p.dataFull(err)
	}
	r.put(b)
	p.commit(r)
	return true
}

// accept takes a record of the data lane. False: it has to wait, for a receive or for a place in a queue.
func (p *pair) accept(r *record) bool {
	a := arrival{tagged: r.flags&recTagged != 0, hasData: r.flags&recData != 0, source: p.peer.id, tag: r.words[0], data: r.data}
	k := kept{pair: p, how: r.op, context: r.context, ack: r.flags&recAck != 0}
	switch r.op {
	case opNote:
		return p.noted(r)
	case opInline:
		a.len = uint64(len(r.payload))
	case opPlaced:
		var n uint64
		k.seg, n = unplace(r.words[1])
		k.off, a.len, k.ack = r.words[2], n, true
		k.grows = r.flags&recGrows != 0
	case opOffer:
		a.len = r.words[1]
		if p.state == pairDraining {
			return true // it will never be sent
		}
	}
	if recv := p.ep.matcher.Match(a.tagged, a.source, a.tag); recv != nil {
		return p.ep.give(recv, &a, &k, r.payload)
	}
	if k.grows && p.state == pairUp && !p.grownUp(&k, a.len) {
		return false
	}
	return p.keep(&a, &k, r.payload)
}

// noted: a write with data has been done.
func (p *pair) noted(r *record) bool {
	ep := p.ep
	if r.flags&recData == 0 {
		p.breach(fmt.Errorf("%w: a note without data", errRecord))
		return false
	}
	if !reserve(ep.recvCQ) {
		ep.recvCQ.Stall()
		return false
	}
	p.peer.seen = true
	c := &ep.d.scratch
	*c = provider.Completion{Kind: provider.RemoteWrite, Flags: provider.HasData, Len: r.words[0], Data: r.data, Source: p.peer.id}
	ep.count(c)
	ep.push(ep.recvCQ, false)
	return true
}

// keep holds a message until a receive takes it.
func (p *pair) keep(a *arrival, k *kept, payload []byte) bool {
	k.cost = keepCost
	if k.how == opInline {
		k.cost += a.len
	}
	if p.waiting+k.cost > p.ep.unexpected && p.waiting > 0 {
		return false
	}
	if k.how == opPlaced && p.state == pairDraining {
		return true // its send has failed
	}
	p.keeps(k.cost)
	m := p.ep.matcher.Keep(a.tagged)
	m.Source, m.Tag, m.Data, m.HasData, m.Len, m.Extra = a.source, a.tag, a.data, a.hasData, a.len, *k
	if k.how == opInline {
		m.Bytes = p.d.bufs.Get(len(payload))
		copy(m.Bytes, payload)
	}
	return true
}
