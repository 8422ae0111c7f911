package shm

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
)

// A peer that dies is noticed twice: early, by its word of life, and for good, by the end of its socket. In between the
// kernel frees its memory. Its threads end one after the other, so one that does not own the word may write for some microseconds
// after the first: what it wrote then is good, as all that was written before the end, and is taken. But nothing is acknowledged
// any more: what waits for us there is not told that it has been done.

// mourn looks at the words of life of all peers, and says whether one has died.
func (d *domain) mourn() bool {
	found := false
	for i := 0; i < len(d.pairs); i++ {
		p := d.pairs[i]
		if p.state == pairUp && p.life.died() {
			p.noticed()
			found = true
		}
		if i < len(d.pairs) && d.pairs[i] != p {
			i-- // it ended
		}
	}
	return found
}

// noticed is the early end: all that waits for the peer fails now. The pair ends with the socket.
func (p *pair) noticed() {
	p.catchUp() // what it said before; this may be the end already
	if p.state != pairUp || p.lostWhy != nil || p.reading || p.obeying {
		return
	}
	// Whoever lives nevertheless, as a process whose threads are killed one by one, learns that it is taken for dead.
	_, _ = p.sock.Send(refusal{code: refuseClosed, text: "your word of life says that you have died"}.Append(nil))
	p.obeyRest()
	if p.state == pairUp { // else it broke the protocol
		p.early = true
		p.expire(fmt.Errorf("%w: it has died", provider.ErrPeerGone))
	}
}

// expire fails what waits for the peer, and takes what it has left.
func (p *pair) expire(why error) {
	p.state = pairDraining
	p.jam(false)
	p.d.bury(p.peer, why)
	p.d.outlive(p)
	p.failAll(why)
	p.dropKept(why, opOffer) // their bytes will not come
	p.drain()
}

// dying says whether the peer was noticed early, and its socket has not ended.
func (p *pair) dying() bool { return p.state == pairDraining && p.early && !p.parted }

// spent says whether nothing is left of what the peer has sent.
func (p *pair) spent() bool {
	return p.state == pairDraining && p.dataIn.Empty() && p.copies.len() == 0
}

// left says whether the endpoint may still get messages of the peer. Those that a dying one sends in its last moment are not waited for.
func (p *peer) left(ep *endpoint) bool {
	q := p.pair(ep)
	return q != nil && !q.spent()
}

// buried is the end of the socket of a peer that was noticed before.
func (p *pair) buried() {
	p.d.sweep(p.peer)
	if !p.reading && !p.obeying { // else who reads goes on with it
		p.drain()
	}
}

// obeyLate does what a control record of a peer says that is taken for dead: only writes count, since a message may
// come after them.
func (p *pair) obeyLate(r *record) {
	switch r.op {
	case opWrite:
		if r.flags&recWhole != 0 {
			_ = p.serveWrite(r)
		}
	case opChunk:
		if o := p.d.ops.Get(r.context); o != nil && o.pair == p && o.role == roleServe {
			_ = p.chunk(r)
		}
	}
}
