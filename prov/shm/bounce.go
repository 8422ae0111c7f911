package shm

const (
	blockLen   = 128 << 10 // bytes of a bounce block
	pairBlocks = 8         // blocks that one peer may hold
	blocksMade = 16        // at a time
)

// bounce is a block of our own arena through which bytes of private memory go to a peer.
type bounce struct {
	seg   uint32
	off   uint64
	bytes []byte
}

// takeBlock gets a block that the peer knows of; nil if it must wait for one.
func (p *pair) takeBlock() *bounce {
	if p.blocks >= pairBlocks {
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
	return b
}

// giveBlock takes a block back.
func (p *pair) giveBlock(b *bounce) {
	p.blocks--
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
		d.bounces = append(d.bounces, &bounce{s.index, uint64(i * blockLen), file.m.Bytes()[i*blockLen:][:blockLen]})
	}
	d.announce()
	return true
}
