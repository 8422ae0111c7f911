package cohort

import (
	"context"
	"fmt"
)

// channel is one rank's end of a channel. All fields are guarded by the lock of
// its hub.
type channel struct {
	hub     *hub
	key     key
	id      uint32  // by which this rank calls it on the wire
	handler Handler // nil until joined: the inbox is kept for it
	inbox   []event
	bytes   int // in the inbox and in the running call, with what each costs
	running bool
	closed  bool
	left    map[int]struct{} // ranks that have left the channel
}

// event is one call of a handler.
type event struct {
	from int
	msg  []byte
	lost error // not nil: the rank is gone
}

func (e *event) cost() int { return eventCost + len(e.msg) }

// push adds an event. The caller holds the lock.
func (c *channel) push(e event) {
	if c.closed {
		return
	}
	c.inbox = append(c.inbox, e)
	c.bytes += e.cost()
	c.rouse()
}

// rouse sees to it that a goroutine calls the handler, while there is something
// to tell. The caller holds the lock.
func (c *channel) rouse() {
	if c.handler != nil && !c.running && !c.closed && len(c.inbox) > 0 {
		c.running = true
		c.hub.calls.Go(c.run)
	}
}

// run calls the handler until nothing is left. One goroutine does so at a time.
func (c *channel) run() {
	done := 0 // cost of the last call
	for {
		e, ok := c.next(done)
		if !ok {
			return
		}
		if e.lost != nil {
			c.handler.Lost(e.from, e.lost)
		} else {
			c.handler.Message(e.from, e.msg)
		}
		done = e.cost()
	}
}

// next takes an event out of the inbox, and what is done off the books.
func (c *channel) next(done int) (event, bool) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if done > 0 && !c.closed {
		c.bytes -= done
		c.hub.room.Broadcast()
	}
	if c.closed || len(c.inbox) == 0 {
		c.running = false
		c.inbox = nil
		return event{}, false
	}
	e := c.inbox[0]
	c.inbox[0] = event{}
	c.inbox = c.inbox[1:]
	return e, true
}

// end stops the calls. The caller holds the lock.
func (c *channel) end() {
	c.closed = true
	c.inbox, c.bytes = nil, 0
	c.hub.room.Broadcast()
}

// Send implements Channel.
func (c *channel) Send(to int, msg []byte) error {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case c.closed || h.closed:
		return c.sending(to, ErrClosed)
	case to < 0 || to >= h.size:
		return c.sending(to, fmt.Errorf("%w: the cohort has %d ranks", ErrRank, h.size))
	case to == h.rank:
		return c.sending(to, fmt.Errorf("%w: it is this rank", ErrRank))
	case to != 0 && h.rank != 0:
		return c.sending(to, fmt.Errorf("%w: rank %d sends to rank 0 only", ErrRank, h.rank))
	case h.gone[to] != nil:
		return c.sending(to, h.gone[to])
	}
	if err := h.mover.message(to, c, msg); err != nil {
		return c.sending(to, err)
	}
	return nil
}

func (c *channel) sending(to int, err error) error {
	return fmt.Errorf("channel %q: sending to rank %d: %w", c.key.name, to, err)
}

// Close implements Channel.
func (c *channel) Close() error {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.closed {
		return nil
	}
	c.end()
	if h.closed { // to the others we are dead
		return nil
	}
	h.forget(c)
	h.mover.left(c)
	return nil
}

// Flush implements Flusher.
func (c *channel) Flush(ctx context.Context) error {
	c.hub.mu.Lock()
	arrivals := c.hub.mover.flush()
	c.hub.mu.Unlock()
	for _, arrived := range arrivals {
		select {
		case <-arrived:
		case <-ctx.Done():
			return fmt.Errorf("channel %q: flushing: %w", c.key.name, context.Cause(ctx))
		}
	}
	return nil
}
