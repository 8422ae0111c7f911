package carrier

import (
	"context"
	"net"
)

// flight is one connection on its way to being a link, shared by all that want
// that peer: an attempt of ours to connect, or the connection of a peer that we
// are about to answer. What is below done is guarded by CM.mu; the results
// do not change once done is closed.
type flight struct {
	target  target
	inbound bool // the peer dialled; there is nothing to cancel
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{} // closed when link, err or next is set

	waiters int
	said    *net.TCPConn // set once we have introduced ourselves to a Weft peer: it may answer
	held    int          // connections of the same peer that wait for the end of this one
	link    *link
	err     error
	next    *flight // the connection of the peer that took its place
	heir    *flight // next, until the one that waited takes it over
	again   bool    // err is that of a connection of the peer: an attempt may fare better
}

// flightKey says which attempts are one. A Weft process is known by its ID,
// whatever address a contact names.
func (t target) flightKey() target {
	if t.weft && t.id != 0 {
		return target{id: t.id, weft: true}
	}
	return t
}

// over reports whether the flight has ended. The caller holds CM.mu.
func (f *flight) over() bool { return f.link != nil || f.err != nil || f.next != nil }

// settle ends f, unless it has ended. The caller holds mu and has set one of the
// results.
func (c *CM) settle(f *flight) {
	if key := f.target.flightKey(); c.flights[key] == f {
		delete(c.flights, key)
	}
	close(f.done)
}
