package shm

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/internal/sys"
)

// pairState is how far a pair is.
type pairState uint8

const (
	pairNew      pairState = iota // nothing was tried
	pairDialing                   // we have called, and wait for the welcome
	pairUp                        // both have each other's memory
	pairDraining                  // the peer is gone; what it left in its data lane is still to be taken
	pairEnded
)

// pair is what one of our endpoints and one peer have together. The domain's lock guards it.
type pair struct {
	d       *domain
	ep      *endpoint
	peer    *peer
	state   pairState
	failed  error  // why it has ended
	lostWhy error  // the peer is gone, and what it left was not looked at yet
	self    bool   // it is of an endpoint with itself; connectSelf alone says so
	uid     uint32 // the peer's user
	other   bool   // the peer is another process
	lent    uint32 // our word of life that it watches, from 1 on; 0 is none
	life    life   // the peer's
	pid     int    // the peer's process, as the kernel says; 0 if it has no number here
	inc     uint64 // the peer's incarnation, once it is known

	// bootstrap
	sock   sys.Socket
	token  uint64
	parked *stranger

	// parting
	early   bool   // the peer was noticed by its word of life
	saidEnd bool   // the peer has said that it has ended the pair
	parted  bool   // the peer uses nothing of ours any more
	shut    bool   // we have said that we use nothing of the peer's any more
	lingers bool   // in d.parting
	word    []byte // what we have to say at the end
	copied  atomic.Uint64
	cut     atomic.Bool // copies outside of the lock stop

	hears []*provutil.Counter // of those who wait until the pair is up, or is not to be

	// memory
	mine      *lanes
	theirs    foreignLanes
	home      foreignHome
	hazards   hazards
	let       uint64 // what their word let had
	cross     cross
	segments  map[uint32]*foreignSegment
	foreign   foreign
	announced int // segments of ours that the peer was told of, or will not be
	untold    int // drops of ours, as announced
	jammed    bool
	starved   starvation

	// bells
	bell      sys.Eventfd // ours, which the peer rings
	bellToken uint64
	peerBell  sys.Eventfd
	selfBell  [2]sys.Socket // of a pair with oneself, without eventfds: the first end rings the second
	rung      uint64        // the epoch of the peer's for which we have rung

	rings
	growth      growth
	controlSent uint64 // records
	controlRead uint64
	wroteAt     uint64 // controlSent after the last part of a write
	saidAfter   uint64 // the last recAfter
	asked       int    // requests of ours without an answer

	seq      uint64
	live     opList     // posted and not ended, in order
	answers  opList     // our part in operations of the peer: receives and served writes
	notes    deque[*op] // writes whose bytes have moved, to tell of; for the data lane
	messages deque[*op] // to start, for the data lane
	rmas     deque[*op] // to start, for the control lane
	writing  []*op      // writes whose bytes are not all published, in order
	replies  deque[reply]
	saying   int // bytes of replies
	streams  deque[stream]
	flying   deque[flight]
	copies   deque[*op] // receives that copy out of the peer's arena
	growths  int        // of these, messages that grow: no later message overtakes them
	blocks   int        // bounce blocks out
	eager    int        // of these, with messages that wait for a receive
	served   int        // writes of the peer that run
	wanting  uint64     // what our word wants has

	late    int    // turns of drain
	waiting uint64 // bytes of unexpected messages, as counted against the bound
	users   int    // copies that run outside of the lock, and views
	dirty   bool   // in d.dirty
	active  bool   // in d.pairs
	reading bool   // in pollData
	obeying bool   // in pollControl
}

// newPair makes the pair, with nothing in it.
func (ep *endpoint) newPair(to *peer) *pair {
	p := &pair{d: ep.d, ep: ep, peer: to, inc: to.addr.inc}
	to.pairs = append(to.pairs, p)
	ep.pairs = append(ep.pairs, p)
	return p
}

// prepare makes our part: the lanes and the bell.
func (p *pair) prepare() error {
	if p.mine != nil {
		return nil
	}
	mine, err := newLanes(p.d.features)
	if err != nil {
		return systemError(err)
	}
	p.mine = mine
	p.hazards.lanes = mine
	if !p.d.features.Has(sys.EventFD) {
		return nil
	}
	if p.bell, err = sys.NewEventfd(p.d.features); err != nil {
		return systemError(err)
	}
	p.bellToken, err = p.d.watch(p.bell.FD, (*bell)(p))
	return systemError(err)
}

// bell is the pair as the source of its eventfd.
type bell pair

// ready takes the ring.
func (b *bell) ready(sys.Events) {
	_, _ = b.bell.Drain()
	b.d.rungOnce()
}

// selfBell is a pair with oneself as the source of its bell.
type selfBell pair

// ready takes the rings: there is one at most, since it rings once in an epoch, and those of epochs before.
func (b *selfBell) ready(sys.Events) {
	var one [1]byte
	for err := error(nil); err == nil; {
		_, _, err = b.selfBell[1].Recv(one[:], 0)
	}
	b.d.rungOnce()
}

// prepareSelf makes the bell of a pair with oneself, which has no socket that could ring instead of an eventfd.
func (p *pair) prepareSelf() (err error) {
	if p.selfBell[0], p.selfBell[1], err = sys.SocketPair(sys.SeqPacket); err != nil {
		return systemError(err)
	}
	p.bellToken, err = p.d.watch(p.selfBell[1].FD, (*selfBell)(p))
	return systemError(err)
}

// rungOnce begins a new epoch if we are armed: a peer rings once in each, and may have to ring again before we have been
// awake.
func (d *domain) rungOnce() {
	if d.epoch&1 == 1 {
		d.epoch += 2
		d.home.armed.Store(d.epoch)
	}
}

// activate has the pair polled.
func (p *pair) activate() {
	if !p.active {
		p.active = true
		p.d.pairs = append(p.d.pairs, p)
	}
}

// up starts the lanes when both sides' memory is there.
func (p *pair) up(lanesMap, homeMap *sys.Mapping) error {
	p.theirs = newForeignLanes(lanesMap)
	p.home = newForeignHome(homeMap)
	var err error
	if p.rings, err = newRings(p.mine, &p.theirs); err != nil {
		return err
	}
	p.d.arena.watch(&p.theirs)
	p.untold = p.d.arena.dropsNow()
	_ = p.mine.fd.Close() // the peer has its own
	p.meetCross()
	p.state = pairUp
	p.activate()
	p.d.vigil.watch(p, p.life)
	p.adoptAliases()
	p.d.stats.Peers++
	p.tell()
	if p.d.tracer.PeerUp != nil {
		p.d.tracer.PeerUp(p.peer.id, p.peer.text)
	}
	if s := p.parked; s != nil {
		s.close(refusal{code: refuseCrossing, text: "there is a connection already"})
	}
	p.announce()
	p.push()
	p.publish()
	return nil
}

// tell wakes who waits for news of the pair.
func (p *pair) tell() {
	for _, n := range p.hears {
		n.Done(nil)
	}
	p.hears = nil
}

// end ends the pair and everything of it with an error. word, if there is one, is sent to the peer. Views stay readable. It may
// be called more than once.
func (p *pair) end(why error, word *refusal) {
	if p.state == pairEnded {
		return
	}
	wasUp := p.state == pairUp || p.state == pairDraining
	if word != nil && p.state == pairUp && !p.self {
		p.word = word.Append(nil)
	}
	p.state, p.failed = pairEnded, why
	p.d.vigil.forget(p)
	p.unlend()
	if wasUp {
		p.d.stats.Peers--
	} else {
		p.hangUp()
	}
	p.failAll(why)
	p.failReceives(why)
	p.peer.pairs = without(p.peer.pairs, p)
	p.peer.unmeet()
	p.ep.pairs = without(p.ep.pairs, p)
	if p.active {
		p.d.pairs = without(p.d.pairs, p)
		p.active = false
	}
	p.tell()
	p.d.dead = append(p.d.dead, p)
	p.d.gone = true
	if wasUp {
		p.parts()
	}
	p.d.core.Later() // to be released
	if s := p.parked; s != nil {
		s.close(refusal{code: refuseClosed, text: "the peer was closed or removed"})
	}
}

func without[T comparable](list []T, v T) []T {
	if i := slices.Index(list, v); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// hangUp closes the socket of a pair that is not up.
func (p *pair) hangUp() {
	if p.token == 0 {
		return
	}
	p.d.unwatch(p.sock.FD, p.token)
	p.token = 0
	_ = p.sock.Close()
}

// release lets go of memory and descriptors that nobody uses any more. It is called some time after end: who ends a pair
// may be in the middle of reading from it.
func (p *pair) release() {
	if p.bellToken != 0 {
		fd := p.bell.FD
		if fd == nil {
			fd = p.selfBell[1].FD
		}
		p.d.unwatch(fd, p.bellToken)
		p.bellToken = 0
	}
	sys.CloseAll([]*sys.FD{p.bell.FD, p.peerBell.FD, p.selfBell[0].FD, p.selfBell[1].FD})
	for i, s := range p.segments {
		s.dropped = true
		if s.users == 0 {
			s.unmap()
			delete(p.segments, i)
		}
	}
	p.growth.release()
	if p.users > 0 {
		return // the last one does the rest
	}
	if p.mine != nil {
		p.mine.close()
	}
	if p.home.m != nil {
		_ = p.home.m.Close()
	}
	if p.theirs.m != nil && p.parted {
		_ = p.theirs.m.Close()
	}
}

// lost is the end of the pair by the peer: it says so, or the socket ends. What it has left in its lanes is good, so it is taken
// first. There may be both, one after the other.
func (p *pair) lost(why error) {
	switch p.state {
	case pairDialing:
		if p.inc == 0 {
			why = fmt.Errorf("%w: it has closed or died before it answered", provider.ErrUnreachable)
		}
		p.unreachable(why)
		return
	case pairUp:
	case pairDraining:
		p.buried()
		return
	default:
		p.parts()
		return
	}
	if p.lostWhy == nil {
		p.lostWhy = why
	}
	if p.reading || p.obeying {
		return // poll goes on with it
	}
	p.obeyRest()
	if p.state != pairUp { // it broke the protocol
		return
	}
	p.expire(p.lostWhy)
}

// obeyRest takes what is left in the control lane: as much as one can hold, since a peer that lives may go on.
func (p *pair) obeyRest() {
	for end := p.controlRead + controlSize/recordAlign; p.state == pairUp && int64(p.controlRead-end) < 0 && p.pollControl(); {
	}
}

// drain takes what is left in the lanes, as far as there is room for it, and ends the pair when all is
// taken and nothing more can come.
func (p *pair) drain() bool {
	moved := false
	for n := 0; p.state == pairDraining && (p.pollControl() || p.pollData()); n++ {
		moved = true
		if n == drainRounds { // the others' turn
			p.d.core.Later()
			break
		}
		if p.late++; p.late > 2*int(laneSize(laneSteps)+controlSize)/recordAlign { // it lives, and goes on
			p.end(p.peer.why, nil)
		}
	}
	switch {
	case p.state != pairDraining || !p.spent():
	case p.dying():
		p.d.gone = p.d.gone || moved // directed receives may have to end
	default:
		p.end(p.peer.why, nil)
		moved = true
	}
	return moved
}

// breach drops a peer that broke the protocol.
func (p *pair) breach(err error) {
	if !p.starved.since.IsZero() { // it has sent what is missing
		p.famish(err)
		return
	}
	why := fmt.Errorf("%w: %w: %w", provider.ErrPeerGone, provider.ErrProtocol, err)
	p.d.tell(slog.LevelWarn, "a peer broke the protocol and is dropped", "peer", p.peer.text, "error", err)
	p.d.bury(p.peer, why)
	if p.state == pairUp || p.state == pairDraining {
		p.away() // it is not waited for
	}
	p.end(why, &refusal{code: refuseLayout, text: err.Error()})
}

// unreachable ends a call that was not answered, unless the peer has called us meanwhile.
func (p *pair) unreachable(why error) {
	p.hangUp()
	p.state = pairNew
	if s := p.parked; s != nil {
		s.adopt(p)
		return
	}
	if q := p.ep.alias(p.peer); q != nil { // it is connected already, under another of its addresses
		p.moveTo(q)
		return
	}
	if errors.Is(why, provider.ErrPeerGone) { // this very incarnation, which will not come again
		p.d.bury(p.peer, why)
	}
	p.end(why, nil)
}
