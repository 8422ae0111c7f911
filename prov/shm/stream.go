package shm

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
)

// stream is bytes on their way to the peer: of a message or a write of ours (op), or of memory that the peer
// reads (mem).
type stream struct {
	op   uint64 // id, so that an operation that has ended is not sent
	mem  *memory
	from uint64 // position in the op's buffer, or in the memory
	base uint64 // where that is at the receiver
	left uint64
	to   uint64 // the receiver's context
}

// flight is something of ours that the peer has when it has read so many control records.
type flight struct {
	count uint64
	block *bounce // free then
	op    uint64  // id of what ends then
}

// stream starts to send bytes. What a peer may ask for at a time has a bound.
func (p *pair) stream(s stream) error {
	if p.streams.len() > 2*maxAsked+p.ep.depth {
		return fmt.Errorf("more than %d reads at a time", maxAsked)
	}
	p.streams.push(s)
	p.pushStreams()
	return nil
}

// pushStreams sends parts, one stream after the other: what the receiver has to copy, it copies in order.
func (p *pair) pushStreams() bool {
	moved, budget := false, copyBytes
	for p.state == pairUp && p.streams.len() > 0 && p.replies.len() == 0 && budget > 0 {
		n, ok := p.part(p.streams.front())
		if !ok {
			break
		}
		moved = true
		budget -= n
		if p.state == pairUp && p.streams.front().left == 0 {
			p.streams.pop()
		}
	}
	if budget <= 0 && p.streams.len() > 0 {
		p.d.core.Later()
	}
	return moved
}

// part sends the next part of a stream; false if there is no room.
func (p *pair) part(s *stream) (int, bool) {
	n := min(s.left, blockLen)
	r := record{op: opChunk, context: s.to, words: [3]uint64{s.base}}
	var block *bounce
	if n > maxInline {
		if block = p.takeBlock(false); block == nil {
			if p.blocks > p.eager {
				return 0, false
			}
			n = maxInline // no memory for blocks: slower, but it goes on
		}
	}
	if n == s.left {
		r.flags = recLast
	}
	if block != nil {
		r.words[1], r.words[2] = place(block.seg, int(n)), block.off
	} else {
		r.words[1] = place(noSegment, 0)
	}
	size := recordLen(r.op, r.flags)
	if block == nil {
		size += int(n)
	}
	b, err := p.control.Reserve(size)
	if err != nil {
		if block != nil {
			p.giveBlock(block)
		}
		return 0, p.noRoom(err)
	}
	at := r.put(b)
	dst := b[at:]
	if block != nil {
		dst = block.bytes[:n]
	}
	if status := p.gather(s, dst); status != statusOK { // the memory was closed
		if block != nil {
			p.giveBlock(block)
		}
		s.left = 0
		p.say(&record{op: opDone, status: status, context: s.to})
		return 0, true
	}
	p.control.Commit()
	p.controlSent++
	s.from, s.base, s.left = s.from+n, s.base+n, s.left-n
	p.fly(s, block)
	return int(n), true
}

// gather copies the bytes that are next.
func (p *pair) gather(s *stream, dst []byte) uint16 {
	if s.op != 0 {
		o := p.d.ops.Get(s.op)
		if o == nil {
			return statusClosed
		}
		o.local.Gather(s.from, dst)
		return statusOK
	}
	b, status := s.mem.slice(s.from, uint64(len(dst)), provider.PeerRead)
	copy(dst, b)
	return status
}

// fly notes what is free, and what has ended, when the peer has taken the part.
func (p *pair) fly(s *stream, block *bounce) {
	f := flight{count: p.controlSent, block: block}
	if o := p.d.ops.Get(s.op); o != nil && o.kind == provider.WriteDone {
		p.wroteAt = p.controlSent
		if s.left == 0 {
			p.pieceOut(o)
		}
	} else if o != nil && s.left == 0 {
		f.op = o.id
	}
	if f.block != nil || f.op != 0 {
		p.flying.push(f)
	}
}

// land takes note of what the peer has taken.
func (p *pair) land() bool {
	if p.flying.len() == 0 {
		return false
	}
	moved := false
	done := p.theirs.controlDone.Load()
	if int64(p.controlSent-done) < 0 {
		p.breach(fmt.Errorf("it has read more than there was"))
		return true
	}
	for p.flying.len() > 0 && int64(done-p.flying.front().count) >= 0 {
		f := p.flying.pop()
		if f.block != nil {
			p.giveBlock(f.block)
		}
		if o := p.d.ops.Get(f.op); o != nil {
			p.d.finish(o, nil)
		}
		moved = true
	}
	return moved
}
