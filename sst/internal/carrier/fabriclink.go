package carrier

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// linkKey names a link among those of a Fabric: of one with ourselves both ends are
// there.
type linkKey struct {
	id      uint64
	dialled bool
}

// fabricLink is a Link over units.
type fabricLink struct {
	owner   *Fabric
	key     linkKey
	token   uint64
	flight  *fabricFlight  // of one that we dialled
	address fabric.Address // that was dialled
	done    chan struct{}  // closed when Lost has returned
	stats   counters
	read    unitReading // of who has the turn

	mu       sync.Mutex
	peer     *fabricPeer // changed with the locks of the Fabric and of the link, and the turn
	state    linkState
	greeting bool // dialled, and not answered
	asked    bool // Close was called
	complete bool // and everything queued before it was handed to the fabric
	told     bool // the peer knows that the link has ended
	full     bool // it is held back since more than MaxQueued records wait
	err      error
	queue    []blob // from head on
	head     int
	queued   int   // records in it
	bytes    int64 // in their parts
	pushed   map[ffs.ID]struct{}
	finished []func(error) // Done of records that the fabric has taken, to be called without the lock
	write    unitWriting
}

var _ Link = (*fabricLink)(nil)

// newLink enters a link. The caller holds mu.
func (f *Fabric) newLink(key linkKey, p *fabricPeer) *fabricLink {
	f.tokens++
	l := &fabricLink{owner: f, key: key, token: f.tokens, peer: p, greeting: key.dialled, done: make(chan struct{})}
	l.pushed = make(map[ffs.ID]struct{})
	l.read.formats = formatTable{max: f.config.MaxFormats, maxBytes: f.config.MaxFormatBytes}
	l.read.owner = f
	p.links++
	f.links[key], f.byToken[l.token] = l, l
	return l
}

// Send implements Link.
func (l *fabricLink) Send(r Record) error {
	size, err := checkRecord(&r)
	if err != nil {
		return l.refuse(err, r)
	}
	l.mu.Lock()
	if l.state != linkOpen {
		err := l.whyNot()
		l.mu.Unlock()
		return l.refuse(err, r)
	}
	l.enqueue(&r, size)
	l.pump()
	l.unlock()
	return nil
}

// SendAll implements Link.
func (l *fabricLink) SendAll(records []Record) error {
	for i := range records {
		if _, err := checkRecord(&records[i]); err != nil {
			return l.refuse(err, records...)
		}
	}
	l.mu.Lock()
	if l.state != linkOpen {
		err := l.whyNot()
		l.mu.Unlock()
		return l.refuse(err, records...)
	}
	for i := range records {
		l.enqueue(&records[i], partsSize(records[i].Parts))
	}
	l.pump()
	l.unlock()
	return nil
}

// refuse is the end of records that are not queued.
func (l *fabricLink) refuse(err error, records ...Record) error {
	l.mu.Lock()
	err = l.wrap("send", err)
	l.mu.Unlock()
	for i := range records {
		records[i].finish(err)
	}
	return err
}

// whyNot is the error of using a link that is not open. The caller holds mu.
func (l *fabricLink) whyNot() error {
	if l.asked || l.err == nil {
		return ErrClosed
	}
	return l.err
}

// wrap gives an error the form that all have. The caller holds mu.
func (l *fabricLink) wrap(op string, err error) error {
	if _, ok := err.(*LinkError); ok { //nolint:errorlint // a wrapped one is another error
		return err
	}
	return &LinkError{Op: op, Peer: l.peer.address, Err: err}
}

// unlock gives mu up, and then what the fabric has taken back to who sent it.
func (l *fabricLink) unlock() {
	done := l.finished
	l.finished = nil
	l.mu.Unlock()
	for _, d := range done {
		d(nil)
	}
}

// Poll implements Link. What it reads may be of other links of the Fabric, too.
func (l *fabricLink) Poll() bool { return l.owner.poll() }

// Close implements Link.
func (l *fabricLink) Close() error {
	l.finish()
	return nil
}

// finish is Close, also of a link that is not open yet.
func (l *fabricLink) finish() {
	l.mu.Lock()
	l.asked = true
	switch {
	case l.state != linkOpen:
		l.mu.Unlock()
		return
	case l.greeting:
		l.failLocked("dial", ErrClosed)
		l.mu.Unlock()
		return
	}
	l.state = linkClosing
	l.owner.todo.closeBy(l, time.Now().Add(l.owner.config.CloseTimeout))
	l.queue = append(l.queue, blob{kind: unitGoodbye})
	l.pump()
	l.unlock()
	l.owner.kick() // who sleeps there does not know of the deadline
}

// Abort implements Link.
func (l *fabricLink) Abort(err error) {
	if err == nil {
		err = ErrAborted
	}
	l.fail("abort", err)
}

// fail takes the link down; the first reason counts. Who has the turn tells of it.
func (l *fabricLink) fail(op string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failLocked(op, err)
}

// failLocked is fail for who holds mu.
func (l *fabricLink) failLocked(op string, err error) {
	if l.state == linkDown {
		return
	}
	if l.state == linkClosing && l.queued == 0 {
		l.complete = true
	}
	l.state = linkDown
	l.err = l.wrap(op, err)
	l.owner.todo.end(l)
	l.owner.kick()
}

// end takes the link down because the peer has said that it has forgotten it. The
// caller has the turn.
func (l *fabricLink) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = true
	err := ErrPeerAborted
	if l.state == linkClosing && l.complete {
		err = ErrPeerClosed
	}
	l.failLocked("read", err)
}

// isOpen reports whether Send accepts a record, or will once the peer has answered.
func (l *fabricLink) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == linkOpen
}

// admits reports whether the link is open, as isOpen does, and whether reading is not held
// back. If it is, who sends will tell when it is not any more. When both sides hold each
// other up, the one that has dialled gives way: else neither could go on.
func (l *fabricLink) admits() (open, room bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full = l.queued > l.owner.config.MaxQueued && !(l.key.dialled && l.write.held)
	return l.state == linkOpen, !l.full
}

// holdPeer tells the peer to send nothing, or to go on. The caller has the turn.
func (l *fabricLink) holdPeer(hold bool) {
	l.mu.Lock()
	l.write.holds = hold
	l.pump()
	l.unlock()
}

// heldByPeer takes in that the peer wants nothing, or something again.
func (l *fabricLink) heldByPeer(held bool) {
	l.mu.Lock()
	l.write.held = held
	l.pump()
	l.unlock()
	if len(l.read.held) > 0 { // both at once: see admits
		l.owner.todo.any.Store(true)
	}
}

// PeerIsWeft implements Link: nobody else speaks this protocol.
func (l *fabricLink) PeerIsWeft() {}

// Done implements Link.
func (l *fabricLink) Done() <-chan struct{} { return l.done }

// Info implements Link.
func (l *fabricLink) Info() LinkInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LinkInfo{
		Peer:          l.peer.address,
		Inbound:       !l.key.dialled,
		Release:       ReleaseWeft,
		MessagesIn:    l.stats.messagesIn.Load(),
		MessagesOut:   l.stats.messagesOut.Load(),
		BytesIn:       l.stats.bytesIn.Load(),
		BytesOut:      l.stats.bytesOut.Load(),
		QueuedRecords: l.queued,
		QueuedBytes:   l.bytes,
		FormatsKnown:  int(l.stats.formatsKnown.Load()),
		FormatsSent:   int(l.stats.formatsSent.Load()),
	}
}

// blob is what is to be sent, in one unit or in several.
type blob struct {
	kind  unitKind
	parts [][]byte
	size  int64 // of parts
	sent  int64
	part  int // the first of which something is left
	off   int // how much of it is sent
	done  func(error)
	begun *atomic.Bool
}

// enqueue puts r at the end of the queue of an open link, and before it its format if
// the peer has not got it. The caller holds mu.
func (l *fabricLink) enqueue(r *Record, size int64) {
	if _, ok := l.pushed[r.Format.ID()]; !ok {
		l.pushed[r.Format.ID()] = struct{}{}
		l.queue = append(l.queue, formatBlob(r.Format))
	}
	l.queue = append(l.queue, blob{kind: unitRecord, parts: r.Parts, size: size, done: r.Done, begun: r.Begun})
	l.queued++
	l.bytes += size
}

// formatBlob is what pushes a format.
func formatBlob(f *ffs.Format) blob {
	id := f.ID()
	parts := [][]byte{id[:], f.Body()}
	return blob{kind: unitFormat, parts: parts, size: partsSize(parts)}
}

// begin says that the peer may have seen something of it.
func (x *blob) begin() {
	if x.begun != nil {
		x.begun.Store(true)
	}
}

// take appends n bytes to b, which are sent then.
func (x *blob) take(b []byte, n int) []byte {
	for n > 0 {
		p := x.parts[x.part][x.off:]
		p = p[:min(n, len(p))]
		b = append(b, p...)
		n -= len(p)
		x.off += len(p)
		if x.off == len(x.parts[x.part]) {
			x.part++
			x.off = 0
		}
	}
	return b
}
