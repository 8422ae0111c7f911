package loop

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// pair is what two endpoints share, or one with itself.
type pair struct {
	ends  [2]*endpoint
	lanes [2]lane     // from that end
	links [2]*link    // of that end; the lock of its domain guards it
	why   error       // set before down
	down  atomic.Bool // one of the ends is gone
}

// far is the side of the peer.
func (p *pair) far(side int) int {
	if p.self() {
		return 0
	}
	return 1 - side
}

// self says that the pair is of one endpoint with itself: it has one lane and one link.
func (p *pair) self() bool { return p.ends[0] == p.ends[1] }

// packetKind is what a packet is.
type packetKind uint8

const (
	message packetKind = iota
	tagged
	written // after a Write with RemoteData
)

// packet is what travels in a lane.
type packet struct {
	kind    packetKind
	hasData bool
	ack     bool // the sender waits to hear that it was delivered
	tag     uint64
	data    uint64
	len     uint64
	op      uint64 // of the sender, for the ack
	bytes   []byte // the message, in the lane's memory; nil if it was lent
	loan    *loan  // the message, still with its sender
	loanNo  uint64
}

// lane is the way from one endpoint to another: a queue with a bound, which only its sender fills and its receiver
// empties.
type lane struct {
	mu      sync.Mutex
	queue   fifo[packet]
	limit   int
	buffers provutil.Buffers
	told    bool // the receiver knows that there are packets
	short   bool // the sender waits for room
}

// buffer returns memory for a message that is to travel in the lane.
func (l *lane) buffer(n int) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffers.Get(n)
}

// giveBack takes back the memory of a message.
func (l *lane) giveBack(b []byte) {
	if b == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buffers.Put(b)
}

// hasRoom says whether a packet may be put in; if not, the sender will be told when there is.
func (l *lane) hasRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.len() < l.limit {
		return true
	}
	l.short = true
	return false
}

// put appends a packet, for which there is room, and says whether the receiver must be told.
func (l *lane) put(p packet) (tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.push(p)
	tell = !l.told
	l.told = true
	return tell
}

// peek returns the oldest packet. Without one, the next put tells.
func (l *lane) peek() (packet, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.len() == 0 {
		l.told = false
		return packet{}, false
	}
	return *l.queue.first(), true
}

// pop takes the oldest packet out, and says whether the sender must be told of room.
func (l *lane) pop() (tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.pop()
	tell = l.short && l.queue.len() <= l.limit/2 // not for each packet
	if tell {
		l.short = false
	}
	return tell
}

// loan is a sender's buffer that the receiver copies from. It is used again for other messages: a receiver names
// the one it means by a number.
type loan struct {
	mu     sync.Mutex
	no     uint64
	buffer provutil.Vector
	next   *loan // spare
}

// lend starts a loan.
func (b *loan) lend(v provutil.Vector) (no uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buffer = v
	return b.no
}

// relend says that the same bytes are described by other segments.
func (b *loan) relend(v provutil.Vector) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buffer = v
}

// end ends it: nobody reads the buffer at return, or later.
func (b *loan) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.no++
	b.buffer = provutil.Vector{}
}

// open says whether the loan goes on.
func (b *loan) open(no uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.no == no
}

// copyOut copies at most limit bytes from an offset of the lent buffer. False if the loan has ended.
func (b *loan) copyOut(no uint64, dst provutil.Vector, dstOffset, offset, limit uint64) (uint64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.no != no {
		return 0, false
	}
	return provutil.CopyVector(dst, dstOffset, b.buffer, offset, limit), true
}

// eventKind is what an event tells.
type eventKind uint8

const (
	newPair eventKind = iota // a peer has made a pair with one of our endpoints
	packets                  // packets have come
	room                     // there is room for packets again
	ack                      // a message was delivered
	gone                     // the peer is gone
)

// event is what one domain tells another. side is the receiver's in the pair.
type event struct {
	kind eventKind
	side int
	pair *pair
	op   uint64
	err  error
}

// mailbox is where a domain's events come in.
type mailbox struct {
	mu     sync.Mutex
	events []event
	spare  []event
	any    atomic.Bool
	closed bool
	engine *engine
}

// put tells, and wakes the domain if it sleeps.
func (m *mailbox) put(e event) (rang bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.events = append(m.events, e)
	m.any.Store(true)
	return m.engine.ring()
}

// close drops what comes from now on; nobody rings any more at return.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// take takes all events out. The slice is good until the next take; the caller clears it, for events hold peers alive.
func (m *mailbox) take() []event {
	if !m.any.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	got := m.events
	m.events, m.spare = m.spare[:0], got
	m.any.Store(false)
	return got
}

// peerState is what a domain knows of a peer.
type peerState struct {
	why   error   // it is gone
	named bool    // the program has inserted it
	seen  bool    // as link.seen, of endpoints that have closed
	ghost bool    // in domain.ghosts
	links []*link // one for each of our endpoints that has to do with it
}

func (s *peerState) link(ep *endpoint) *link {
	for _, l := range s.links {
		if l.ep == ep {
			return l
		}
	}
	return nil
}

// goneError is what operations towards a dead peer end with.
func goneError(why error) error {
	if why == nil {
		return provider.ErrPeerGone
	}
	return why
}
