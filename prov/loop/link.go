package loop

import (
	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// link is one of our endpoints' way to a peer. The lock of the domain guards it.
type link struct {
	ep      *endpoint
	peer    provider.Peer
	address provider.Address
	pair    *pair // nil before the first operation, and when a peer that is gone has no more packets here
	side    int
	why     error // the peer is gone
	dead    bool  // the link is not to be used any more
	seen    bool  // the program has had the peer's number in a completion

	messages fifo[uint64] // that have not started
	accesses fifo[uint64] // reads, writes and atomics that have not ended
	flying   int          // messages that have started and not ended

	inOutbound bool // in domain.outbound
	inInbound  bool // in domain.inbound or domain.stalled

	unexpected uint64 // bytes of messages of the peer that wait for a receive
	waiting    int    // their number
	numbers    numbers
}

// numbers are a link's statistics.
type numbers struct {
	sent, received, bytesSent, bytesReceived uint64
}

func (l *link) out() *lane { return &l.pair.lanes[l.side] }
func (l *link) in() *lane  { return &l.pair.lanes[l.pair.far(l.side)] }

// far is the peer's endpoint.
func (l *link) far() *endpoint { return l.pair.ends[l.pair.far(l.side)] }

// giveBack gives the memory of a message back to the lane.
func (l *link) giveBack(b []byte) {
	if l.pair != nil {
		l.in().giveBack(b)
	}
}

// tell sends an event to the peer.
func (l *link) tell(e event) {
	if l.pair == nil {
		return // it is gone
	}
	e.pair, e.side = l.pair, l.pair.far(l.side)
	d := l.ep.domain
	if l.far().domain.mail.put(e) {
		d.stats.Rings++
	}
}

// linkTo finds or makes the link of an endpoint to a peer.
func (ep *endpoint) linkTo(p provider.Peer, st *peerState) *link {
	if l := st.link(ep); l != nil {
		return l
	}
	a, _ := ep.domain.av.Address(p)
	if l := ep.orphans[a]; l != nil {
		delete(ep.orphans, a)
		l.peer = p
		st.links = append(st.links, l)
		return l
	}
	l := &link{ep: ep, peer: p, address: a, why: st.why}
	st.links = append(st.links, l)
	return l
}

// connect makes the pair at the first operation.
func (d *domain) connect(l *link) error {
	if l.pair != nil {
		return nil
	}
	p, side, err := d.net.join(l.ep, l.address)
	if err != nil {
		return err
	}
	d.bind(l, p, side)
	return nil
}

func (d *domain) bind(l *link, p *pair, side int) {
	l.pair, l.side = p, side
	p.links[side] = l
	if d.tracer.PeerUp != nil {
		d.tracer.PeerUp(l.peer, l.address)
	}
}

// adopt takes a pair that a peer has made.
func (d *domain) adopt(p *pair, side int) {
	ep, from := p.ends[side], p.ends[1-side]
	if ep.closed || p.links[side] != nil {
		return
	}
	for {
		peer, st, _, err := d.av.Insert(from.address)
		if err != nil {
			d.refuse(p, side, err)
			return
		}
		l := ep.linkTo(peer, st)
		if l.pair == nil {
			d.bind(l, p, side)
			d.expect(l)
			return
		}
		d.lost(l, provider.ErrPeerGone) // a predecessor under the same name
	}
}

// expect has the next poll look for packets of a link.
func (d *domain) expect(l *link) {
	if !l.inInbound {
		l.inInbound = true
		d.inbound.push(l)
	}
}

// wantPump has the next poll start operations of a link.
func (d *domain) wantPump(l *link) {
	if !l.inOutbound && !l.dead && l.messages.len()+l.accesses.len() > 0 {
		l.inOutbound = true
		d.outbound.push(l)
	}
}

// lost ends what is outstanding towards a peer that is gone. What it has sent can still be received.
func (d *domain) lost(l *link, why error) {
	if l.why != nil {
		return
	}
	l.why = goneError(why)
	if l.ep.orphans[l.address] == l {
		delete(l.ep.orphans, l.address)
	}
	d.endOps(l, l.why)
	l.ep.matcher.EachMessage(func(m *waiting) {
		if m.Extra.link == l && m.Extra.loan != nil && !m.Extra.claimed { // it was never sent
			l.ep.matcher.Take(m)
			d.forget(m)
		}
	})
	if st := d.av.Lookup(l.peer); st != nil && st.why == nil {
		st.why = l.why
		d.av.Bury(l.peer)
		for _, ep := range d.endpoints {
			if k := st.link(ep); k == nil || k.pair == nil { // it sends nothing here
				d.endDirected(ep, l.peer, l.address, l.why)
			}
		}
		if d.tracer.PeerGone != nil {
			d.tracer.PeerGone(l.peer, l.address, l.why)
		}
	}
	d.expect(l) // when its packets are taken, receives that only it can serve end
}

// endOps ends all operations of a link, in the order in which they were posted.
func (d *domain) endOps(l *link, err error) {
	l.ep.endAll(err, func(o *op) bool { return o.link == l })
	for _, q := range []*fifo[uint64]{&l.messages, &l.accesses} {
		for q.len() > 0 {
			q.pop()
		}
	}
}

// endDirected ends the receives that wait for a dead peer alone.
func (d *domain) endDirected(ep *endpoint, p provider.Peer, a provider.Address, why error) {
	if p == 0 {
		return
	}
	ep.matcher.EachRecv(func(r *recv) {
		if r.Peer == p {
			ep.matcher.Remove(r)
			ep.endRecv(r, d.fault(r.Kind(), a, why))
		}
	})
}

// orphan keeps the link of a peer that was removed, for when either side uses it again.
func (ep *endpoint) orphan(l *link) {
	if ep.orphans == nil {
		ep.orphans = make(map[provider.Address]*link)
	}
	ep.orphans[l.address] = l
}

// fault is the error of an operation towards a peer; nil stays nil.
func (d *domain) fault(kind provider.Kind, a provider.Address, err error) error {
	return provutil.OpError(kind.String(), Name, a, err)
}
