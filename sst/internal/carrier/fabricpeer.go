package carrier

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/weft-fabric/weft/fabric"
)

// A peer is known from the first hello until it is gone, also when it has no link any
// more: what it sends to links that have ended here is dropped then, and whoever was
// never heard of has no business to send anything else.

// maxPerPeer bounds the links of one peer. Two are ordinary, and those that are closing.
const maxPerPeer = 64

// watchTag is that of the receive by which a peer's death is heard of. Nobody sends
// such a message.
const watchTag = 0x5745_4654_4c49_4e4b

// fabricPeer is a process that has, or had, links with us.
type fabricPeer struct {
	number  fabric.Peer
	token   uint64
	address string
	links   int // Fabric.mu guards it
}

// peerFor returns the entry of a peer, and makes one if there is none: then its death
// is watched for, by a receive that is for it alone and that it does not fill. Such a
// receive ends when everything has been received that the peer has sent. The caller
// holds mu.
func (f *Fabric) peerFor(number fabric.Peer) (*fabricPeer, error) {
	if p := f.peers[number]; p != nil {
		return p, nil
	}
	address, err := f.config.Domain.Address(number)
	if err != nil {
		return nil, cause(err)
	}
	f.tokens++
	p := &fabricPeer{number: number, token: f.tokens, address: string(address)}
	err = f.config.Endpoint.RecvTagged(fabric.Op{
		Peer: number, Tag: watchTag, Flags: fabric.Directed, Context: forWatch<<contextShift | p.token,
	})
	switch {
	case errors.Is(err, fabric.ErrAgain):
		return nil, fmt.Errorf("%w: %d peers", ErrLimit, len(f.watches))
	case err != nil:
		return nil, cause(err)
	}
	f.peers[number], f.watches[p.token] = p, p
	return p, nil
}

// forget gives up a peer that was never there. The caller holds mu.
func (f *Fabric) forget(p *fabricPeer) {
	if f.peers[p.number] == p {
		delete(f.peers, p.number)
		f.config.Endpoint.Cancel(forWatch<<contextShift | p.token)
	}
}

// watchTokens lists the watches that have not ended.
func (f *Fabric) watchTokens() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	tokens := make([]uint64, 0, len(f.watches))
	for t := range f.watches {
		tokens = append(tokens, t)
	}
	return tokens
}

// watchEnded is the end of a peer, or of our watching it. The caller has the turn.
func (f *Fabric) watchEnded(token uint64, err error) {
	f.mu.Lock()
	p := f.watches[token]
	delete(f.watches, token)
	f.mu.Unlock()
	if p == nil {
		return
	}
	if err == nil || errors.Is(err, fabric.ErrTruncated) {
		f.cut(p.number, fmt.Errorf("%w: a tagged message", ErrProtocol))
	}
	f.mu.Lock()
	if f.peers[p.number] == p {
		delete(f.peers, p.number)
	}
	f.mu.Unlock()
	if err != nil {
		f.failAll(p, cause(err)) // if it was not cut
	}
}

// failAll takes all links with a peer down. The caller has the turn.
func (f *Fabric) failAll(p *fabricPeer, err error) {
	f.mu.Lock()
	var links []*fabricLink
	for _, l := range f.links {
		if l.peer == p {
			links = append(links, l)
		}
	}
	f.mu.Unlock()
	for _, l := range links {
		l.handAll() // what came before
		l.fail("read", err)
	}
}

// cut drops a peer that sends what it must not. The caller has the turn.
func (f *Fabric) cut(number fabric.Peer, err error) {
	f.unfit++
	if f.unfit <= 8 || bits.OnesCount64(f.unfit) == 1 { // who comes again and again does not fill the log
		address, _ := f.config.Domain.Address(number)
		f.later("carrier: peer dropped", "peer", string(address), "error", err, "dropped so far", f.unfit)
	}
	f.mu.Lock()
	p := f.peers[number]
	f.mu.Unlock()
	if p != nil {
		f.failAll(p, err)
	}
	_ = f.config.Domain.Remove(number) // it may be gone already
}

// greet answers the hello of a peer. The caller has the turn.
func (f *Fabric) greet(from fabric.Peer, u *unit) {
	refuse := unit{kind: unitRefusal, link: u.link, version: unitVersion}
	l, err := f.accept(from, u)
	switch {
	case err == nil:
		l.goOn()
		return
	case errors.Is(err, ErrVersion):
		refuse.code = refusedVersion
	case errors.Is(err, ErrClosed):
		refuse.code = refusedClosed
	case errors.Is(err, ErrLimit):
		refuse.code = refusedLimit
	case errors.Is(err, ErrProtocol):
		f.cut(from, err)
		return
	default: // it is gone
		return
	}
	f.say(from, refuse)
}

// accept makes a link of a hello. It has a welcome to send.
func (f *Fabric) accept(from fabric.Peer, u *unit) (*fabricLink, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := linkKey{id: u.link}
	switch {
	case !u.dialler || u.seq != 0:
		return nil, fmt.Errorf("%w: hello of the wrong side, or with number %d", ErrProtocol, u.seq)
	case f.links[key] != nil:
		return nil, fmt.Errorf("%w: a second hello for one link", ErrProtocol)
	case u.version != unitVersion:
		return nil, ErrVersion
	case f.closed:
		return nil, ErrClosed
	case len(f.links) >= f.config.MaxLinks:
		return nil, ErrLimit
	}
	p, err := f.peerFor(from)
	if err != nil {
		return nil, err
	}
	if p.links >= maxPerPeer {
		return nil, ErrLimit
	}
	l := f.newLink(key, p)
	l.read.next = 1
	l.queue = append(l.queue, blob{kind: unitWelcome})
	return l, nil
}
