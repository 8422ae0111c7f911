package carrier

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

// explainAfter is when an attempt says what it waits for.
const explainAfter = 3 * time.Second

// dialRounds bounds how often one Dial starts over because a connection of the
// peer, which was to take the place of ours, came to nothing.
const dialRounds = 8

// Dial implements Endpoint. An attempt ends when nobody waits for it any more, or
// after Config.DialTimeout; but one in which a Weft peer may already have
// answered goes on, because that peer may be using the link.
func (c *CM) Dial(ctx context.Context, contact cm.Contact) (Link, error) {
	t, err := targetOf(contact)
	if err != nil {
		return nil, fmt.Errorf("carrier: dial: %w", err)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, &LinkError{Op: "dial", Peer: t.addr.String(), Err: err}
	}
	for round := 1; ; round++ {
		l, f, err := c.board(t)
		if l != nil || err != nil {
			return asLink(l, err)
		}
		l, again, err := c.await(ctx, f, t)
		if again && round < dialRounds {
			continue
		}
		return asLink(l, err)
	}
}

// await waits for the end of f, and of what takes its place. again says that the
// failure is not one of an attempt at t.
func (c *CM) await(ctx context.Context, f *flight, t target) (l *link, again bool, err error) {
	for {
		select {
		case <-f.done:
		case <-ctx.Done():
			if l := c.leave(f); l != nil {
				return l, false, nil // it would stay open, and nobody's
			}
			return nil, false, &LinkError{Op: "dial", Peer: t.addr.String(), Err: context.Cause(ctx)}
		}
		if f.next == nil {
			return f.link, f.err != nil && (f.again || f.target != t), f.err
		}
		f = f.next
	}
}

// asLink keeps a nil *link from becoming a Link that is not nil.
func asLink(l *link, err error) (Link, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// board finds an open link, or joins or starts an attempt.
func (c *CM) board(t target) (*link, *flight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, &LinkError{Op: "dial", Peer: t.addr.String(), Err: ErrClosed}
	}
	if l := c.links.find(t, t.id == c.id); l != nil {
		return l, nil, nil
	}
	f := c.flights[t.flightKey()]
	if f == nil {
		f = &flight{target: t, done: make(chan struct{})}
		f.ctx, f.cancel = context.WithTimeout(c.ctx, c.config.DialTimeout)
		c.flights[t.flightKey()] = f
		c.wg.Go(func() { c.fly(f) })
	}
	f.waiters++
	return nil, f, nil
}

// leave ends one caller's interest in f; the last one stops it, if nobody but us
// knows of it. A later caller starts afresh. An attempt that has succeeded
// meanwhile is the caller's: leave returns its link.
func (c *CM) leave(f *flight) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiters--
	if f.over() || f.inbound || f.said != nil || f.waiters > 0 {
		return f.link
	}
	f.cancel()
	if key := f.target.flightKey(); c.flights[key] == f {
		delete(c.flights, key)
	}
	return nil
}

// fly makes one attempt and tells those who wait.
func (c *CM) fly(f *flight) {
	defer f.cancel()
	wait := time.AfterFunc(c.explain, func() {
		c.config.Logger.Warn("carrier: still connecting", "peer", f.target.addr, "limit", c.config.DialTimeout)
	})
	conn, reader, p, err := c.active(f)
	wait.Stop()
	c.at("landing")
	c.land(f, conn, reader, p, err)
}

// land ends an attempt: in one step it is no longer one, and its link is there
// for the next caller.
func (c *CM) land(f *flight, conn *net.TCPConn, reader *inflow, p peer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case f.over(): // the peer's connection took its place
		err = errYielded
	case c.closed:
		err = ErrClosed
	case err == nil && f.waiters == 0 && f.said == nil:
		err = context.Canceled
	}
	if err != nil && conn != nil {
		_ = conn.Close()
	}
	switch {
	case f.over():
		return
	case err == nil:
		c.conns++
		f.link = c.start(conn, reader, p)
		c.settle(f)
	case f.held > 0 && !c.closed: // the peer has got through to us
		f.heir = c.yield(f, f.target.id)
	default:
		f.err = &LinkError{Op: "dial", Peer: f.target.addr.String(), Err: err}
		c.settle(f)
	}
}

// active connects and is the dialling side of the handshake. On error it may
// return a connection, which is to be closed.
func (c *CM) active(f *flight) (*net.TCPConn, *inflow, peer, error) {
	c.at("connecting")
	dialer := net.Dialer{KeepAliveConfig: c.config.keepAlive()}
	raw, err := dialer.DialContext(f.ctx, "tcp4", f.target.addr.String())
	if err != nil {
		return nil, nil, peer{}, err
	}
	conn := raw.(*net.TCPConn)
	reader := c.newReader(conn)
	stop, err := bound(f.ctx, conn, 0) // the context has the time limit
	if err != nil {
		return conn, nil, peer{}, err
	}
	c.at("connected")
	if err := c.commit(f, conn); err != nil {
		return conn, nil, peer{}, stop(err)
	}
	h, err := c.introduce(conn, reader)
	if err := stop(err); err != nil {
		if f.ctx.Err() != nil {
			err = fmt.Errorf("no handshake: %w", context.Cause(f.ctx))
		}
		return conn, nil, peer{}, err
	}
	if h.ID != f.target.expected() {
		return conn, nil, peer{}, fmt.Errorf("%w: it has CM ID %#x, the contact names %#x", ErrWrongPeer, h.ID, f.target.expected())
	}
	return conn, reader, peerOf(conn, h, f.target.addr.Port(), false, f.target.weft), nil
}

// introduce sends preamble and CMH in one write and waits for the peer's CMH. A
// real peer compares the port of the preamble with that of our contact
// (docs/wire/cm.md §7), so the published one is named.
func (c *CM) introduce(conn net.Conn, reader *inflow) (cm.Handshake, error) {
	opening := cm.Preamble{Port: c.publicPort}.Append(nil)
	if _, err := conn.Write(c.hello(false).Append(opening)); err != nil {
		return cm.Handshake{}, err
	}
	c.at("introduced")
	h, err := reader.Handshake()
	if err == nil && !h.Answer {
		_, err = conn.Write(c.hello(true).Append(nil))
	}
	return h, err
}
