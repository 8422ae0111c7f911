package carrier

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/sst/internal/hostwatch"
	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// linkState is the life of a link: it only moves forward.
type linkState uint8

const (
	linkOpen    linkState = iota
	linkClosing           // Close was called: the queue is being written out
	linkDown              // the connection is closed
)

// link is a Link over one TCP connection whose handshake is done.
type link struct {
	owner  *CM
	conn   *net.TCPConn
	peer   peer
	reader *inflow
	watch  *hostwatch.Watch
	read   reading // of who has its turn
	write  writing // of who writes

	wake    chan struct{} // capacity 1: there is something for the writing goroutine
	written chan struct{} // closed when the writing goroutine has ended
	done    chan struct{} // closed when Lost has returned
	stats   counters

	mu     sync.Mutex
	room   sync.Cond // the reading goroutine waits here for the queue to drain
	state  linkState
	asked  bool  // Close was called
	err    error // what brought the link down
	queue  []Record
	busy   bool  // somebody writes: the writing goroutine, or a Send
	queued int   // records accepted and not yet written
	bytes  int64 // in their parts
}

// peer is what is known of the other side when the handshake is done.
type peer struct {
	local, remote netip.AddrPort
	inbound       bool
	id            uint32
	port          uint16 // its contact port: from its preamble, or the one dialled
	release       Release
}

// contactAddr is the address by which the peer's contact would name it.
func (p *peer) contactAddr() netip.AddrPort {
	return netip.AddrPortFrom(p.remote.Addr(), p.port)
}

// counters are the parts of LinkInfo that move without the lock.
type counters struct {
	messagesIn, messagesOut   atomic.Uint64
	bytesIn, bytesOut         atomic.Uint64
	formatsKnown, formatsSent atomic.Int32
}

// newLink returns a link that run has yet to start.
func newLink(owner *CM, conn *net.TCPConn, reader *inflow, p peer) *link {
	l := &link{
		owner:   owner,
		conn:    conn,
		peer:    p,
		reader:  reader,
		wake:    make(chan struct{}, 1),
		written: make(chan struct{}),
		done:    make(chan struct{}),
	}
	l.read.formats = formatTable{max: owner.config.MaxFormats, maxBytes: owner.config.MaxFormatBytes}
	l.room.L = &l.mu
	l.watch = hostwatch.New(conn, owner.config.keepAlive(), l.Abort)
	l.read.readyFn, l.read.pollFn = l.ready, l.pollNow
	l.initDirect()
	_ = tcp.TuneWithinHost(conn) // if not, it is slower
	if owner.config.Place != nil && reader.source.raw != nil {
		reader.SetPlace(l.place)
	}
	if p.release == ReleaseWeft {
		l.PeerIsWeft()
	}
	return l
}

// run is the life of a link, on its reading goroutine: read until the end, then
// tell the Handler.
func (l *link) run() {
	go l.writeLoop()
	l.fail("read", l.readLoop())
	l.endReading()
	<-l.written
	l.watch.Stop()
	l.owner.remove(l)
	l.owner.config.Handler.Lost(l, l.cause())
	close(l.done)
}

// cause is what Lost is told: nothing, if we closed and all was written.
func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked && l.write.complete {
		return nil
	}
	return l.err
}

// Send implements Link.
func (l *link) Send(r Record) error {
	size, err := l.check(r)
	if err != nil {
		return l.refuse(err, r)
	}
	l.mu.Lock()
	if l.state != linkOpen {
		err := l.whyNot()
		l.mu.Unlock()
		return l.refuse(err, r)
	}
	l.enqueue(r, size)
	l.dispatch()
	return nil
}

// SendAll implements Link.
func (l *link) SendAll(records []Record) error {
	for i := range records {
		if _, err := l.check(records[i]); err != nil {
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
		l.enqueue(records[i], partsSize(records[i].Parts))
	}
	l.dispatch()
	return nil
}

// refuse is the end of records that are not queued.
func (l *link) refuse(err error, records ...Record) error {
	err = l.error("send", err)
	for i := range records {
		records[i].finish(err)
	}
	return err
}

// check refuses records that would make the peer drop the message, hang or
// crash, and returns the size of a good one.
func (l *link) check(r Record) (int64, error) {
	size, err := checkRecord(&r)
	if err == nil && size > cm.MaxData && l.peer.release == Release210 {
		return 0, fmt.Errorf("%w: %d bytes; ADIOS2 2.10 takes no more than %d", ErrRecord, size, cm.MaxData)
	}
	return size, err
}

// checkRecord is check for any peer.
func checkRecord(r *Record) (int64, error) {
	if r.Format == nil || len(r.Parts) == 0 {
		return 0, fmt.Errorf("%w: no format or no bytes", ErrRecord)
	}
	if id, ok := ffs.RecordID(r.Parts[0]); !ok || id != r.Format.ID() {
		return 0, fmt.Errorf("%w: its first part does not begin with the ID of its format %s", ErrRecord, r.Format.Name())
	}
	return partsSize(r.Parts), nil
}

// partsSize returns the bytes of a record.
func partsSize(parts [][]byte) int64 {
	var size int64
	for _, p := range parts {
		size += int64(len(p))
	}
	return size
}

// enqueue puts r at the end of the queue of an open link. The caller holds mu.
func (l *link) enqueue(r Record, size int64) {
	l.queue = append(l.queue, r)
	l.queued++
	l.bytes += size
}

// whyNot is the error of using a link that is not open. The caller holds mu.
func (l *link) whyNot() error {
	if l.asked || l.err == nil {
		return ErrClosed
	}
	return l.err
}

// rouse tells the writing goroutine to look.
func (l *link) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close implements Link.
func (l *link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = true
	if l.state != linkOpen {
		return nil
	}
	l.state = linkClosing
	// One deadline bounds both directions: writing out, and waiting for the peer
	// to see the end. Errors mean that the connection is gone already.
	_ = l.conn.SetDeadline(time.Now().Add(l.owner.config.CloseTimeout))
	l.room.Broadcast()
	l.rouse()
	return nil
}

// Abort implements Link.
func (l *link) Abort(err error) {
	if err == nil {
		err = ErrAborted
	}
	// Let the kernel drop what it holds: nobody wants it.
	_ = l.conn.SetLinger(0)
	l.fail("abort", err)
}

// fail takes the link down; the first reason counts.
func (l *link) fail(op string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == linkDown {
		return
	}
	if l.state == linkClosing && l.queued == 0 {
		l.write.complete = true
	}
	l.state = linkDown
	l.err = l.error(op, err)
	_ = l.conn.Close()
	l.room.Broadcast()
	l.rouse()
}

// error wraps err, once.
func (l *link) error(op string, err error) error {
	if _, ok := err.(*LinkError); ok { //nolint:errorlint // a wrapped one is another error
		return err
	}
	return &LinkError{Op: op, Peer: l.peer.remote.String(), Err: err}
}

// isOpen reports whether Send would accept a record.
func (l *link) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == linkOpen
}

// PeerIsWeft implements Link.
func (l *link) PeerIsWeft() { l.reader.source.off.Store(true) }

// Done implements Link.
func (l *link) Done() <-chan struct{} { return l.done }

// Info implements Link.
func (l *link) Info() LinkInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LinkInfo{
		Local:         l.peer.local,
		Remote:        l.peer.remote,
		Peer:          l.peer.remote.String(),
		Inbound:       l.peer.inbound,
		PeerCMID:      l.peer.id,
		PeerPort:      l.peer.port,
		Release:       l.peer.release,
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

// finish calls Done, if there is one.
func (r *Record) finish(err error) {
	if r.Done != nil {
		r.Done(err)
	}
}
