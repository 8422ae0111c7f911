package shm

import (
	"errors"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/shmem"
)

// How much one poll does for one pair, so that others get their turn.
const (
	dataRecords    = 64
	controlRecords = 64
	copyBytes      = 256 << 10
	drainRounds    = 4
	socketPolls    = 256 // one poll in so many looks at descriptors,
	recordPolls    = 4   // where a message counts for so many: a program may do much for each
)

// Poll moves all that can move now. It is called by the core with the lock held. Descriptors come after the rings and, since to look
// at them costs calls of the kernel, only when those are empty, or now and then: who was woken for a message gets it first.
func (d *domain) Poll() bool {
	d.ticks++
	if len(d.restart) > 0 {
		d.resume()
	}
	moved := false
	for i := 0; i < len(d.pairs); i++ {
		p := d.pairs[i]
		if p.quiet() {
			continue
		}
		if p.poll() {
			moved = true
		}
		if i < len(d.pairs) && d.pairs[i] != p {
			i-- // it ended
		}
	}
	// While it is armed, a program's own event loop may have seen a bell, and waits for the next.
	if d.news.Load() && !moved || d.epoch&1 == 1 || d.ticks >= socketPolls {
		d.ticks = 0
		d.news.Store(false)
		moved = d.poll() || moved
		moved = d.mourn() || moved
		d.heed()
	}
	if len(d.dirty) > 0 {
		d.Flush()
	}
	if len(d.dead) > 0 || d.gone {
		d.reap()
	}
	return moved
}

// quiet says that poll would find nothing to do, as mostly when a program polls.
func (p *pair) quiet() bool {
	return p.state == pairUp && p.dataIn.Empty() && p.controlIn.Empty() && p.lostWhy == nil && !p.busy() && !p.data.Pending() && !p.control.Pending()
}

// Flush publishes what posts have left for later.
func (d *domain) Flush() {
	for i, p := range d.dirty {
		d.dirty[i] = nil
		p.dirty = false
		p.publish()
	}
	d.dirty = d.dirty[:0]
}

// reap releases pairs that have ended. Nobody is in the middle of anything of them.
func (d *domain) reap() {
	for len(d.dead) > 0 {
		p := d.dead[len(d.dead)-1]
		d.dead = d.dead[:len(d.dead)-1]
		p.release()
		d.forget(p)
	}
	if d.gone {
		d.gone = false
		for _, ep := range d.eps {
			ep.failDirected()
		}
	}
}

// poll moves what can move in the pair.
func (p *pair) poll() bool {
	switch p.state {
	case pairUp:
	case pairDraining:
		moved := p.pushCopies()
		return p.drain() || moved
	default:
		return false
	}
	moved := false
	if !p.controlIn.Empty() {
		moved = p.pollControl()
	}
	if p.state == pairUp && !p.dataIn.Empty() {
		moved = p.pollData() || moved
	}
	if p.state == pairUp && p.lostWhy != nil {
		p.lost(p.lostWhy)
		return true
	}
	if p.state == pairUp && p.busy() {
		moved = p.push() || moved
	}
	if p.state == pairUp {
		p.publish()
	}
	return moved
}

// busy says whether there is anything to push.
func (p *pair) busy() bool {
	return p.stuck() || p.copies.len() > 0
}

// stuck says whether there is anything that the peer must make room for.
func (p *pair) stuck() bool {
	return p.flying.len()|p.replies.len()|p.messages.len()|p.notes.len()|p.rmas.len()|p.streams.len() != 0
}

// push starts and goes on with what waits for room, for blocks, or for its turn.
func (p *pair) push() bool {
	moved := p.land()
	for {
		again := p.pushReplies()
		again = p.pushCopies() || again
		again = p.pushRMAs() || again
		again = p.pushStreams() || again
		again = p.state == pairUp && p.pushMessages() || again
		if p.state != pairUp {
			return true
		}
		moved = moved || again
		if again && p.rmas.len() > 0 {
			p.d.core.Later() // long copies are done in parts, and what has ended may be what a fence waits for
		}
		// What is stuck now goes on when the peer has taken something, of which it tells us only if it knows that we
		// wait. It may have taken it just before we said so.
		if !p.setWants() {
			return moved
		}
		p.land()
	}
}

// setWants tells the peer whether we wait for it to take something, and says whether that is new.
func (p *pair) setWants() bool {
	want := uint64(0)
	if p.stuck() {
		want = 1
	}
	if want == p.wanting {
		return false
	}
	p.wanting = want
	p.mine.wants.Store(want)
	return want == 1
}

// publish shows the peer what was committed, the control lane first since the data lane refers to it, and rings if the
// peer sleeps.
func (p *pair) publish() {
	if p.state != pairUp {
		return
	}
	c := p.control.Publish()
	if p.data.Publish() || c {
		p.ring()
	}
}

// later has the pair published with the next one, or by the next poll.
func (p *pair) later() {
	if !p.dirty {
		p.dirty = true
		p.d.dirty = append(p.d.dirty, p)
	}
}

// ring wakes the peer if it sleeps, once each time.
func (p *pair) ring() {
	epoch := p.home.armed.Load()
	if epoch&1 == 0 || epoch == p.rung {
		return
	}
	p.rung = epoch
	p.d.stats.Rings++
	if p.peerBell.FD != nil {
		_ = p.peerBell.Ring()
		return
	}
	if p.self {
		_, _ = p.selfBell[0].Send([]byte{1})
		return
	}
	_, _ = p.sock.Send(seal(appendHead(nil, kindBell), 0))
}

// fed tells the peer that we have taken something, if it waits for that.
func (p *pair) fed() {
	if p.theirs.wants.Load() != 0 {
		p.ring()
	}
}

// pollData takes messages. False if there are none, or if the first one has to wait for something of this side.
func (p *pair) pollData() bool {
	if p.reading || p.growths > 0 {
		return false // we are called from within, or the message before is not there yet
	}
	p.reading = true
	moved := p.readData()
	p.reading = false
	return moved
}

// readData tells the peer what was taken a quarter of the lane later: a peer for whom there is no room has that much in it that is
// to be taken still.
func (p *pair) readData() bool {
	moved, matched, before := false, false, p.d.stats.BytesRecv
	for range dataRecords {
		if p.replies.len() >= maxAsked { // it has to take them first
			break
		}
		if p.d.stats.BytesRecv-before >= copyBytes {
			break
		}
		b, err := p.dataIn.Peek()
		if err != nil {
			p.breach(err)
			return true
		}
		if b == nil {
			break
		}
		p.d.ticks += recordPolls
		if p.takeShort(b) {
			moved, matched = true, true
			if p.dataIn.Advance() {
				p.fed()
			}
			continue
		}
		if matched && !p.d.looks && p.unexpected(b) {
			break // the program gets those that it has waited for first, and may post receives for the others, which saves a copy
		}
		r := &p.d.record
		if err := r.parse(b, false); err != nil {
			p.breach(err)
			return true
		}
		if r.flags&recAfter != 0 {
			if there, went := p.reach(r.after); !there {
				moved = moved || went
				break
			}
		}
		if r.op == opMove {
			if err := p.laneMoved(); err != nil {
				p.breach(err)
				return true
			}
			moved = true
			continue
		}
		ok := p.accept(r)
		if p.growths > 0 {
			if p.dataIn.Advance() {
				p.fed()
			}
			return true
		}
		if p.state != pairUp && p.state != pairDraining {
			return true
		}
		if !ok {
			p.d.stuck = true
			break
		}
		moved = true
		if p.dataIn.Advance() {
			p.fed()
		}
	}
	return moved
}

// reach reads the control lane up to a record of it, which the peer has published before what refers to it. If that takes
// more than one turn it says that it has moved.
func (p *pair) reach(after uint64) (there, moved bool) {
	if int64(p.controlRead-after) >= 0 {
		return true, false
	}
	if after-p.controlRead > controlSize/recordAlign { // more than there can be
		p.breach(errRecord)
		return false, true
	}
	moved = p.pollControl()
	switch {
	case p.state != pairUp && p.state != pairDraining:
		return false, true
	case int64(p.controlRead-after) >= 0:
		return true, moved
	case moved:
		return false, true
	case p.state == pairDraining:
		return !p.dying(), false // all that was there has been read; of a dying one more may come
	}
	p.breach(errRecord)
	return false, true
}

// pollControl takes control records. They never wait.
func (p *pair) pollControl() bool {
	if p.obeying {
		return false
	}
	p.obeying = true
	moved := p.readControl()
	p.obeying = false
	return moved
}

func (p *pair) readControl() bool {
	n, chunks, before := 0, false, p.d.chunked
	for ; n < controlRecords; n++ {
		if p.d.chunked-before >= copyBytes {
			break
		}
		b, err := p.controlIn.Peek()
		if err != nil {
			p.breach(err)
			return true
		}
		if b == nil {
			break
		}
		r := &p.d.controlRecord
		if err := r.parse(b, true); err != nil {
			p.breach(err)
			return true
		}
		chunks = chunks || r.op == opChunk
		if p.state == pairDraining {
			p.obeyLate(r)
		} else {
			err = p.obey(r)
		}
		if p.state == pairEnded {
			return true
		}
		if err != nil {
			p.breach(err)
			return true
		}
		p.controlRead++
		if p.controlIn.Advance() {
			p.fed()
		}
	}
	if chunks && p.state == pairUp { // the peer waits for the blocks; a dying one would take more for done
		p.mine.controlDone.Store(p.controlRead)
		p.fed()
	}
	return n > 0
}

// reply is a control record that waits for room.
type reply struct {
	record
	bytes []byte // pooled; its payload
}

// say sends a control record, now or when there is room. The payload is copied.
func (p *pair) say(r *record) {
	if p.replies.len() == 0 && p.write(r) {
		return
	}
	kept := int(min(p.ep.unexpected/keepCost, 1<<30)) // messages that wait here, each of which is answered once
	if p.replies.len() > 4*maxAsked+kept || p.saying > maxAsked*maxAtomic+maxInline {
		p.breach(errors.New("it asks without taking the answers"))
		return
	}
	w := reply{record: *r}
	if len(r.payload) > 0 {
		w.bytes = p.d.bufs.Get(len(r.payload))
		copy(w.bytes, r.payload)
		w.payload = w.bytes
		p.saying += len(w.bytes)
	}
	p.replies.push(w)
	if p.setWants() { // now, since there is not always a push to follow
		p.d.core.Later()
	}
}

// write puts a control record if there is room.
func (p *pair) write(r *record) bool {
	b, err := p.control.Reserve(recordLen(r.op, r.flags) + len(r.payload))
	if err != nil {
		return p.noRoom(err)
	}
	r.put(b)
	p.control.Commit()
	p.controlSent++
	return true
}

// noRoom is what a full lane is; anything else is a peer's breach. It is false.
func (p *pair) noRoom(err error) bool {
	if !errors.Is(err, shmem.ErrFull) {
		p.breach(err)
	}
	return false
}

// said lets go of a reply that waits no more.
func (p *pair) said(w reply) {
	if w.bytes != nil {
		p.saying -= len(w.bytes)
		p.d.bufs.Put(w.bytes)
	}
}

func (p *pair) pushReplies() bool {
	moved := false
	for p.state == pairUp && p.replies.len() > 0 && p.write(&p.replies.front().record) {
		p.said(p.replies.pop())
		moved = true
	}
	return moved
}

// Arm has peers ring from now on. True means that something had come.
func (d *domain) Arm() bool {
	d.epoch++
	d.home.armed.Store(d.epoch)
	d.news.Store(true)
	return d.Poll()
}

// Disarm ends Arm.
func (d *domain) Disarm() {
	d.epoch++
	d.home.armed.Store(d.epoch)
}

// Park sleeps until a descriptor is ready, or Unpark.
func (d *domain) Park() {
	_ = d.poller.Park(d.background, nil)
	d.news.Store(true)
}

// Unpark ends Park.
func (d *domain) Unpark() { d.poller.Kick() }

// Descriptor is the domain's descriptor of all that can wake it.
func (d *domain) Descriptor() (int, error) {
	if d.closed {
		return -1, provider.ErrClosed
	}
	return d.poller.Fd(), nil
}
