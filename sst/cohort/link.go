package cohort

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/sst/internal/hostwatch"
)

const (
	readBuffer  = 64 << 10
	copyBelow   = 1 << 10 // bytes of a message that are copied next to its header
	maxWrite    = 1 << 20 // bytes of one write, unless one message is longer
	maxVec      = 512     // slices of one write
	maxSpare    = 1024    // queued frames whose memory is kept for the next round
	maxChannels = 1 << 16 // channels that a peer may have open at a time
	inboxPlenty = 64 << 20
)

// linkState only moves forward.
type linkState uint8

const (
	linkOpen    linkState = iota
	linkClosing           // nothing is queued any more; the queue is being written out
	linkDown              // the connection is closed
)

// link is a connection to a rank whose handshake is done. One goroutine reads, and
// calls handlers; one writes what does not go out at once (linkdirect.go). Both sleep
// in the kernel while nothing moves.
type link struct {
	owner *tcpRank
	conn  net.Conn
	watch *hostwatch.Watch // nil if conn is not TCP
	rank  int              // of the peer

	ids map[uint32]key // the peer's channels; of the reading goroutine
	bye *string        // what the peer said when it left; of the reading goroutine

	wake    chan struct{} // capacity 1: there is something for the writing goroutine
	written chan struct{} // closed when the writing goroutine has ended

	mu    sync.Mutex // taken with the hub's lock held
	gone  error      // the host has vanished
	state linkState
	queue []frame
	busy  bool            // the writing goroutine has frames in hand
	asked []chan struct{} // one for each frameFlush without an answer
	direct
}

func newLink(owner *tcpRank, conn net.Conn, rank int) *link {
	l := &link{
		owner:   owner,
		conn:    conn,
		rank:    rank,
		ids:     make(map[uint32]key),
		wake:    make(chan struct{}, 1),
		written: make(chan struct{}),
	}
	if c, ok := conn.(*net.TCPConn); ok {
		l.watch = hostwatch.New(c, owner.config.keepAlive(), l.vanished)
		l.initDirect(c)
	}
	return l
}

// vanished ends the connection to a host that answers no more.
func (l *link) vanished(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = err
	if c, ok := l.conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0) // let the kernel drop what it holds
	}
	_ = l.conn.Close()
}

// sent tells the watch that something is under way.
func (l *link) sent() {
	if l.watch != nil {
		l.watch.Sent()
	}
}

// post sends a frame, with what waits before it; it never blocks. On a link that is
// going down it is dropped.
func (l *link) post(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == linkOpen {
		l.queue = append(l.queue, f)
		l.dispatch()
	}
}

// flush asks the peer to say when all that is queued has arrived, and returns what
// is closed then, or when the link is down.
func (l *link) flush() <-chan struct{} {
	arrived := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == linkDown {
		close(arrived)
		return arrived
	}
	l.asked = append(l.asked, arrived)
	if l.state == linkOpen { // else the end of the link answers
		l.queue = append(l.queue, frame{kind: frameFlush})
		l.dispatch()
	}
	return arrived
}

// flushed takes in the answer to the oldest question.
func (l *link) flushed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.asked) == 0 {
		return fmt.Errorf("%w: an answer that nobody asked for", ErrProtocol)
	}
	close(l.asked[0])
	l.asked = l.asked[1:]
	return nil
}

// close queues a last frame, after which the connection ends. limit bounds how
// long the peer may take to receive all and to close in turn.
func (l *link) close(text string, limit time.Duration) {
	l.post(frame{kind: frameBye, body: []byte(clip(text))})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == linkOpen {
		l.state = linkClosing
	}
	// An error means that the connection is gone already.
	_ = l.conn.SetDeadline(time.Now().Add(limit))
	l.rouse()
}

// rouse tells the writing goroutine to look.
func (l *link) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run is the life of a link, on its reading goroutine.
func (l *link) run() {
	go l.writeLoop()
	err := l.readLoop()
	l.mu.Lock()
	l.state, l.queue = linkDown, nil
	l.stopDelay()
	for _, arrived := range l.asked {
		close(arrived)
	}
	l.asked = nil
	if l.gone != nil {
		err = l.gone
	}
	l.rouse()
	l.mu.Unlock()
	_ = l.conn.Close()
	<-l.written
	if l.watch != nil {
		l.watch.Stop()
	}
	l.owner.ended(l, l.cause(err))
}

// cause says in words why a peer is gone. All wrap ErrRankGone.
func (l *link) cause(err error) error {
	switch {
	case errors.Is(err, ErrProtocol) || errors.Is(err, ErrLimit):
		// Below: whatever it said before.
	case l.bye != nil && *l.bye == "":
		return fmt.Errorf("%w: rank %d left the cohort", ErrRankGone, l.rank)
	case l.bye != nil:
		return fmt.Errorf("%w: rank %d gave up: %s", ErrRankGone, l.rank, *l.bye)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET): // the latter if it had not read all
		return fmt.Errorf("%w: rank %d at %v ended without a word: its process died, or exited without Close", ErrRankGone, l.rank, l.conn.RemoteAddr())
	}
	return fmt.Errorf("%w: rank %d at %v: %w", ErrRankGone, l.rank, l.conn.RemoteAddr(), err)
}

// readLoop takes in frames until the connection ends.
func (l *link) readLoop() error {
	r := bufio.NewReaderSize(l.conn, readBuffer)
	for {
		f, err := readFrame(r, l.owner.config.MaxMessage)
		if err != nil {
			return err
		}
		if l.bye != nil {
			return fmt.Errorf("%w: frame of kind %d after the last", ErrProtocol, f.kind)
		}
		if err := l.take(f); err != nil {
			return err
		}
	}
}

// take acts on a frame.
func (l *link) take(f frame) error {
	switch f.kind {
	case frameJoin:
		return l.takeJoin(f)
	case frameMessage, frameLeave:
		k, ok := l.ids[f.id]
		if !ok {
			return fmt.Errorf("%w: frame of kind %d for channel %d, which was not joined", ErrProtocol, f.kind, f.id)
		}
		if f.kind == frameMessage {
			return l.owner.take(l.rank, k, f.body)
		}
		delete(l.ids, f.id)
		return l.owner.leaves(l.rank, k)
	case frameBye:
		text := string(f.body)
		l.bye = &text
		return nil
	case frameFlush:
		l.post(frame{kind: frameFlushed})
		return nil
	case frameFlushed:
		return l.flushed()
	}
	if l.rank != 0 {
		return fmt.Errorf("%w: frame of kind %d, which only rank 0 sends", ErrProtocol, f.kind)
	}
	if f.kind == frameStart {
		return l.owner.start()
	}
	return l.takeGone(f)
}

func (l *link) takeJoin(f frame) error {
	k, err := parseJoin(f.body)
	if err != nil {
		return err
	}
	if _, ok := l.ids[f.id]; ok {
		return fmt.Errorf("%w: channel %d is joined twice", ErrProtocol, f.id)
	}
	if len(l.ids) >= maxChannels {
		return fmt.Errorf("%w: more than %d open channels", ErrLimit, maxChannels)
	}
	l.ids[f.id] = k
	return nil
}

func (l *link) takeGone(f frame) error {
	g, err := parseGone(f.body)
	if err != nil {
		return err
	}
	rank := int(f.id)
	if rank <= 0 || rank >= l.owner.size || rank == l.owner.rank {
		return fmt.Errorf("%w: rank %d is said to be gone", ErrProtocol, rank)
	}
	l.owner.told(rank, g)
	return nil
}

// writeLoop writes the queue until the link is down, or closing and empty.
func (l *link) writeLoop() {
	defer close(l.written)
	var w batch
	for {
		frames, more := l.next(w.spare())
		if !more {
			return
		}
		if len(frames) == 0 {
			l.endOfStream()
			return
		}
		l.sent()
		err := w.write(l.conn, frames)
		l.sent()
		if err != nil {
			l.mu.Lock()
			l.giveUp()
			l.mu.Unlock()
			return
		}
	}
}

// next waits for frames and takes all that are queued; none if the link closes
// and all is written. It returns false if the link is down.
func (l *link) next(spare []frame) ([]frame, bool) {
	for {
		l.mu.Lock()
		frames, state := l.queue, l.state
		l.busy = len(frames) > 0
		if state == linkDown {
			l.mu.Unlock()
			return nil, false
		}
		if l.busy || state == linkClosing {
			l.queue = spare
			l.mu.Unlock()
			return frames, true
		}
		l.mu.Unlock()
		<-l.wake
	}
}

// endOfStream tells the peer that no more will come. The reading goroutine waits
// for the peer to close in turn: closing now, with bytes of the peer unread,
// would reset the connection and could cost the peer what was just written.
func (l *link) endOfStream() {
	if c, ok := l.conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // an error means that the connection is gone already
		return
	}
	_ = l.conn.Close()
}

// giveUp stops writing after an error. The reading goroutine goes on to the end
// of what the peer has sent before it died, and meets the error there. The caller
// holds mu.
func (l *link) giveUp() {
	if l.state == linkOpen {
		l.state = linkClosing
	}
	l.queue = nil
}

// batch is the memory of the writing goroutine.
type batch struct {
	frames  []frame
	vec     [][]byte
	headers []byte // and short bodies; vec points into it
}

// spare returns queue memory for the next round.
func (w *batch) spare() []frame {
	s := w.frames
	w.frames = nil
	return s
}

// write writes frames, several to one system call where they are small. Long
// bodies are not copied.
func (w *batch) write(conn net.Conn, frames []frame) error {
	for rest := frames; len(rest) > 0; {
		rest = rest[w.compose(rest):]
		pending := net.Buffers(w.vec)
		if _, err := pending.WriteTo(conn); err != nil {
			return err
		}
		clear(w.vec)
	}
	clear(frames)
	if cap(frames) <= maxSpare {
		w.frames = frames[:0]
	}
	return nil
}

// compose fills vec with the first of frames and returns how many.
func (w *batch) compose(frames []frame) int {
	w.vec, w.headers = w.vec[:0], w.headers[:0]
	n, bytes, from := 0, 0, 0
	for n < len(frames) && (n == 0 || bytes < maxWrite && len(w.vec) < maxVec) {
		f := &frames[n]
		n++
		bytes += frameHeader + len(f.body)
		w.headers = f.appendHeader(w.headers)
		if len(f.body) < copyBelow {
			w.headers = append(w.headers, f.body...)
			continue
		}
		// If headers moves while it grows, earlier slices keep the old memory.
		w.vec = append(w.vec, w.headers[from:len(w.headers):len(w.headers)], f.body)
		from = len(w.headers)
	}
	if from < len(w.headers) {
		w.vec = append(w.vec, w.headers[from:])
	}
	return n
}
