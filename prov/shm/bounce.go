package shm

import "sync/atomic"

const (
	blockLen   = 128 << 10 // bytes of a bounce block
	pairBlocks = 8         // blocks that one peer may hold
	pairEager  = 4         // of these, blocks with messages that it may not want yet: the others always come back
	blocksMade = 16        // at a time
)

// bounce is a block of our own arena through which bytes of private memory go to a peer.
type bounce struct {
	seg   uint32
	off   uint64
	eager bool // it holds a message that waits for a receive
	bytes []byte
	grown *atomic.Uint64 // of a message that grows: how many of its bytes are there
}

// takeBlock gets a block that the peer knows of; nil if it must wait for one.
func (p *pair) takeBlock(eager bool) *bounce {
	if p.blocks >= pairBlocks || eager && p.eager >= pairEager {
		return nil
	}
	d := p.d
	if len(d.bounces) == 0 && !d.makeBlocks() {
		return nil
	}
	b := d.bounces[len(d.bounces)-1]
	if int(b.seg) >= p.announced {
		p.announce()
		if int(b.seg) >= p.announced {
			return nil
		}
	}
	d.bounces = d.bounces[:len(d.bounces)-1]
	p.blocks++
	if b.eager = eager; eager {
		p.eager++
	}
	return b
}

// giveBlock takes a block back.
func (p *pair) giveBlock(b *bounce) {
	p.blocks--
	if b.eager {
		p.eager--
	}
	p.d.bounces = append(p.d.bounces, b)
}

// makeBlocks makes a segment of blocks, which is kept until the domain closes.
func (d *domain) makeBlocks() bool {
	file, err := newFile("bounce", blocksMade*blockLen, false, d.features)
	if err != nil {
		d.warnOnce("bounce", "no memory for large messages: they wait", err)
		return false
	}
	a := d.arena
	a.mu.Lock()
	s := a.addSegment(file, 0)
	a.mu.Unlock()
	for i := range blocksMade {
		b := file.m.Bytes()[i*blockLen:][:blockLen]
		d.bounces = append(d.bounces, &bounce{seg: s.index, off: uint64(i * blockLen), bytes: b, grown: word(b, grownOff)})
	}
	d.announce()
	return true
}
