package carrier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/weft-fabric/weft/fabric"
)

// fabricFlight is a link that was dialled, or is being. Concurrent calls share it.
type fabricFlight struct {
	link    *fabricLink
	waiters int           // Fabric.mu guards it
	done    chan struct{} // closed when it is known how it went
	err     error         // set before done is closed
}

// over reports whether it is known how it went.
func (fl *fabricFlight) over() bool {
	select {
	case <-fl.done:
		return true
	default:
		return false
	}
}

// Dial returns an open link to the endpoint at a: one that was dialled before, or a new
// one. It returns when the peer has answered: it is there, and speaks this protocol. ctx bounds the wait; an endpoint that nobody
// reads does not answer. Errors are *LinkErrors that wrap ErrVersion, ErrLimit, ErrClosed,
// ErrPeerClosed (the peer is closing), an error of package fabric (ErrUnreachable, ErrPeerGone) or the
// context's.
func (f *Fabric) Dial(ctx context.Context, a fabric.Address) (Link, error) {
	refuse := func(err error) (Link, error) {
		return nil, &LinkError{Op: "dial", Peer: string(a), Err: err}
	}
	if ctx.Err() != nil {
		return refuse(context.Cause(ctx))
	}
	fl, fresh, err := f.board(a)
	if err != nil {
		return refuse(err)
	}
	if fresh {
		fl.link.goOn()
	}
	err = f.await(ctx, fl)
	f.leave(fl, err)
	if err != nil {
		return refuse(err)
	}
	return fl.link, nil
}

// board joins the flight to an address, or starts one, whose link has a hello to send.
func (f *Fabric) board(a fabric.Address) (fl *fabricFlight, fresh bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, false, ErrClosed
	case f.broken != nil:
		return nil, false, f.broken
	}
	if fl := f.flights[a]; fl != nil && fl.link.isOpen() {
		fl.waiters++
		return fl, false, nil
	}
	if len(f.links) >= f.config.MaxLinks {
		return nil, false, fmt.Errorf("%w: %d links", ErrLimit, len(f.links))
	}
	number, err := f.config.Domain.Insert(a)
	if err != nil {
		return nil, false, cause(err)
	}
	p, err := f.peerFor(number)
	if err != nil {
		return nil, false, err
	}
	key := linkKey{id: rand.Uint64(), dialled: true}
	for f.links[key] != nil {
		key.id = rand.Uint64()
	}
	l := f.newLink(key, p)
	l.queue = append(l.queue, blob{kind: unitHello})
	fl = &fabricFlight{link: l, waiters: 1, done: make(chan struct{})}
	l.flight, l.address = fl, a
	f.flights[a] = fl
	return fl, true, nil
}

// await waits for the end of a flight. In manual mode it is what moves it.
func (f *Fabric) await(ctx context.Context, fl *fabricFlight) error {
	for f.manual && !fl.over() {
		if err := f.wait(ctx, fl.done); err != nil && !fl.over() {
			return err
		}
	}
	select {
	case <-fl.done:
		return fl.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave ends a wait for a flight; one that nobody waits for is given up.
func (f *Fabric) leave(fl *fabricFlight, err error) {
	f.mu.Lock()
	fl.waiters--
	last := fl.waiters == 0
	f.mu.Unlock()
	if err != nil && last && !fl.over() {
		fl.link.fail("dial", err)
	}
}

// welcomed opens a link that was dialled. The caller has the turn.
func (f *Fabric) welcomed(l *fabricLink, u *unit) error {
	if u.version != unitVersion {
		return fmt.Errorf("%w: %d, not %d", ErrVersion, u.version, unitVersion)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != linkOpen { // it was given up
		return nil
	}
	l.greeting = false
	close(l.flight.done)
	return nil
}

// adopt notes by which number the peer of a link is known that we have dialled. It may
// be another than that of its address: it was connected before, or its name stands for it.
func (f *Fabric) adopt(l *fabricLink, from fabric.Peer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.peerFor(from)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peer.links--
	p.links++
	l.peer = p
	return nil
}

// refused is why a peer does not want a link.
func refused(u *unit) error {
	switch u.code {
	case refusedVersion:
		return fmt.Errorf("%w: %d, not %d", ErrVersion, u.version, unitVersion)
	case refusedClosed:
		return ErrPeerClosed
	case refusedLimit:
		return fmt.Errorf("%w: of the peer, which has too many links", ErrLimit)
	}
	return fmt.Errorf("%w: refused with code %d", ErrProtocol, u.code)
}

// bury ends a link that is down, and tells of it. The caller has the turn.
func (f *Fabric) bury(l *fabricLink) {
	f.unlist(l)
	l.mu.Lock()
	queue := l.queue[l.head:]
	l.queue, l.head, l.queued, l.bytes = nil, 0, 0, 0
	why, told := l.err, l.told
	lost := l.err
	if l.asked && l.complete {
		lost = nil
	}
	greeting := l.greeting
	l.mu.Unlock()
	for i := range queue {
		if queue[i].done != nil {
			queue[i].done(fmt.Errorf("record not sent: %w", why))
		}
	}
	if !told {
		f.say(l.peer.number, unit{kind: unitEnd, dialler: l.key.dialled, link: l.key.id})
	}
	l.read.drop()
	if greeting {
		l.flight.err = dialCause(why)
		close(l.flight.done)
	} else {
		f.config.Handler.Lost(l, lost)
	}
	close(l.done)
}

// dialCause takes the form off the error of a link that did not come to be: Dial gives
// it its own.
func dialCause(err error) error {
	if le, ok := errors.AsType[*LinkError](err); ok {
		return le.Err
	}
	return err
}

// unlist takes a link off the books.
func (f *Fabric) unlist(l *fabricLink) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.links, l.key)
	delete(f.byToken, l.token)
	if f.flights[l.address] == l.flight && l.flight != nil {
		delete(f.flights, l.address)
	}
	l.peer.links--
	l.mu.Lock()
	nobody := l.greeting && errors.Is(l.err, fabric.ErrUnreachable)
	l.mu.Unlock()
	if nobody && l.peer.links == 0 {
		f.forget(l.peer)
	}
	f.todo.mu.Lock()
	delete(f.todo.closing, l)
	f.todo.mu.Unlock()
}
