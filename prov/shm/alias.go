package shm

import "github.com/weft-fabric/weft/fabric/provider"

// An endpoint can have two numbers: one for its name alone, which is whoever has the name when it is connected, and one for its
// full address, which is nobody else. Which endpoint a name finds is known when it is connected, so the two cannot be one from
// the start. There is one pair: what is posted to the other number goes to it as well.

// is says whether an address that is inserted is this peer.
func (p *peer) is(a address) bool {
	if !p.addr.agrees(a) {
		return false
	}
	if a.inc == 0 {
		return p.bare && p.net == a.net && p.path == a.path || p.up() != nil // who is connected has the name
	}
	return p.addr.inc == a.inc
}

// learn takes what a connection says of the peer and its address did not.
func (p *peer) learn(h *hello) {
	p.addr.inc, p.addr.path = h.inc, h.path
	if p.addr.net == 0 {
		p.addr.net = h.net
	}
}

// unmeet has a name mean anybody again, after the last connection with who had it has ended and not because that one is gone.
func (p *peer) unmeet() {
	if p.bare && p.why == nil && len(p.pairs) == 0 {
		p.addr.inc, p.addr.path, p.addr.net = 0, p.path, p.net
	}
}

// up is a pair that is up, or nil.
func (p *peer) up() *pair {
	for _, q := range p.pairs {
		if q.state == pairUp {
			return q
		}
	}
	return nil
}

// alias is the pair of the endpoint with this peer under another number, if that is up and this one has none that is.
func (ep *endpoint) alias(to *peer) *pair {
	list := ep.d.byName[to.addr.name]
	if len(list) < 2 || to.why != nil {
		return nil
	}
	if p := to.pair(ep); p != nil && p.state == pairUp {
		return nil
	}
	for _, other := range list {
		if other == to || !other.addr.agrees(to.addr) {
			continue
		}
		if p := other.pair(ep); p != nil && p.state == pairUp {
			return p
		}
	}
	return nil
}

// sourceOf is the number that messages of the peer come from.
func (ep *endpoint) sourceOf(from *peer) provider.Peer {
	if p := ep.alias(from); p != nil {
		return p.peer.id
	}
	return from.id
}

// adoptAliases has receives that were posted for other numbers of the peer take its messages.
func (p *pair) adoptAliases() {
	list := p.d.byName[p.peer.addr.name]
	if len(list) < 2 {
		return
	}
	p.ep.matcher.EachRecv(func(r *recv) {
		for _, other := range list {
			if r.Peer == other.id && p.ep.alias(other) == p {
				r.Peer = p.peer.id
			}
		}
	})
}

// moveTo ends a pair that was never up: what was posted to it goes to another one.
func (p *pair) moveTo(q *pair) {
	for o := p.live.head; o != nil; o = p.live.head {
		o.unlink()
		q.seq++
		o.pair, o.seq = q, q.seq
		q.live.add(o)
	}
	for p.messages.len() > 0 {
		q.messages.push(p.messages.pop())
	}
	for p.rmas.len() > 0 {
		q.rmas.push(p.rmas.pop())
	}
	q.writing = append(q.writing, p.writing...)
	p.writing = nil
	p.end(provider.ErrUnreachable, nil)
	q.push()
	if q.state == pairUp {
		q.publish()
	}
}
