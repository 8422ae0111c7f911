package carrier

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// acceptLoop takes in peers until the endpoint closes.
func (c *CM) acceptLoop() {
	tcp.Accept(c.ctx, c.listener.AcceptTCP, c.receive, func(err error, retry time.Duration) {
		c.config.Logger.Warn("carrier: cannot accept", "err", err, "retry", retry)
	})
}

// receive greets a connection, if there is room for it.
func (c *CM) receive(conn *net.TCPConn) {
	if err := c.admit(); err != nil {
		c.config.Logger.Warn("carrier: peer turned away", "peer", conn.RemoteAddr(), "err", err)
		_ = conn.Close()
		return
	}
	c.wg.Go(func() { c.greet(conn) })
}

// greet makes a link out of an accepted connection, or closes it.
func (c *CM) greet(conn *net.TCPConn) {
	remote := tcp.AddrPort(conn.RemoteAddr())
	reader := c.newReader(conn)
	p, a, err := c.passive(conn, reader)
	if err == nil {
		err = c.enter(conn, reader, p, a)
	}
	if err != nil {
		c.forsake(a, remote, err)
		c.refused(remote, err)
		c.dismiss()
		_ = conn.Close()
	}
}

// refused logs why an accepted connection was closed. A dialler that gives up
// before its first byte, or whose connection crossed ours, did nothing wrong.
func (c *CM) refused(remote netip.AddrPort, err error) {
	err = &LinkError{Op: "handshake", Peer: remote.String(), Err: err}
	switch {
	case errors.Is(err, ErrClosed):
	case errors.Is(err, errCrossed), errors.Is(err, io.EOF):
		c.config.Logger.Debug("carrier: connection dropped", "err", err)
	default:
		c.config.Logger.Warn("carrier: peer refused", "err", err)
	}
}

// enter starts the link of an accepted connection, also for those who wait for a.
func (c *CM) enter(conn *net.TCPConn, reader *inflow, p peer, a *flight) error {
	c.at("entering")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	l := c.start(conn, reader, p)
	if a != nil {
		a.link = l
		c.settle(a)
	}
	return nil
}

// passive is the accepting side of the handshake: preamble and CMH come in, ours
// is the first thing that goes out, for a real peer blocks until it has it
// (docs/wire/cm.md §3). The flight that it returns, also with an error, is to be
// ended.
func (c *CM) passive(conn *net.TCPConn, reader *inflow) (peer, *flight, error) {
	stop, err := bound(c.ctx, conn, c.config.HandshakeTimeout)
	if err != nil {
		return peer{}, nil, err
	}
	pre, err := reader.Preamble()
	if err != nil {
		return peer{}, nil, stop(err)
	}
	h, err := reader.Handshake()
	if err != nil {
		return peer{}, nil, stop(err)
	}
	c.at("greeted")
	a, err := c.clear(conn, h.ID)
	if err != nil {
		return peer{}, a, stop(err)
	}
	c.at("answering")
	if !h.Answer {
		if _, err := conn.Write(c.hello(true).Append(nil)); err != nil {
			return peer{}, a, stop(err)
		}
	}
	return peerOf(conn, h, pre.Port, true, false), a, stop(nil)
}

// peerOf sums up a handshake.
func peerOf(conn net.Conn, h cm.Handshake, port uint16, inbound, weft bool) peer {
	p := peer{
		local:   tcp.AddrPort(conn.LocalAddr()),
		remote:  tcp.AddrPort(conn.RemoteAddr()),
		inbound: inbound,
		id:      h.ID,
		port:    port,
		release: ReleaseNewer,
	}
	switch {
	case h.ID == cm.ID210:
		p.release = Release210
	case weft:
		p.release = ReleaseWeft
	}
	return p
}

// bound limits what is done with conn from here on by a time, unless it is 0, and
// by ctx. stop lifts both again, so that a link has no timer; it returns ErrClosed
// if ctx has ended, else its argument.
func bound(ctx context.Context, conn net.Conn, limit time.Duration) (stop func(error) error, err error) {
	if limit > 0 {
		if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
			return nil, err
		}
	}
	release := tcp.EndWith(ctx, conn)
	return func(err error) error {
		if release(nil) != nil {
			return ErrClosed
		}
		if err != nil {
			return err
		}
		return conn.SetDeadline(time.Time{})
	}, nil
}
