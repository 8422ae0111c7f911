package carrier

import (
	"errors"
	"sync"

	"github.com/weft-fabric/weft/fabric"
)

// Whoever sends hands its records to the fabric as far as that takes them: a post never
// waits for the peer. What is left is handed over by who has the turn, when the queue
// says that there is room or that the peer has taken something.
//
// Records are copied, so that their memory is free whatever becomes of the peer: small
// units by the post itself, the others into a slot, which the fabric has until the peer
// has taken it.

const (
	maxInject = 4 << 10 // the longest unit that a post copies, in bytes, where the provider takes so much
	maxOut    = 32      // slots that the peer of a link has not taken
	keepSlots = 64      // slots that are kept for the next use
)

// unitWriting is of a link's sending; the link's mu guards it.
type unitWriting struct {
	seq     uint32 // of the next unit
	out     int    // slots that are with the fabric
	mute    bool   // the peer is gone: its end is told when all that it has sent was received
	held    bool   // the peer has asked for nothing more until it says so
	holds   bool   // nothing is wanted of the peer
	told    bool   // what it was told last
	stalled bool   // who has the turn will go on
	more    bool   // the last unit was to be published with the next
	flat    []byte // memory for small units
}

// goOn hands over what is queued.
func (l *fabricLink) goOn() {
	l.mu.Lock()
	l.write.stalled = false
	l.pump()
	l.unlock()
}

// pump hands units to the fabric as far as it takes them. The caller holds mu, and gives
// it up by unlock.
func (l *fabricLink) pump() {
	for l.state != linkDown && !l.write.mute && !l.write.stalled && l.post() {
	}
	if n := len(l.queue); l.head == n {
		l.queue, l.head = l.queue[:0], 0
	} else if l.head > 1024 && 2*l.head > n {
		copy(l.queue, l.queue[l.head:])
		clear(l.queue[n-l.head:])
		l.queue, l.head = l.queue[:n-l.head], 0
	}
}

// next fills in the head of the next unit, and returns how many bytes follow it. The
// caller holds mu.
func (l *fabricLink) next(x *blob) (u unit, n int) {
	u = unit{kind: x.kind, dialler: l.key.dialled, seq: l.write.seq, link: l.key.id, version: unitVersion, total: uint64(x.size)}
	head := blobHead
	if x.sent > 0 {
		u.kind, head = unitRest, unitHead
	}
	return u, int(min(x.size-x.sent, int64(maxUnit-head)))
}

// post hands over one unit, and reports whether to go on. The caller holds mu.
func (l *fabricLink) post() bool {
	if w := &l.write; w.holds != w.told && !l.greeting {
		return l.postHold()
	}
	if l.head == len(l.queue) || l.write.held {
		return false
	}
	x := &l.queue[l.head]
	u, n := l.next(x)
	part, off := x.part, x.off
	var length int
	var err error
	if n+blobHead <= l.owner.inject {
		length, err = l.postSmall(x, &u, n)
	} else {
		length, err = l.postSlot(x, &u, n)
	}
	switch {
	case err == nil && length == 0: // no slot: the peer has to take one first
		return false
	case err == nil:
		l.write.seq++
		l.stats.bytesOut.Add(uint64(length))
		x.sent += int64(n)
		if x.sent == x.size {
			l.posted(x)
		}
		return true
	}
	x.part, x.off = part, off
	l.notPosted(err)
	return false
}

// postHold tells the peer to hold or to go on, before anything that is queued.
func (l *fabricLink) postHold() bool {
	kind := unitGo
	if l.write.holds {
		kind = unitHold
	}
	x := blob{kind: kind}
	u, n := l.next(&x)
	length, err := l.postSmall(&x, &u, n)
	if err != nil {
		l.notPosted(err)
		return false
	}
	l.write.seq++
	l.write.told = l.write.holds
	l.stats.bytesOut.Add(uint64(length))
	return true
}

// notPosted sees to what comes after a post that was refused. The caller holds mu.
func (l *fabricLink) notPosted(err error) {
	switch {
	case errors.Is(err, fabric.ErrAgain):
		l.write.stalled = true
		l.owner.todo.stall(l)
		if l.write.more { // the fabric is to publish what it has
			l.owner.kick()
		}
	case errors.Is(err, fabric.ErrPeerGone):
		l.write.mute = true
	default:
		l.failLocked("write", cause(err))
	}
}

// postSmall posts a unit that the post copies.
func (l *fabricLink) postSmall(x *blob, u *unit, n int) (int, error) {
	w := &l.write
	x.begin()
	w.flat = x.take(u.Append(w.flat[:0]), n)
	flags := fabric.Inject | fabric.Quiet
	w.more = l.smallFollows()
	if w.more {
		flags |= fabric.More
	}
	return len(w.flat), l.owner.config.Endpoint.Send(fabric.Op{
		Local: fabric.Bytes(w.flat), Peer: l.peer.number, Flags: flags, Context: forUnit<<contextShift | l.token,
	})
}

// smallFollows reports whether another small unit comes right behind the next, so that
// both can be published together.
func (l *fabricLink) smallFollows() bool {
	i := l.head + 1
	return i < len(l.queue) && !l.write.held && l.queue[i].size+blobHead <= int64(l.owner.inject)
}

// postSlot posts a unit from a slot; its length is 0 if there is none to be had.
func (l *fabricLink) postSlot(x *blob, u *unit, n int) (int, error) {
	if l.write.out == maxOut {
		return 0, nil
	}
	f := l.owner
	x.begin()
	s := f.slots.get(f.config.Domain)
	b := x.take(u.Append(s.bytes[:0]), n)
	s.link = l
	err := f.config.Endpoint.Send(fabric.Op{
		Local: s.segment(len(b)), Peer: l.peer.number, Context: forSlot<<contextShift | uint64(s.index),
	})
	if err != nil {
		f.slots.put(s)
		return 0, err
	}
	l.write.out++
	l.write.more = false
	return len(b), nil
}

// posted takes what the fabric has taken in full off the queue. The caller holds mu.
func (l *fabricLink) posted(x *blob) {
	switch x.kind {
	case unitFormat:
		l.stats.formatsSent.Add(1)
	case unitGoodbye:
		l.complete = true
	case unitRecord:
		l.stats.messagesOut.Add(1)
		l.queued--
		l.bytes -= x.size
		if x.done != nil {
			l.finished = append(l.finished, x.done)
		}
		if l.full && l.queued <= l.owner.config.MaxQueued {
			l.full = false
			l.owner.kick()
		}
	}
	*x = blob{}
	l.head++
}

// sent is the end of a unit of a slot. The caller has the turn.
func (f *Fabric) sent(index int, err error) {
	l := f.slots.done(index)
	if l == nil {
		return
	}
	l.mu.Lock()
	l.write.out--
	l.failedUnit(err)
	l.pump()
	l.unlock()
}

// unsent is the end of a small unit that came to nothing. The caller has the turn.
func (f *Fabric) unsent(token uint64, err error) {
	f.mu.Lock()
	l := f.byToken[token]
	f.mu.Unlock()
	if l == nil || err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.greeting {
		l.failLocked("dial", cause(err))
		return
	}
	l.failedUnit(err)
}

// failedUnit is what becomes of a link of which a unit was not taken. The caller holds
// mu.
func (l *fabricLink) failedUnit(err error) {
	switch {
	case err == nil:
	case errors.Is(err, fabric.ErrPeerGone):
		l.write.mute = true
	default:
		l.failLocked("write", cause(err))
	}
}

// slots are the memory of units that are with the fabric. Its lock is a leaf.
type slots struct {
	mu   sync.Mutex
	all  []*slot
	free []int // those whose memory is kept come last
}

// slot has room for one unit. It lies in an arena if there is one: the peer takes the
// unit from there, without a copy in between.
type slot struct {
	index int
	bytes []byte
	arena *fabric.Memory // that bytes are of, or nil
	link  *fabricLink    // that it is out for
}

// open gets memory for a slot.
func (s *slot) open(d *fabric.Domain) {
	if m, err := d.Alloc(maxUnit, fabric.PeerRead); err == nil {
		s.arena, s.bytes = m, m.Bytes()
		return
	}
	s.bytes = make([]byte, maxUnit)
}

// close gives it back; a unit that is still with the fabric keeps it until then.
func (s *slot) close() {
	if s.arena != nil {
		_ = s.arena.Close()
	}
	s.arena, s.bytes = nil, nil
}

func (s *slot) segment(n int) fabric.Segment {
	if s.arena != nil {
		return s.arena.Slice(0, n)
	}
	return fabric.Bytes(s.bytes[:n])
}

// get returns a slot with memory.
func (p *slots) get(d *fabric.Domain) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	var s *slot
	if n := len(p.free); n > 0 {
		s = p.all[p.free[n-1]]
		p.free = p.free[:n-1]
	} else {
		s = &slot{index: len(p.all)}
		p.all = append(p.all, s)
	}
	if s.bytes == nil {
		s.open(d)
	}
	return s
}

// put takes a slot back.
func (p *slots) put(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.link = nil
	p.free = append(p.free, s.index)
	if len(p.free) > keepSlots {
		p.all[p.free[len(p.free)-1-keepSlots]].close()
	}
}

// close gives back all memory.
func (p *slots) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		s.close()
	}
	p.all, p.free = nil, nil
}

// done takes back the slot of an operation that has ended, and returns whose it was.
func (p *slots) done(index int) *fabricLink {
	p.mu.Lock()
	if index >= len(p.all) {
		p.mu.Unlock()
		return nil
	}
	s := p.all[index]
	l := s.link
	p.mu.Unlock()
	if l != nil {
		p.put(s)
	}
	return l
}
