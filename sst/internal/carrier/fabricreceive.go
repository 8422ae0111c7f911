package carrier

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

const (
	inboxBytes = 256 << 10 // of one buffer for units of everybody: four of the longest, at least
	inboxCount = 2         // so that one is posted while the other is used up
	firstBytes = 256 << 10 // memory that the beginning of a long record gets
	maxHeld    = 16 << 20  // bytes that are kept for a link: out of order, or held back
	keepCost   = 256       // what anything that is kept counts besides its bytes
)

// inbox is the memory that all units come into. It is of who has the turn.
type inbox struct {
	buffers [inboxCount][]byte
	posted  [inboxCount]bool
	held    []*fabricLink // those that are held back
}

func (b *inbox) init() {
	for i := range b.buffers {
		b.buffers[i] = make([]byte, inboxBytes)
	}
}

// any reports whether a buffer is with the fabric.
func (b *inbox) any() bool {
	for _, posted := range b.posted {
		if posted {
			return true
		}
	}
	return false
}

// postAll posts the buffers that are not.
func (f *Fabric) postAll() error {
	for i := range f.inbox.buffers {
		if f.inbox.posted[i] {
			continue
		}
		err := f.config.Endpoint.Recv(fabric.Op{
			Local: fabric.Bytes(f.inbox.buffers[i]), Flags: fabric.Multi, Context: forReceive<<contextShift | uint64(i),
		})
		if err != nil {
			return err
		}
		f.inbox.posted[i] = true
	}
	return nil
}

// postAgain posts buffers that were used up. The caller has the turn.
func (f *Fabric) postAgain() {
	if f.rota.over || f.brokenBy() != nil {
		return
	}
	switch err := f.postAll(); {
	case errors.Is(err, fabric.ErrAgain): // the queue will say when to try again
		f.todo.any.Store(true)
	case err != nil: // the endpoint was closed
		f.breakOff(err)
	}
}

// received is a unit, or the end of a buffer. It reports whether there was one. The
// caller has the turn.
func (f *Fabric) received(i int, c *fabric.Completion) bool {
	if c.Source != 0 && (c.Err == nil || errors.Is(c.Err, fabric.ErrTruncated)) {
		f.unit(c.Source, f.inbox.buffers[i][c.Offset:c.Offset+c.Len], c.Err)
	}
	switch {
	case errors.Is(c.Err, fabric.ErrClosed): // the endpoint was closed first
		f.inbox.posted[i] = false
		f.breakOff(c.Err)
	case c.Flags.Has(fabric.MultiDone), errors.Is(c.Err, fabric.ErrCancelled):
		f.inbox.posted[i] = false
		f.postAgain()
	}
	return c.Source != 0
}

// unit deals with what a peer has sent.
func (f *Fabric) unit(from fabric.Peer, b []byte, err error) {
	if err != nil {
		if te, ok := errors.AsType[*fabric.TruncatedError](err); ok && te.Message <= maxUnit {
			f.breakOff(fmt.Errorf("%w: a unit of %d bytes found no room: the endpoint was not opened with FabricEndpoint", ErrConfig, te.Message))
			return
		}
		f.cut(from, fmt.Errorf("%w: a unit of more than %d bytes", ErrProtocol, maxUnit))
		return
	}
	u, err := parseUnit(b)
	if err != nil {
		f.cut(from, err)
		return
	}
	f.mu.Lock()
	l := f.links[linkKey{id: u.link, dialled: !u.dialler}]
	if l != nil && u.kind != unitHello {
		f.mu.Unlock()
		l.arrived(from, &u, len(b))
		return
	}
	_, known := f.peers[from]
	f.mu.Unlock()
	switch {
	case u.kind == unitHello && l == nil:
		f.greet(from, &u)
	case u.kind == unitHello && l.peer.number == from:
		l.fail("read", fmt.Errorf("%w: a second hello", ErrProtocol))
	case !known || u.kind == unitHello:
		f.cut(from, fmt.Errorf("%w: %v without a link", ErrProtocol, u.kind))
	}
	// What is left is for a link that has ended here, which the peer has not heard of.
}

// release hands out what was held back and is not any more. The caller has the turn.
func (f *Fabric) release() {
	held := f.inbox.held
	f.inbox.held = nil
	for _, l := range held {
		l.handHeld()
	}
}

// unitReading is what only who has the turn touches.
type unitReading struct {
	owner   *Fabric
	next    uint32            // number of the unit that is due
	welcome bool              // the hello was answered
	early   map[uint32][]byte // units that were faster than it
	formats formatTable
	whole   assembly
	held    []Inbound // records that wait until the link is not held back
	kept    int       // bytes of early and held
	listed  bool      // in inbox.held
}

// assembly is a format or a record that is arriving.
type assembly struct {
	kind  unitKind // 0: none is
	total int
	data  []byte
}

// drop gives back what was kept.
func (r *unitReading) drop() {
	for i := range r.held {
		r.held[i].Free()
	}
	r.owner.buffers.put(r.whole.data)
	*r = unitReading{owner: r.owner}
}

// arrived deals with one unit of the peer. Units of a link may come in another order than
// they were sent in: a long one may still be under way when a short one is here.
func (l *fabricLink) arrived(from fabric.Peer, u *unit, length int) {
	if err := l.known(from); err != nil {
		l.owner.cut(from, err)
		return
	}
	l.stats.bytesIn.Add(uint64(length))
	var err error
	switch {
	case u.kind == unitEnd:
		l.end()
		return
	case u.kind == unitRefusal && l.key.dialled && l.read.next == 0:
		l.mu.Lock()
		l.told = true
		l.mu.Unlock()
		l.fail("dial", refused(u))
		return
	case u.kind == unitGoodbye && l.leaving():
		l.fail("read", ErrPeerClosed)
		return
	case u.seq == l.read.next:
		err = l.inOrder(u)
	default:
		err = l.keepEarly(u)
	}
	if err != nil {
		l.fail("read", err)
	}
}

// known checks that the peer is that of the link. One that has answered the hello is:
// nobody else can know its number.
func (l *fabricLink) known(from fabric.Peer) error {
	if l.peer.number == from {
		return nil
	}
	l.mu.Lock()
	greeting := l.greeting
	l.mu.Unlock()
	if greeting {
		return l.owner.adopt(l, from)
	}
	return fmt.Errorf("%w: a unit for the link of another peer", ErrProtocol)
}

// leaving reports whether Close was called: the order of what comes does not matter then.
func (l *fabricLink) leaving() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state != linkOpen
}

// inOrder deals with the unit that is due, and with those that have waited for it.
func (l *fabricLink) inOrder(u *unit) error {
	r := &l.read
	for {
		r.next++
		if err := l.take(u); err != nil {
			return err
		}
		b, ok := r.early[r.next]
		if !ok {
			return nil
		}
		delete(r.early, r.next)
		r.kept -= len(b) + keepCost
		again, err := parseUnit(b)
		if err != nil {
			return err
		}
		u = &again
	}
}

// keepEarly keeps a unit until it is due.
func (l *fabricLink) keepEarly(u *unit) error {
	r := &l.read
	if ahead := int32(u.seq - r.next); ahead < 0 || r.early[u.seq] != nil {
		return fmt.Errorf("%w: %v has number %d, due is %d", ErrProtocol, u.kind, u.seq, r.next)
	}
	b := u.Append(make([]byte, 0, blobHead+len(u.data)))
	if err := r.keep(len(b)); err != nil {
		return err
	}
	if r.early == nil {
		r.early = make(map[uint32][]byte)
	}
	r.early[u.seq] = b
	return nil
}

// keep counts what is kept; a single thing may be larger than the bound.
func (r *unitReading) keep(n int) error {
	n += keepCost
	if r.kept > 0 && r.kept+n > maxHeld {
		return fmt.Errorf("%w: %d bytes wait, since units before them are missing, or since the peer does not take what is queued for it", ErrLimit, r.kept)
	}
	r.kept += n
	return nil
}

// take deals with a unit in its order.
func (l *fabricLink) take(u *unit) error {
	r := &l.read
	switch first := l.key.dialled && !r.welcome; {
	case first && u.kind == unitWelcome:
		r.welcome = true
		return l.owner.welcomed(l, u)
	case first:
		return fmt.Errorf("%w: %v before the answer to the hello", ErrProtocol, u.kind)
	}
	switch u.kind {
	case unitHold, unitGo:
		l.heldByPeer(u.kind == unitHold)
		return nil
	case unitGoodbye:
		l.handAll()
		return ErrPeerClosed
	case unitFormat, unitRecord:
		if r.whole.kind == 0 {
			return l.begin(u)
		}
	case unitRest:
		if r.whole.kind != 0 && len(r.whole.data)+len(u.data) <= r.whole.total {
			return l.more(u.data)
		}
	}
	return fmt.Errorf("%w: unexpected %v", ErrProtocol, u.kind)
}

// begin takes the beginning of a format or a record, or all of it.
func (l *fabricLink) begin(u *unit) error {
	most := l.owner.config.MaxRecord
	if u.kind == unitFormat {
		most = ffs.IDLen + l.owner.config.MaxFormatBytes
	}
	if u.total > uint64(most) {
		return fmt.Errorf("%w: %v of %d bytes, at most %d", ErrLimit, u.kind, u.total, most)
	}
	w := &l.read.whole
	w.kind, w.total = u.kind, int(u.total)
	if w.total > firstBytes {
		w.data = l.owner.buffers.reuse(w.total)[:0] // which is there already, so it may be used whatever the peer says
	}
	if cap(w.data) == 0 {
		w.data = l.owner.buffers.get(min(w.total, firstBytes))[:0]
	}
	return l.more(u.data)
}

// more takes the next bytes of what is arriving. Its memory grows with what has come.
func (l *fabricLink) more(b []byte) error {
	w := &l.read.whole
	if need := len(w.data) + len(b); need > cap(w.data) {
		grown := l.owner.buffers.get(min(w.total, max(2*cap(w.data), need)))
		n := copy(grown, w.data)
		l.owner.buffers.put(w.data)
		w.data = grown[:n]
	}
	w.data = append(w.data, b...)
	if len(w.data) < w.total {
		return nil
	}
	kind, data := w.kind, w.data
	*w = assembly{}
	if kind == unitRecord {
		return l.deliver(data)
	}
	if err := l.read.formats.push(cm.FormatMessage{Type: cm.FormatPush, First: data[:ffs.IDLen], Second: data[ffs.IDLen:]}); err != nil {
		return err
	}
	l.stats.formatsKnown.Store(int32(len(l.read.formats.byID)))
	return nil
}

// deliver hands a record to the Handler, unless Close was called, or keeps it if the link
// is held back.
func (l *fabricLink) deliver(record []byte) error {
	free := l.owner.buffers.releaser(record)
	f, err := l.read.formats.of(record)
	if err != nil {
		free()
		return err
	}
	in := Inbound{Format: f, Data: record, Free: free}
	if len(l.read.held) == 0 {
		if open, room := l.admits(); room || !open {
			l.hand(in, open)
			return nil
		}
	}
	if err := l.read.keep(len(record)); err != nil {
		free()
		return err
	}
	if l.read.held = append(l.read.held, in); len(l.read.held) == 1 {
		l.holdPeer(true)
	}
	l.list()
	return nil
}

// list has release look at the link.
func (l *fabricLink) list() {
	if !l.read.listed {
		l.read.listed = true
		l.owner.inbox.held = append(l.owner.inbox.held, l)
	}
}

// hand calls the Handler, unless Close was called: then the link is not open.
func (l *fabricLink) hand(in Inbound, open bool) {
	if !open {
		in.Free()
		return
	}
	l.stats.messagesIn.Add(1)
	l.owner.config.Handler.Message(l, in)
}

// handHeld hands out what was held back, as long as the link is not again.
func (l *fabricLink) handHeld() {
	r := &l.read
	r.listed = false
	for len(r.held) > 0 {
		open, room := l.admits()
		if open && !room {
			l.list()
			return
		}
		in := r.held[0]
		r.held[0] = Inbound{}
		if r.held = r.held[1:]; len(r.held) == 0 {
			r.held = nil
		}
		r.kept -= len(in.Data) + keepCost
		l.hand(in, open)
	}
	l.holdPeer(false)
}

// handAll is handHeld when nothing more comes, so that there is nothing to hold back.
func (l *fabricLink) handAll() {
	held := l.read.held
	l.read.held = nil
	for _, in := range held {
		l.read.kept -= len(in.Data) + keepCost
		l.hand(in, l.isOpen())
	}
}
