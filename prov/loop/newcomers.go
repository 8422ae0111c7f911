package loop

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
)

// maxGhosts is how many dead peers are remembered that came by themselves: what is posted to their numbers is told that they
// are gone. A server runs for long, and must not grow with each of them.
const maxGhosts = 256

var errFull = fmt.Errorf("%w: it cannot take in another peer", provider.ErrPeerGone)

// retire forgets a dead peer that was not inserted, as soon as all it has sent was received: at once if the program cannot
// know its number, else when enough others have followed.
func (d *domain) retire(p provider.Peer) {
	st := d.av.Lookup(p)
	if st == nil || st.why == nil || st.named || st.ghost {
		return
	}
	seen := st.seen
	for _, l := range st.links {
		if l.pair != nil || l.waiting > 0 {
			return
		}
		seen = seen || l.seen
	}
	if !seen {
		d.av.Remove(p)
		return
	}
	st.ghost = true
	d.ghosts = append(d.ghosts, p)
	for len(d.ghosts) > maxGhosts {
		d.av.Remove(d.ghosts[0])
		d.ghosts = d.ghosts[1:]
	}
}

// refuse tells the peer of a pair that it is not taken in, which is its end.
func (d *domain) refuse(p *pair, side int, why error) {
	from := p.ends[1-side].address
	d.net.refuse(p, side)
	d.core.After(func() { d.log.Warn("loop: a peer cannot be taken in", "address", from, "error", why) })
}

// refuse ends a pair that one side cannot take in: for the other one it is gone.
func (n *network) refuse(p *pair, side int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pairs[p.ends] != p {
		return // one of them has closed
	}
	delete(n.pairs, p.ends)
	p.why = errFull
	p.down.Store(true)
	p.ends[1-side].domain.mail.put(event{kind: gone, pair: p, side: 1 - side, err: errFull})
}
