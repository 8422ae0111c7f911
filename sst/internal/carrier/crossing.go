package carrier

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// When two Weft processes dial each other at the same moment, one connection must
// come of it. What decides is the moment in which a dialler introduces itself
// (commit): before it, the attempt is nobody's business but ours and is given up
// for a connection of the peer. After it, the peer may answer at any time; then
// the attempt of the side with the greater CM ID counts. That side does not answer
// the other's connection until its own attempt has ended, and closes it if that
// has succeeded. The other side answers, and gives its own attempt up.
//
// Nobody waits in a circle: only the greater ID waits, and the lesser answers it
// at once. If the attempt of the greater ID fails, or takes too long, the
// connection that it held is answered after all.
//
// Only an attempt at a contact with Weft's mark takes part, and the CM ID of a
// connection is compared with that contact's: an ADIOS2 peer is answered at once,
// as ever.

var (
	// errYielded ends an attempt whose place a connection of the peer has taken.
	errYielded = errors.New("the peer's own connection was taken")
	// errCrossed refuses a connection of a peer that ours has reached.
	errCrossed = errors.New("crossed with a connection of ours")
)

// doubtLimit is how long an accepted connection waits for its end if there is a
// link to the peer that we dialled: most likely the peer has already given it up
// for that one. It is reached only if that link is dead and we do not know.
const doubtLimit = time.Second

// at tells a test how far a connection has come.
func (c *CM) at(stage string) {
	if c.probe != nil {
		c.probe(stage)
	}
}

// commit allows f to introduce itself on conn.
func (c *CM) commit(f *flight, conn *net.TCPConn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.over() {
		return errYielded
	}
	if f.target.weft && f.target.id != 0 && f.target.id != c.id && f.ctx.Err() == nil {
		f.said = conn
	}
	return nil
}

// claim is what is to be done with an accepted connection.
type claim struct {
	answer *flight // answer; those who wait for the peer get the link
	hold   *flight // wait for the end of this attempt, and ask again
	doubt  *link   // wait a little whether the connection ends, or this link does
}

// claimFor decides about a connection of the process with CM ID id. patient
// says that it can wait longer for an attempt of ours.
func (c *CM) claimFor(id uint32, patient, doubt bool) claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[target{id: id, weft: true}]
	switch {
	case id == c.id || f != nil && f.inbound: // ourselves, or a peer that dials twice
		return claim{}
	case f == nil:
		if l := c.links.dialledWeft(id); l != nil && doubt {
			return claim{doubt: l}
		}
	case f.said != nil && c.id > id && patient:
		f.held++
		return claim{hold: f}
	}
	return claim{answer: c.yield(f, id)}
}

// yield gives f, if there is one, up for a connection of the peer. The caller
// holds mu.
func (c *CM) yield(f *flight, id uint32) *flight {
	a := &flight{target: target{id: id, weft: true}, inbound: true, done: make(chan struct{})}
	c.flights[a.target] = a
	if f == nil {
		return a
	}
	f.next = a
	f.cancel()
	if f.said != nil {
		_ = f.said.Close() // before the peer is answered, so that it sees the end first
	}
	c.settle(f)
	return a
}

// clear waits until a connection of the process with CM ID id may be answered.
// The flight that it returns, if any, is to be ended by enter or forsake.
func (c *CM) clear(conn *net.TCPConn, id uint32) (*flight, error) {
	patience := time.NewTimer(c.config.DialTimeout / 2)
	defer patience.Stop()
	patient, doubt := true, true
	for {
		switch cl := c.claimFor(id, patient, doubt); {
		case cl.hold != nil:
			c.at("held")
			select {
			case <-cl.hold.done:
			case <-patience.C:
				patient = false
			case <-c.ctx.Done():
			}
			if a, err := c.release(cl.hold); a != nil || err != nil {
				return a, err
			}
		case cl.doubt != nil:
			c.at("doubted")
			if err := c.outlast(conn, cl.doubt); err != nil {
				return nil, err
			}
			doubt = false
		default:
			return cl.answer, nil
		}
		// Waiting must not eat up the time of the handshake itself.
		if err := conn.SetDeadline(time.Now().Add(c.config.HandshakeTimeout)); err != nil {
			return nil, err
		}
	}
}

// release ends the wait for f. If f has failed, the first that waited for it gets
// its place.
func (c *CM) release(f *flight) (*flight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.held--
	a := f.heir
	f.heir = nil
	if a == nil && f.link != nil {
		return nil, errCrossed
	}
	if c.closed {
		return a, ErrClosed
	}
	return a, nil
}

// outlast waits whether conn ends, for as long as l is up, and no longer than
// doubtLimit. The peer has nothing to say before it is answered.
func (c *CM) outlast(conn *net.TCPConn, l *link) error {
	ctx, cancel := context.WithTimeout(c.ctx, doubtLimit)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-l.done:
		case <-ctx.Done():
		}
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // any time in the past
	}()
	n, err := conn.Read(make([]byte, 1))
	cancel()
	<-watched
	if n > 0 {
		return fmt.Errorf("%w: data before the handshake is over", ErrProtocol)
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		if c.ctx.Err() != nil {
			return ErrClosed
		}
		return nil
	}
	return errCrossed
}

// forsake ends the flight of a connection that came to nothing: those who wait
// for it make an attempt of their own.
func (c *CM) forsake(a *flight, remote netip.AddrPort, err error) {
	if a == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.err = &LinkError{Op: "dial", Peer: remote.String(), Err: err}
	a.again = !c.closed
	c.settle(a)
}
