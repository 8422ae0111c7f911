package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric"
)

// maxRounds bounds how often a connection is tried that the peer ends each time: an honest one that comes and goes does so a few times.
const maxRounds = 100

// Peer is a process that was reached.
type Peer struct {
	of      *Fabric
	contact Contact
	users   int           // Reach without Close; Fabric.mu guards it
	turn    chan struct{} // a token: who has it connects
	number  atomic.Uint64 // the fabric.Peer that is connected; 0 before and after. Written with Fabric.mu
}

// Reach connects to the process of a contact, maps its probe and compares it. The same contact gives the same Peer while it is in use; for each Reach there is one
// Peer.Close. The context bounds the wait for the other process, which answers by itself unless it is stopped or in manual mode.
//
// It fails with fabric.ErrUnreachable where nobody has the address any more, or another process than the contact's, or that is on another node, in
// another network namespace, of another user; fabric.ErrInvalid (what is no contact or address), fabric.ErrPeerGone (it ended meanwhile), fabric.ErrNoMemory (no
// descriptors), fabric.ErrClosed, and the context's error. Nothing is left of one that failed.
func (f *Fabric) Reach(ctx context.Context, contact string) (*Peer, error) {
	c, err := ParseContact(contact)
	if err != nil {
		return nil, err
	}
	p, err := f.peer(c)
	if err != nil {
		return nil, fmt.Errorf("native: reach %s: %w", c.Address, err)
	}
	if err := p.reach(ctx); err != nil {
		p.Close()
		if _, ok := errors.AsType[*fabric.OpError](err); ok { // which says the address
			return nil, fmt.Errorf("native: %w", err)
		}
		return nil, fmt.Errorf("native: reach %s: %w", c.Address, err)
	}
	return p, nil
}

// peer is that of a contact, with one more user.
func (f *Fabric) peer(c Contact) (*Peer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fabric.ErrClosed
	}
	p := f.peers[c]
	if p == nil {
		p = &Peer{of: f, contact: c, turn: make(chan struct{}, 1)}
		f.peers[c] = p
	}
	p.users++
	return p, nil
}

// reach connects, or finds that the peer still answers.
func (p *Peer) reach(ctx context.Context) error {
	if p.number.Load() == 0 {
		return p.connect(ctx, 0)
	}
	v, err := p.view(ctx, p.contact.Key, 0, nonceSize)
	if err != nil {
		return err
	}
	defer v.Release()
	return p.compare(v.Bytes())
}

// View maps n bytes of the memory that the peer names key, from offset at on. They can be read until release, also after the peer's death and after
// Close, and whatever becomes of the memory over there; writing to them is a fault. release may be called from any goroutine, with
// any lock held, and more than once; it does not wait.
//
// The context bounds the wait for the peer, of which there is none but for the first view after a new connection, or of memory that is new there.
// It fails with
//
//   - fabric.ErrPeerGone: the process died, or closed its Fabric; the error may also tell how another connection failed, fabric.ErrUnreachable mostly
//   - fabric.ErrKey: it has no such memory any more, or not n bytes at that offset
//   - fabric.ErrNoMemory: 4096 blocks of the peer are in use here, or there are no descriptors
//   - fabric.ErrNotSupported: the memory cannot be mapped
//   - fabric.ErrInvalid: n or at; fabric.ErrClosed: the Peer, or the Fabric
//   - the context's error
func (p *Peer) View(ctx context.Context, key fabric.Key, at uint64, n int) (b []byte, release func(), err error) {
	v, err := p.view(ctx, key, at, n)
	if err != nil {
		return nil, nil, fmt.Errorf("native: %w", err)
	}
	return v.Bytes(), v.Release, nil
}

// view gets a view, over a new connection if the one before has ended. A process that lives ends a connection too: when it was a reader
// of this one as well, and has closed its Peer. So who finds the connection ended makes a new one, which shows what is so.
func (p *Peer) view(ctx context.Context, key fabric.Key, at uint64, n int) (*fabric.View, error) {
	for round := 1; ; round++ {
		number := fabric.Peer(p.number.Load())
		if number == 0 {
			return nil, fmt.Errorf("view of %s: the peer: %w", p.contact.Address, fabric.ErrClosed)
		}
		v, err := p.of.view(ctx, number, key, at, n)
		switch {
		case err == nil:
			return v, nil
		case round == maxRounds:
			return nil, err
		case fabric.Peer(p.number.Load()) != number: // somebody has connected, or closed, meanwhile
			continue
		case !ended(err):
			return nil, err
		}
		if again := p.connect(ctx, number); again != nil {
			return nil, fmt.Errorf("%w; and connecting again: %w", err, again)
		}
	}
}

// ended says that the connection has ended, and no more than that.
func ended(err error) bool {
	return errors.Is(err, fabric.ErrPeerGone) && !errors.Is(err, fabric.ErrProtocol)
}

// connect inserts the peer anew in place of the number was, unless somebody has, and proves who it is.
func (p *Peer) connect(ctx context.Context, was fabric.Peer) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if now := fabric.Peer(p.number.Load()); now != was {
		return nil
	}
	for round := 1; ; round++ {
		number, err := p.of.insert(p.contact.Address)
		if err != nil {
			return err
		}
		err = p.prove(ctx, number)
		if err == nil {
			err = p.adopt(number)
		}
		p.of.leave(number)
		if err == nil || !ended(err) || round == maxRounds {
			return err
		}
	}
}

// prove maps the probe and compares it.
func (p *Peer) prove(ctx context.Context, number fabric.Peer) error {
	v, err := p.of.view(ctx, number, p.contact.Key, 0, nonceSize)
	switch {
	case errors.Is(err, fabric.ErrKey):
		return fmt.Errorf("another process has this address: it does not know the probe: %w: %w", fabric.ErrUnreachable, err)
	case err != nil:
		return err
	}
	defer v.Release()
	return p.compare(v.Bytes())
}

func (p *Peer) compare(probe []byte) error {
	if !bytes.Equal(probe, p.contact.Nonce[:]) {
		return fmt.Errorf("another process has this address: its probe has other bytes: %w", fabric.ErrUnreachable)
	}
	return nil
}

// adopt makes the number the peer's. Who has the turn calls it.
func (p *Peer) adopt(number fabric.Peer) error {
	f := p.of
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.users == 0 {
		return fmt.Errorf("the peer: %w", fabric.ErrClosed)
	}
	p.number.Store(uint64(number))
	return nil
}

// Close ends one use of the peer. Views stay readable until they are released. The connection stays as long as both processes have their Fabric:
// it may serve others, and the other process, which nobody can know here without asking it.
func (p *Peer) Close() {
	f := p.of
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.users == 0 {
		return
	}
	if p.users--; p.users > 0 {
		return
	}
	delete(f.peers, p.contact)
	p.number.Store(0)
	f.tidy()
}

// view is the domain's, which may live on without an endpoint.
func (f *Fabric) view(ctx context.Context, number fabric.Peer, key fabric.Key, at uint64, n int) (*fabric.View, error) {
	v, err := f.domain.View(ctx, number, key, at, n)
	if err == nil {
		return v, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fabric.ErrClosed
	}
	return nil, err
}

// insert gives the number of an address, to be tried until leave. Different contacts may have one address, and so one
// number; and it may be that of a peer that has connected by itself.
func (f *Fabric) insert(a fabric.Address) (fabric.Peer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	number, err := f.domain.Insert(a)
	if err == nil {
		f.tried[number]++
	}
	return number, err
}

// leave ends a try.
func (f *Fabric) leave(number fabric.Peer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried[number]--
	f.tidy()
}

// connected is the state of a peer as fabric.Domain.Peers says it.
const connected = "connected"

// tidy removes numbers that were tried and are of no use: not connected, or not any more. One that is connected stays, since removing it ends the connection for whoever
// uses it as well. The caller holds mu.
func (f *Fabric) tidy() {
	if f.closed {
		return
	}
	used := make(map[fabric.Peer]bool, len(f.peers))
	for _, p := range f.peers {
		used[fabric.Peer(p.number.Load())] = true
	}
	for _, s := range f.domain.Peers() {
		if tries, ours := f.tried[s.Peer]; ours && tries == 0 && !used[s.Peer] && s.State != connected {
			delete(f.tried, s.Peer)
			_ = f.domain.Remove(s.Peer) // it can only be gone already
		}
	}
}
