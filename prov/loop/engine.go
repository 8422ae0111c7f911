package loop

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/sys"
)

// engine is what moves a domain's operations; the methods of provutil.Engine.
type engine struct {
	d     *domain
	armed atomic.Bool
	bell  chan struct{} // capacity 1
	fd    atomic.Pointer[sys.Eventfd]
}

// ring wakes the engine if it is armed, once for each time it was. It says whether it did.
func (e *engine) ring() bool {
	if !e.armed.Load() || !e.armed.CompareAndSwap(true, false) {
		return false
	}
	e.Unpark()
	if fd := e.fd.Load(); fd != nil {
		_ = fd.Ring()
	}
	return true
}

// Poll moves what can move.
func (e *engine) Poll() bool {
	d := e.d
	d.budget = pieceBytes
	moved := false
	events := d.mail.take()
	for _, ev := range events {
		moved = true
		d.handle(ev)
	}
	clear(events)
	if d.restart != nil {
		d.resume()
	}
	for _, list := range []*fifo[*link]{&d.inbound, &d.stalled} {
		for range list.len() {
			if d.receive(list.pop()) {
				moved = true
			}
		}
	}
	for range d.transfers.len() {
		moved = true
		d.carry(d.transfers.pop())
	}
	for range d.outbound.len() {
		l := d.outbound.pop()
		l.inOutbound = false
		if d.pump(l) {
			moved = true
		}
	}
	return moved
}

// Arm makes peers ring.
func (e *engine) Arm() bool {
	e.armed.Store(true)
	d := e.d
	return d.mail.any.Load() || d.inbound.len() > 0 || d.transfers.len() > 0 || d.outbound.len() > 0
}

// Disarm ends it.
func (e *engine) Disarm() {
	e.armed.Store(false)
	if fd := e.fd.Load(); fd != nil {
		_, _ = fd.Drain()
	}
}

// Park sleeps until somebody rings.
func (e *engine) Park() { <-e.bell }

// Unpark ends Park.
func (e *engine) Unpark() {
	select {
	case e.bell <- struct{}{}:
	default:
	}
}

// Descriptor is an eventfd, made for the first who asks: without it nothing of the kernel is on this provider's way.
func (e *engine) Descriptor() (int, error) {
	fd := e.fd.Load()
	if fd == nil {
		made, err := sys.NewEventfd(sys.Features{})
		if err != nil {
			return -1, err
		}
		fd = &made
		e.fd.Store(fd)
	}
	return fd.Int(), nil
}

// close gives the descriptor back, when no peer can ring any more.
func (e *engine) close() {
	if fd := e.fd.Load(); fd != nil {
		_ = fd.Close()
	}
}

// handle takes note of an event.
func (d *domain) handle(ev event) {
	if ev.kind == newPair {
		d.adopt(ev.pair, ev.side)
		return
	}
	l := ev.pair.links[ev.side]
	if l == nil || l.ep.closed {
		return
	}
	switch ev.kind {
	case packets:
		d.expect(l)
	case room:
		d.wantPump(l)
	case ack:
		if o := l.ep.ops.Get(ev.op); o != nil && o.link == l {
			l.ep.finish(ev.op, o, ev.err)
		}
	case gone:
		d.lost(l, ev.err)
	}
}
