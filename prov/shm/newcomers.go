package shm

import "fmt"

// Peers that come by themselves, and go, must not cost more with each of them: a server runs for long. Who has left nothing
// that the program could know is forgotten at once. Of the others the last ones are remembered, so that what is posted to
// their numbers is told that they are gone. And there is a bound on what they leave in messages: those are not dropped, but
// nobody else who was not inserted is let in before the program has taken some.
const (
	maxGhosts = 256
	maxLeft   = 16 // times Unexpected
)

// keeps counts a message that waits here.
func (p *pair) keeps(cost uint64) {
	p.waiting += cost
	p.peer.held += cost
}

// lets is the end of keeps.
func (p *pair) lets(cost uint64) {
	p.waiting -= cost
	p.peer.held -= cost
}

// forget drops the peer of a pair that has ended, or, if the program may know its number, does so some time later.
func (d *domain) forget(p *pair) {
	q := p.peer
	switch {
	case q.named || q.ghost || len(q.pairs) > 0 || d.av.Lookup(q.id) == nil:
	case !q.seen && q.held == 0 && q.stats.Received == 0:
		d.drop(q)
	case q.why != nil:
		q.ghost = true
		d.ghosts = append(d.ghosts, q)
		d.lay()
	}
}

// lay drops the oldest ghosts, but for those whose messages are still here.
func (d *domain) lay() {
	for n := len(d.ghosts) - maxGhosts; n > 0; n-- {
		q := d.ghosts[0]
		d.ghosts = d.ghosts[1:]
		if q.held > 0 {
			d.ghosts = append(d.ghosts, q)
		} else {
			d.drop(q)
		}
	}
}

// drop forgets a peer.
func (d *domain) drop(q *peer) {
	if q.why == nil {
		d.forgetName(q)
	}
	d.av.Remove(q.id)
}

// crowded is why no newcomer is let in: the messages of those who are gone are too many.
func (ep *endpoint) crowded() error {
	left, most := uint64(0), maxLeft*max(ep.unexpected, keepCost)
	for _, q := range ep.d.ghosts {
		left += q.held
	}
	for _, p := range ep.pairs {
		if p.state == pairDraining {
			left += max(p.waiting, ep.unexpected) // and its lanes
		}
	}
	if left >= most {
		return fmt.Errorf("%d bytes of messages of peers that are gone wait for receives here", left)
	}
	return nil
}
