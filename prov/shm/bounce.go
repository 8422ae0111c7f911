package shm

import (
	"slices"
	"sync/atomic"
)

const (
	blockLen   = 128 << 10 // bytes of a bounce block
	pairBlocks = 8         // blocks that one peer may hold
	pairEager  = 4         // of these, blocks with messages that it may not want yet: the others always come back
	blocksMade = 16        // at a time, which are a segment
	idleBlocks = 128       // kept when none is out: as many as 16 peers hold
)

// bounce is a block of our own arena through which bytes of private memory go to a peer.
type bounce struct {
	set   *bounces
	seg   uint32
	off   uint64
	eager bool // it holds a message that waits for a receive
	bytes []byte
	grown *atomic.Uint64 // of a message that grows: how many of its bytes are there
}

// bounces are the blocks of a segment.
type bounces struct{ free []*bounce }

// whole says whether no block is out.
func (s *bounces) whole() bool { return len(s.free) == blocksMade }

// takeBlock gets a block that the peer knows of; nil if it must wait for one.
func (p *pair) takeBlock(eager bool) *bounce {
	if p.blocks >= pairBlocks || eager && p.eager >= pairEager {
		return nil
	}
	d := p.d
	s := d.roomiest()
	if s == nil {
		return nil
	}
	b := s.free[len(s.free)-1]
	if int(b.seg) >= p.announced {
		p.announce()
		if int(b.seg) >= p.announced {
			return nil
		}
	}
	s.free = s.free[:len(s.free)-1]
	d.blocks++
	p.blocks++
	if b.eager = eager; eager {
		p.eager++
	}
	return b
}

// roomiest is the first segment of bounce blocks that has one, so that the last ones get empty; a new one if there is none.
func (d *domain) roomiest() *bounces {
	for _, s := range d.bounces {
		if len(s.free) > 0 {
			return s
		}
	}
	return d.makeBlocks()
}

// giveBlock takes a block back.
func (p *pair) giveBlock(b *bounce) {
	p.blocks--
	if b.eager {
		p.eager--
	}
	d := p.d
	d.blocks--
	if b.set.free = append(b.set.free, b); b.set.whole() {
		d.trimBlocks()
	}
}

// makeBlocks makes a segment of blocks; nil if there is no memory for one.
func (d *domain) makeBlocks() *bounces {
	file, err := newFile("bounce", blocksMade*blockLen, false, d.features)
	if err != nil {
		d.warnOnce("bounce", "no memory for large messages: they wait", err)
		return nil
	}
	a := d.arena
	a.mu.Lock()
	index := a.addSegment(file, 0).index
	a.mu.Unlock()
	s := new(bounces)
	for i := range blocksMade {
		b := file.m.Bytes()[i*blockLen:][:blockLen]
		s.free = append(s.free, &bounce{set: s, seg: index, off: uint64(i * blockLen), bytes: b, grown: word(b, grownOff)})
	}
	d.bounces = append(d.bounces, s)
	d.announce()
	return s
}

// trimBlocks gives segments of blocks back by the rule of trim.go: those of which no block is out, beyond as many blocks as are
// out and beyond idleBlocks.
func (d *domain) trimBlocks() {
	keep := max(d.blocks, idleBlocks)
	d.bounces = slices.DeleteFunc(d.bounces, func(s *bounces) bool {
		if !s.whole() {
			return false
		}
		keep -= blocksMade
		return keep < 0 && d.dropBlocks(s)
	})
}

// dropBlocks gives a segment of blocks back, unless the domain is closing.
func (d *domain) dropBlocks(s *bounces) bool {
	a := d.arena
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return false
	}
	f := a.drop(s.free[0].seg)
	a.mu.Unlock()
	d.giveBack([]*file{f})
	return true
}
