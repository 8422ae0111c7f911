package shm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/sys"
)

// connect starts what makes the pair: at once for an endpoint with itself, else by a call.
func (p *pair) connect() {
	if p.state != pairNew {
		return
	}
	var err error
	if p.peer.why != nil {
		err = p.peer.why
	} else if p.peer.addr.agrees(p.ep.addr) {
		err = p.connectSelf()
	} else {
		err = p.dial()
	}
	if err != nil {
		p.end(err, nil)
	}
}

// connectSelf makes the pair of an endpoint with itself: what it writes is what it reads.
func (p *pair) connectSelf() error {
	if err := p.prepare(); err != nil {
		return err
	}
	p.self = true
	p.inc, p.uid, p.pid = p.ep.inc, p.d.uid, os.Getpid()
	lanes, err := again(p.mine.file)
	if err != nil {
		return systemError(err)
	}
	home, err := again(p.d.home.file)
	if err != nil {
		_ = lanes.Close()
		return systemError(err)
	}
	if p.bell.FD != nil {
		fd, err := p.bell.Dup()
		if err != nil {
			_, _ = lanes.Close(), home.Close()
			return systemError(err)
		}
		p.peerBell = sys.Eventfd{FD: fd}
	} else if err := p.prepareSelf(); err != nil {
		_, _ = lanes.Close(), home.Close()
		return err
	}
	return p.up(lanes, home)
}

// again maps a file of ours a second time, as a peer does.
func again(f *file) (*sys.Mapping, error) {
	return sys.Map(f.fd, 0, len(f.m.Bytes()), false)
}

// dial calls the peer. The answer comes later, but whether anybody is there is known now.
func (p *pair) dial() error {
	d, a := p.d, p.peer.addr
	if a.boot != d.boot.String() {
		return fmt.Errorf("%w: it is on another node, or was there before a restart", provider.ErrUnreachable)
	}
	if !d.opts.allows(a.uid, d.uid) {
		return fmt.Errorf("%w: it belongs to user %d, which the option allow-uid does not allow", provider.ErrUnreachable, a.uid)
	}
	sock, err := d.reach(a)
	if err != nil {
		return err
	}
	cred, err := sock.Peer()
	if err == nil && cred.UID != a.uid { // names are anybody's to take
		err = fmt.Errorf("%w: user %d listens at a name of user %d", provider.ErrUnreachable, cred.UID, a.uid)
	}
	if err == nil {
		err = p.prepare()
	}
	if err == nil {
		p.uid, p.pid, p.other = cred.UID, cred.PID, isForeign(cred)
		err = p.introduce(kindHello, sock)
	}
	if err == nil {
		p.token, err = d.watch(sock.FD, p)
	}
	if err != nil {
		_ = sock.Close()
		return systemError(err)
	}
	p.sock, p.state = sock, pairDialing
	return nil
}

// reach connects to where an endpoint listens: the abstract name in our own network namespace, else the folder.
func (d *domain) reach(a address) (sys.Socket, error) {
	folder := cmp.Or(a.path, d.opts.folder)
	where := "in another network namespace, and nobody listens for it"
	if a.net == d.net || a.net == 0 {
		sock, err := sys.ConnectUnix(socketName(a.uid, a.name), sys.SeqPacket)
		if a.net != 0 || folder == "" || !errors.Is(err, syscall.ECONNREFUSED) {
			return sock, callError(err)
		}
		where = "not in this network namespace, and nobody listens for it"
	}
	if folder == "" {
		return sys.Socket{}, fmt.Errorf("%w: it is in another network namespace, and has no folder", provider.ErrUnreachable)
	}
	sock, err := sys.ConnectUnix(folderName(folder, a.name), sys.SeqPacket)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
		err = fmt.Errorf("%w: it is %s in the folder %s: %w", provider.ErrUnreachable, where, folder, err)
	}
	return sock, callError(err)
}

// callError says that an endpoint was not reached, and why, unless it is for want of descriptors.
func callError(err error) error {
	switch {
	case err == nil || errors.Is(err, provider.ErrUnreachable):
		return err
	case errors.Is(err, sys.ErrWouldBlock):
		return fmt.Errorf("%w: too many wait for it to answer", provider.ErrUnreachable)
	}
	if err = systemError(err); errors.Is(err, provider.ErrNoMemory) {
		return err
	}
	return graded(provider.ErrUnreachable, err)
}

// introduce says who we are.
func (p *pair) introduce(kind uint16, sock sys.Socket) error {
	d := p.d
	h := hello{
		kind: kind, inc: p.ep.inc, want: p.inc, boot: d.boot, layout: ourLayout, uid: d.uid,
		life: p.lend(), net: d.net, from: p.ep.addr.name, to: p.peer.addr.name, path: p.ep.addr.path,
	}
	fds := []*sys.FD{d.home.fd, p.mine.fd}
	if p.bell.FD != nil && p.trusts() {
		h.features |= hasBell
		fds = append(fds, p.bell.FD)
	}
	_, err := sock.Send(h.Append(nil), fds...)
	return err
}

// trusts says whether the peer may share a bell with us: what is shared its other holder can make block, and then a read or
// write of it stops this process. A process of the same user could stop us anyway; others ring by packets.
func (p *pair) trusts() bool { return p.uid == p.d.uid }

// answer takes what the peer said, and says who we are.
func (p *pair) answer(h *hello, fds []*sys.FD, sock sys.Socket) error {
	p.inc = h.inc
	p.peer.learn(h)
	if err := p.introduce(kindWelcome, sock); err != nil {
		sys.CloseAll(fds)
		_ = sock.Close()
		return err
	}
	token, err := p.d.watch(sock.FD, p)
	if err != nil {
		sys.CloseAll(fds)
		_ = sock.Close()
		return err
	}
	p.sock, p.token = sock, token
	return p.take(h, fds)
}

// take maps what the peer has sent with its hello or welcome, and the pair is up. The descriptors are used up, whatever
// happens.
func (p *pair) take(h *hello, fds []*sys.FD) (err error) {
	defer sys.CloseAll(fds)
	defer func() {
		if err != nil {
			p.untake()
		}
	}()
	home, err := mapForeign(fds[0], homeSize, false)
	if err != nil {
		return err
	}
	lanes, err := mapForeign(fds[1], lanesSize, false)
	if err != nil {
		_ = home.Close()
		return err
	}
	p.life = lifeIn(home, h.life)
	rest := fds[2:]
	if h.features&hasBell != 0 {
		if !p.trusts() {
			_ = rest[0].Close()
		} else if p.peerBell, err = sys.ReceivedEventfd(rest[0]); err != nil {
			_, _ = home.Close(), lanes.Close()
			return err
		}
		rest[0] = nil
		rest = rest[1:]
	}
	for i, s := range h.segments {
		if err := p.addSegment(s, rest[i]); err != nil {
			_, _ = home.Close(), lanes.Close()
			return err
		}
	}
	return p.up(lanes, home)
}

// untake lets go of what came with a welcome that was no good: another one may come.
func (p *pair) untake() {
	if p.peerBell.FD != nil {
		_ = p.peerBell.Close()
		p.peerBell = sys.Eventfd{}
	}
	for i, s := range p.segments {
		delete(p.segments, i)
		s.dropped = true
		s.unmap()
	}
}

// ready reads what the peer says on the socket.
func (p *pair) ready(e sys.Events) {
	if e.Has(sys.WriteReady) && p.jammed {
		p.announce()
		p.parts()
	}
	p.listen(heardInTurn)
}

// How many messages of a peer are read: in its turn, so that one that never stops talking does not keep us from the others, and
// by who needs all that was there, more than a socket holds.
const (
	heardInTurn = 32
	heardAtOnce = 512
)

// catchUp reads all that the peer has said by now.
func (p *pair) catchUp() { p.listen(heardAtOnce) }

// listen reads up to n messages. The rest is read by the next poll.
func (p *pair) listen(n int) {
	for ; p.token != 0 && p.hear(); n-- {
		if n == 1 {
			p.d.news.Store(true)
			p.d.core.Later()
			return
		}
	}
}

// hear reads one message; false if there was none.
func (p *pair) hear() bool {
	var b [maxMessage]byte
	n, fds, err := p.packet(b[:])
	switch {
	case errors.Is(err, sys.ErrWouldBlock):
		return false
	case errors.Is(err, sys.ErrDescriptors):
		if p.starved.hopeless() {
			p.badMessage(err)
		} else {
			p.d.starve(p.sock.FD, p.token, err)
		}
		return false
	}
	p.d.core.Later() // it may be what somebody waits for who would have been woken by it
	switch {
	case errors.Is(err, sys.ErrMessage):
		p.badMessage(err)
		return false
	case err != nil:
		why := fmt.Errorf("%w: it has closed or died", provider.ErrPeerGone)
		if !errors.Is(err, io.EOF) {
			why = fmt.Errorf("%w: %w", provider.ErrPeerGone, err)
		}
		if p.state != pairDialing {
			p.away()
		}
		p.lost(why)
		return false
	case p.state == pairEnded:
		return true
	}
	p.starved.ends()
	kind, body, err := parseHead(b[:n])
	if err == nil {
		err = p.understand(kind, body, fds)
	} else {
		sys.CloseAll(fds)
	}
	if err != nil {
		p.badMessage(err)
	}
	return true
}

// packet takes one message off the socket. Of one to a pair that has ended nothing counts but that it is not the end: its descriptors are not taken, as there
// may be no room for them.
func (p *pair) packet(b []byte) (int, []*sys.FD, error) {
	if p.state != pairEnded {
		return p.sock.Take(b, maxSegments+3)
	}
	n, _, err := p.sock.Recv(b, 0)
	if errors.Is(err, sys.ErrMessage) {
		err = nil
	}
	return n, nil, err
}

// hungUp looks at the socket, and says whether the peer is gone.
func (p *pair) hungUp() bool {
	if !p.self {
		p.catchUp()
	}
	return p.state != pairUp || p.lostWhy != nil
}

// badMessage ends the pair for what the peer said.
func (p *pair) badMessage(err error) {
	if p.state == pairDialing {
		if errors.Is(err, sys.ErrDescriptors) {
			err = graded(provider.ErrNoMemory, err)
		}
		p.unreachable(graded(provider.ErrUnreachable, err))
		return
	}
	p.breach(err)
}

// understand does what a message says. The descriptors are used up.
func (p *pair) understand(kind uint16, body []byte, fds []*sys.FD) error {
	defer sys.CloseAll(fds)
	switch {
	case kind == kindRefuse:
		f, err := parseRefusal(body)
		if err == nil {
			p.refused(f)
		}
		return err
	case kind == kindWelcome && p.state == pairDialing:
		h, err := parseHello(kind, body)
		if err != nil {
			return err
		}
		return p.welcomed(h, fds)
	case kind == kindSegments && (p.state == pairUp || p.state == pairDraining):
		return p.moreSegments(body, fds)
	case kind == kindDrop && (p.state == pairUp || p.state == pairDraining):
		return p.fewerSegments(body)
	case kind == kindLane && (p.state == pairUp || p.state == pairDraining):
		return p.laneOffered(body, fds)
	case kind == kindBell && (p.state == pairUp || p.state == pairDraining):
		p.d.rungOnce()
		return nil
	}
	return fmt.Errorf("%w: kind %d out of turn", errMessage, kind)
}

// welcomed is the answer to our call.
func (p *pair) welcomed(h *hello, fds []*sys.FD) error {
	a := p.peer.addr
	var err error
	switch {
	case h.from != a.name || p.inc != 0 && h.inc != p.inc:
		err = fmt.Errorf("%w: another endpoint has this name now", provider.ErrUnreachable)
	case h.boot != p.d.boot || h.layout != ourLayout || len(fds) != h.descriptors():
		err = fmt.Errorf("%w: another layout", errMessage)
	}
	if err != nil {
		p.unreachable(graded(provider.ErrUnreachable, err))
		return nil
	}
	p.inc = h.inc
	p.peer.learn(h)
	return p.take(h, fds)
}

// refused is the other answer, or the word with which a pair ends.
func (p *pair) refused(f refusal) {
	if p.state == pairDialing {
		if f.code == refuseCrossing {
			// The peer's own call is on its way, or has arrived: it comes before the end of this socket, or, if it
			// fails, we are told by that.
			return
		}
		p.unreachable(fmt.Errorf("%w: it says: %s", provider.ErrUnreachable, f.text))
		return
	}
	p.saidEnd = true
	if p.state != pairDraining {
		p.lost(fmt.Errorf("%w: it says: %s", provider.ErrPeerGone, f.text))
	}
}
