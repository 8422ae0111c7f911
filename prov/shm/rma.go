package shm

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/shmem"
)

const (
	maxRemotes  = 16       // remote segments of an operation
	maxSegmentV = 16       // local segments
	lockedCopy  = 16 << 10 // longer copies run outside of the lock
	maxAsked    = 1024     // requests to a peer that it has not answered: it keeps something for each
	cutEvery    = 4 << 20  // and stop after so much at most when the pair ends
)

// Read reads a peer's memory.
func (ep *endpoint) Read(o provider.Op) error { return ep.postRMA(provider.ReadDone, &o) }

// Write writes a peer's memory.
func (ep *endpoint) Write(o provider.Op) error { return ep.postRMA(provider.WriteDone, &o) }

func (ep *endpoint) postRMA(kind provider.Kind, o *provider.Op) error {
	d := ep.d
	d.core.Lock()
	err := ep.rma(kind, o)
	d.core.Unlock()
	if err != nil || d.tracer.Post != nil {
		return d.posted(kind, o, err)
	}
	return nil
}

func (ep *endpoint) rma(kind provider.Kind, o *provider.Op) error {
	p, err := ep.begin(kind, o)
	if err != nil {
		return err
	}
	n := p.newOp(kind, o)
	if kind == provider.WriteDone {
		p.writing = append(p.writing, n)
	}
	if !p.copyNow(n) {
		p.rmas.push(n)
		p.start()
	}
	p.out(o.Flags)
	return nil
}

// started says whether all pieces of an RMA were started.
func (o *op) started() bool {
	if len(o.remotes) == 0 {
		return o.piece > 0
	}
	return o.piece == len(o.remotes)
}

// next is the remote piece that is to be started.
func (o *op) following() provider.RemoteSegment {
	if len(o.remotes) == 0 {
		return provider.RemoteSegment{Key: o.key, Offset: o.offset, Len: o.length}
	}
	return o.remotes[o.piece]
}

// step goes on to the next piece.
func (o *op) step() {
	o.start += o.following().Len
	o.piece++
	o.within = 0
}

// spot is a place in a peer's arena, held by a hazard and by the segment's count of users.
type spot struct {
	key   provider.Key
	seg   *foreignSegment
	bytes []byte
}

// What hold finds.
const (
	foundSpot = iota
	foundElse // it is no arena block that we can get at: the peer serves it
	foundError
	foundLater // the segment's descriptor is to come
	foundDone  // what was to be done with it is done
)

// hold finds a remote piece in the peer's arena and keeps it there. The caller drops it.
func (p *pair) hold(s provider.RemoteSegment, kind provider.Kind) (spot, int, error) {
	if !p.hazards.take(s.Key) {
		return spot{}, foundError, fmt.Errorf("more than %d blocks of the peer in use: %w", hazardSlots, provider.ErrNoMemory)
	}
	b, ok := p.home.find(s.Key)
	need := provider.PeerRead
	if kind != provider.ReadDone {
		need = provider.PeerWrite
	}
	switch {
	case !ok:
		p.letGo(s.Key)
		if p.hungUp() { // it has closed, and its memory with it
			return spot{}, foundLater, nil
		}
		return spot{}, foundError, fmt.Errorf("no memory of the peer has this key, or it was closed: %w", provider.ErrKey)
	case !b.access.Has(need):
		p.letGo(s.Key)
		return spot{}, foundError, fmt.Errorf("the memory was registered without this access: %w", provider.ErrKey)
	case s.Offset > b.len || s.Len > b.len-s.Offset:
		p.letGo(s.Key)
		return spot{}, foundError, fmt.Errorf("%d bytes from %d of %d: outside of the memory: %w", s.Len, s.Offset, b.len, provider.ErrKey)
	}
	if b.seg == noSegment || !p.sees(b.access) {
		p.letGo(s.Key)
		return spot{}, foundElse, nil
	}
	seg, write := p.segment(b.seg), kind != provider.ReadDone
	switch {
	case p.state != pairUp:
		return spot{}, foundLater, nil // it has ended, and all with it
	case write && (seg != nil && seg.w == nil || p.uid != p.d.uid):
		p.letGo(s.Key)
		return spot{}, foundElse, nil
	case seg == nil:
		p.letGo(s.Key)
		return spot{}, foundLater, nil
	}
	bytes := cut(seg.m.Bytes(), b.off, b.len)
	if bytes == nil {
		p.letGo(s.Key)
		p.breach(fmt.Errorf("%w: block of %d bytes at %d of segment %d", errRecord, b.len, b.off, b.seg))
		return spot{}, foundLater, nil
	}
	if bytes = bytes[s.Offset : s.Offset+s.Len]; write {
		bytes = seg.writable(b.off+s.Offset, s.Len)
	}
	seg.users++
	p.users++
	return spot{s.Key, seg, bytes}, foundSpot, nil
}

// drop ends hold.
func (p *pair) drop(s spot) {
	p.letGo(s.key)
	s.seg.users--
	s.seg.unmap()
	p.users--
	p.parts()
}

// move copies between the operation's buffer from pos on and remote bytes.
func (o *op) move(pos uint64, remote []byte) {
	if o.kind == provider.ReadDone {
		o.local.Scatter(pos, remote)
	} else {
		o.local.Gather(pos, remote)
	}
}

// copyNow does an operation on arena memory at once in the poster's goroutine, if nothing is before it. Copies of some
// length run outside of the lock.
func (p *pair) copyNow(o *op) bool {
	if p.state != pairUp || p.rmas.len() > 0 || o.flags.Has(provider.Fence) && p.live.head != o {
		return false
	}
	for !o.started() && o.err == nil && p.state == pairUp {
		s, found, err := p.hold(o.following(), o.kind)
		if found == foundError {
			o.err = err
			break
		}
		if found == foundElse {
			found = p.crossNow(o)
		}
		switch found {
		case foundError:
			continue
		case foundDone:
			o.step()
			continue
		case foundSpot:
		default:
			return p.state != pairUp // ended: so is the operation
		}
		if len(s.bytes) <= lockedCopy {
			o.move(o.start, s.bytes)
		} else {
			p.copyUnlocked(o, s.bytes)
		}
		p.drop(s)
		o.step()
	}
	o.role = roleMoving
	if p.state != pairUp && o.err == nil && !o.started() {
		o.err = provider.ErrPeerGone
	}
	if p.state == pairUp || o.list != nil {
		p.settle(o)
		p.start()
	}
	return true
}

// copyUnlocked copies without the lock. What ends the pair meanwhile leaves the operation to us.
func (p *pair) copyUnlocked(o *op, remote []byte) {
	d := p.d
	o.role = roleCopying
	p.ep.copying++
	d.core.Unlock()
	for at, n := uint64(0), uint64(len(remote)); at < n && !p.cut.Load(); at += cutEvery {
		o.move(o.start+at, remote[at:min(at+cutEvery, n)])
	}
	d.core.Lock()
	o.role = roleQueued
	p.ep.copyDone()
}

// copyDone says that a copy outside of the lock has ended.
func (ep *endpoint) copyDone() {
	if ep.copying--; ep.copying == 0 && ep.closed {
		ep.d.copied.Broadcast()
	}
}

// written says that a write's bytes are all where the peer sees them before what is published now.
func (p *pair) written(o *op) {
	if o.kind != provider.WriteDone {
		return
	}
	for i, w := range p.writing {
		if w == o {
			p.writing = append(p.writing[:i], p.writing[i+1:]...)
			return
		}
	}
}

// pieceOut says that all bytes of a piece of a write are in the lane.
func (p *pair) pieceOut(o *op) {
	if o.unsent--; o.unsent == 0 && o.started() {
		p.written(o)
	}
}

// pushRMAs starts reads, writes and atomics, in order.
func (p *pair) pushRMAs() bool {
	moved, budget := false, uint64(copyBytes)
	for p.state == pairUp && p.rmas.len() > 0 && budget > 0 {
		o := *p.rmas.front()
		if o.flags.Has(provider.Fence) && p.live.head != o {
			break
		}
		ok := p.startPieces(o, &budget)
		if p.state != pairUp {
			return true
		}
		if !ok && o.err == nil {
			moved = moved || budget < copyBytes // else nobody comes to go on with it
			break
		}
		p.rmas.pop()
		o.role = roleMoving
		p.settle(o)
		moved = true
	}
	return moved || budget < copyBytes
}

// startPieces starts what is left of an operation; false if it has to wait, or failed.
func (p *pair) startPieces(o *op, budget *uint64) bool {
	if o.kind == provider.AtomicDone {
		return p.startAtomic(o)
	}
	for !o.started() && o.err == nil {
		piece := o.following()
		s, found, err := p.hold(piece, o.kind)
		switch found {
		case foundError:
			o.err = err
			return false
		case foundLater:
			return false
		case foundElse:
			switch found = p.crossPart(o, piece, budget); {
			case found == foundDone:
				o.step()
			case found == foundLater || found == foundElse && !p.ask(o, piece):
				return false
			}
			continue
		}
		n := min(uint64(len(s.bytes))-o.within, *budget)
		o.move(o.start+o.within, s.bytes[o.within:o.within+n])
		o.within += n
		*budget -= n
		whole := o.within == uint64(len(s.bytes))
		p.drop(s)
		if !whole {
			return false
		}
		o.step()
	}
	return o.err == nil
}

// ask has the peer serve a piece; false if there is no room for the request.
func (p *pair) ask(o *op, s provider.RemoteSegment) bool {
	if p.replies.len() > 0 || p.asked >= maxAsked {
		return false
	}
	r := record{op: opRead, flags: recData, context: o.id, words: [3]uint64{uint64(s.Key), s.Offset, s.Len}, data: o.start}
	whole := false
	if o.kind == provider.WriteDone {
		r.op = opWrite
		if whole = s.Len <= maxInline; whole {
			r.flags |= recWhole
		}
	}
	size := recordLen(r.op, r.flags)
	if whole {
		size += int(s.Len)
	}
	b, err := p.control.Reserve(size)
	if err != nil {
		return p.noRoom(err)
	}
	n := r.put(b)
	if whole {
		o.local.Gather(o.start, b[n:])
	}
	p.control.Commit()
	p.controlSent++
	o.pending++
	p.asked++
	o.step()
	if o.kind == provider.WriteDone {
		p.wroteAt = p.controlSent
		o.unsent++
		if whole {
			p.pieceOut(o)
		}
	}
	return true
}

// waitCopies waits until nobody copies for the endpoint any more. It lets the lock go.
func (d *domain) waitCopies(ep *endpoint) {
	for ep.copying > 0 {
		d.copied.Wait()
	}
}

// position is where b begins in the memory, if it lies inside.
func (m *memory) position(b []byte) (uint64, bool) { return shmem.Offset(m.bytes, b) }
