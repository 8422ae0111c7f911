package shm

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
)

// peer is an address that was inserted, or that has connected. The domain's lock guards it.
type peer struct {
	id    provider.Peer
	text  provider.Address
	addr  address
	pairs []*pair
	why   error  // it is gone
	bare  bool   // inserted without an incarnation: whoever has the name when it is connected
	path  string // of a bare one: the folder that was inserted
	net   uint64 // and the network namespace
	named bool   // the program has inserted it
	seen  bool   // the program may have its number
	ghost bool   // in d.ghosts
	held  uint64 // bytes of messages of it that wait here
	stats provider.PeerStats
}

// Insert makes a peer of an address.
func (d *domain) Insert(a provider.Address) (provider.Peer, error) {
	addr, err := parseAddress(a)
	if err != nil {
		return 0, fail("insert", a, err)
	}
	d.core.Lock()
	defer d.core.Unlock()
	if d.closed {
		return 0, fail("insert", a, provider.ErrClosed)
	}
	p, err := d.insert(addr)
	if err != nil {
		return 0, fail("insert", a, err)
	}
	p.named = true
	if addr.inc != 0 {
		p.bare = false // from now on it is nobody else
	}
	return p.id, nil
}

// insert finds or makes the peer. What an address does not say is as it is here, but for the incarnation (see peer.is), and the network namespace where
// there is a folder, which others share.
func (d *domain) insert(addr address) (*peer, error) {
	text := provider.Address(addr.String())
	if addr.boot == "" {
		addr.boot = d.boot.String()
	}
	if addr.net == 0 && addr.path == "" && d.opts.folder == "" {
		addr.net = d.net
	}
	if !addr.has {
		addr.uid, addr.has = d.uid, true
	}
	for _, p := range d.byName[addr.name] {
		if p.is(addr) {
			return p, nil
		}
	}
	id, value, _, err := d.av.Insert(text)
	if err != nil {
		return nil, err
	}
	p := &peer{id: id, text: text, addr: addr, bare: addr.inc == 0, path: addr.path, net: addr.net}
	*value = p
	d.byName[addr.name] = append(d.byName[addr.name], p)
	return p, nil
}

// agrees says whether two addresses, of which all but the incarnation and the network namespace is known, can be one endpoint's.
func (p address) agrees(q address) bool {
	return p.name == q.name && (p.inc == 0 || q.inc == 0 || p.inc == q.inc) && p.uid == q.uid && p.boot == q.boot &&
		(p.net == q.net || p.net == 0 || q.net == 0)
}

// Address is the address of a peer.
func (d *domain) Address(p provider.Peer) (provider.Address, error) {
	d.core.Lock()
	defer d.core.Unlock()
	a, err := d.av.Address(p)
	if err != nil {
		return "", fail("address", "", err)
	}
	return a, nil
}

// Remove forgets a peer.
func (d *domain) Remove(id provider.Peer) error {
	d.core.Lock()
	defer d.core.Unlock()
	v := d.av.Lookup(id)
	if v == nil {
		_, err := d.av.Address(id)
		return fail("remove", "", err)
	}
	p := *v
	for len(p.pairs) > 0 {
		p.pairs[0].end(provider.ErrCancelled, &refusal{code: refuseRemoved, text: "the peer was removed"})
	}
	d.forgetName(p)
	d.av.Remove(id)
	d.gone = true
	d.reap()
	return nil
}

// forgetName makes the address free for a new peer.
func (d *domain) forgetName(p *peer) {
	list := d.byName[p.addr.name]
	if i := slices.Index(list, p); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(d.byName, p.addr.name)
		return
	}
	d.byName[p.addr.name] = list
}

// bury makes the peer dead: its number stays, its address can be inserted anew.
func (d *domain) bury(p *peer, why error) {
	if p.why != nil {
		return
	}
	p.why = why
	d.forgetName(p)
	d.av.Bury(p.id)
	d.gone = true
	d.sweep(p)
	if d.tracer.PeerGone != nil {
		d.tracer.PeerGone(p.id, p.text, why)
	}
}

// sweep removes what a dead peer has left in the folder.
func (d *domain) sweep(p *peer) {
	if d.opts.folder != "" && p.addr.path == d.opts.folder {
		stale(folderName(p.addr.path, p.addr.name))
	}
}

// pair is that of the endpoint, or nil.
func (p *peer) pair(ep *endpoint) *pair {
	for _, q := range p.pairs {
		if q.ep == ep {
			return q
		}
	}
	return nil
}

// address is that of who says the hello.
func (h *hello) address(uid uint32) address {
	return address{name: h.from, boot: h.boot.String(), inc: h.inc, net: h.net, path: h.path, uid: uid, has: true}
}

// pairWith finds the pair with an endpoint that says it has this name and incarnation.
func (ep *endpoint) pairWith(h *hello, uid uint32) *pair {
	at := h.address(uid)
	var calling *pair
	var best *peer
	for _, p := range ep.d.byName[h.from] {
		q := p.pair(ep)
		switch {
		case !p.addr.agrees(at):
		case q != nil && q.inc == h.inc:
			return q
		case q != nil && q.inc == 0:
			calling = q
		case q == nil && (best == nil || p.addr.inc == h.inc):
			best = p
		}
	}
	switch {
	case calling != nil: // whom it finds is not known yet: maybe this one
		return calling
	case best != nil:
		return ep.newPair(best)
	}
	return nil
}

// newcomer makes peer and pair for somebody who was not inserted here.
func (ep *endpoint) newcomer(h *hello, uid uint32) (*pair, error) {
	if err := ep.crowded(); err != nil {
		return nil, err
	}
	p, err := ep.d.insert(h.address(uid))
	if err != nil {
		return nil, err
	}
	if p.pair(ep) != nil {
		return nil, fmt.Errorf("another endpoint of that name is known")
	}
	return ep.newPair(p), nil
}

// Peers lists what is known of each peer.
func (d *domain) Peers() []provider.PeerStats {
	d.core.Lock()
	defer d.core.Unlock()
	var all []provider.PeerStats
	d.av.Each(func(id provider.Peer, a provider.Address, v **peer) {
		p := *v
		s := p.stats
		s.Peer, s.Address, s.Why, s.Path = id, a, p.why, "arena, bounce"
		s.State = "new"
		for _, q := range p.pairs {
			switch q.state {
			case pairDialing:
				s.State = "connecting"
			case pairUp:
				s.State = "connected"
			}
			s.Unexpected += q.waiting
			s.Memory += q.mapped()
			if q.state == pairUp && q.cross.why == nil {
				s.Path = "arena, bounce, process_vm"
			}
		}
		if p.why != nil {
			s.State = "gone"
		}
		all = append(all, s)
	})
	return all
}
