package provutil

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Bell is the descriptor of a completion queue: readable after Ring until Clear, and while the engine's descriptor
// that it was made with is.
type Bell interface {
	Ring()
	Clear()
	Fd() int
	Close() error
}

// Descriptor is a file descriptor for an outside event loop; see TryWait.
func (q *CQ) Descriptor() (int, error) {
	c := q.core
	c.Lock()
	defer c.Unlock()
	switch {
	case q.closed:
		return -1, provider.ErrClosed
	case q.bell != nil:
		return q.bell.Fd(), nil
	case c.bell == nil:
		return -1, fmt.Errorf("descriptor of a completion queue: %w", provider.ErrNotSupported)
	}
	engine := -1
	if c.manual { // nobody else sleeps on it
		fd, err := c.engine.Descriptor()
		if err != nil {
			return -1, err
		}
		engine = fd
	}
	b, err := c.bell(engine)
	if err != nil {
		return -1, err
	}
	q.bell = b
	return b.Fd(), nil
}

// TryWait arms the descriptor. False means: do not wait, Read first.
func (q *CQ) TryWait() bool {
	c := q.core
	c.Lock()
	defer c.Unlock()
	if q.bell == nil || q.closed {
		return false
	}
	q.bell.Clear()
	if q.n == 0 && c.poll() {
		c.Later() // it may have taken the ring that was for the sleeper
		return false
	}
	if q.n > 0 || q.room || q.untried {
		q.room, q.untried = false, false
		return false
	}
	if c.manual && c.armed {
		// The event loop may be told of edges only: what has rung is forgotten, so that the next ring is one.
		c.disarm()
	}
	if c.settle() {
		c.Later() // who is parked relied on it that the engine is armed
		c.rearm()
		return false
	}
	q.ringing = true
	if c.manual && !q.listed {
		q.listed = true
		c.ringers = append(c.ringers, q)
	}
	return true
}

// rearm arms the engine again if an event loop waits for it: in manual mode another call may have polled meanwhile,
// and nobody else arms. Locked.
func (c *Core) rearm() {
	if len(c.ringers) == 0 {
		return
	}
	c.ringers = slices.DeleteFunc(c.ringers, func(q *CQ) bool {
		q.listed = q.ringing
		return !q.ringing
	})
	if len(c.ringers) == 0 || c.armed || c.stopped || c.parker != nil || !c.arm() {
		return
	}
	for _, q := range c.ringers { // something has come: let the loops look
		q.announce()
	}
}

func (q *CQ) closeBell() error {
	if q.bell == nil {
		return nil
	}
	b := q.bell
	q.bell, q.ringing = nil, false
	return b.Close()
}
