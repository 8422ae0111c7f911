package shm

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// For the program a pair ends at once. But each side may be in the middle of a copy from or to the other's blocks, or hold a view, and
// the other must not use these anew. So a pair that has ended parts: a side says that it has ended the pair, shuts the socket in its
// direction when it uses nothing of the other's any more, and heeds the other's hazards until it reads that end. A process that dies does
// the same, by the kernel.
//
// What a message has in the sender's memory has no hazard: the sender keeps it until it is acknowledged, or the pair ends. So who ends a pair first
// writes that into its lanes, and who has copied a message looks there before he believes it (ended). Who dies writes nothing more, so what he
// has left is good.

// maxParting is how many pairs of a domain part at a time: each holds a descriptor, and a peer that means harm never comes to an end. Beyond it
// the first one that uses nothing, else the first one, is taken for gone.
const maxParting = 256

// ended says whether the peer has ended the pair: then what was copied out of its memory until now may not be what it had sent.
func (p *pair) ended() bool {
	p.copied.Store(0) // no load after this store, and none of the copy before it, changes places with it
	return p.theirs.ended.Load() != 0
}

// gone is why a message's bytes cannot be had any more.
func (p *pair) gone() error {
	if p.peer.why != nil {
		return p.peer.why
	}
	return fmt.Errorf("%w: it has ended the connection", provider.ErrPeerGone)
}

// parts goes on with the parting of a pair that has ended. It is called when something has changed for it.
func (p *pair) parts() {
	if p.state != pairEnded || p.sock.FD == nil && !p.self {
		return
	}
	if p.word != nil {
		_, err := p.sock.Send(p.word)
		if errors.Is(err, sys.ErrWouldBlock) && p.token != 0 {
			p.jam(true)
			p.linger()
			return
		}
		p.word = nil
	}
	p.jam(false)
	switch {
	case p.users > 0:
	case p.self:
		p.away()
	case !p.shut:
		p.shut = true
		_ = p.sock.ShutdownSend()
	}
	if p.users > 0 || !p.parted {
		p.linger()
		return
	}
	if p.sock.FD != nil {
		_ = p.sock.Close()
	}
	p.d.dead = append(p.d.dead, p)
	p.d.core.Later()
}

// jam says whether the socket is to be written when there is room.
func (p *pair) jam(on bool) {
	if on != p.jammed && p.token != 0 {
		p.d.wantWrite(p.sock.FD, p.token, on)
	}
	p.jammed = on
}

// linger has the pair wait for the other side's end.
func (p *pair) linger() {
	d := p.d
	if p.parted || p.lingers {
		return
	}
	if len(d.parting) >= maxParting {
		q := d.parting[0]
		for _, r := range d.parting {
			if !r.theirs.usesAny() {
				q = r
				break
			}
		}
		q.away()
		q.parts()
	}
	p.lingers = true
	d.parting = append(d.parting, p)
}

// away says that the peer uses nothing of ours any more.
func (p *pair) away() {
	if p.parted {
		return
	}
	p.parted = true
	p.d.unwatch(p.sock.FD, p.token)
	p.token = 0
	if p.theirs.m != nil {
		p.d.arena.unwatch(&p.theirs)
		p.d.shed()
	}
	if p.lingers {
		p.lingers = false
		p.d.parting = without(p.d.parting, p)
	}
}

// usesAny says whether the peer has any hazard.
func (l *foreignLanes) usesAny() bool {
	n := min(l.inUse.Load(), hazardSlots)
	b := l.m.Bytes()
	for i := range int(n) {
		if word(b, laneHazards+8*i).Load() != 0 {
			return true
		}
	}
	return false
}
