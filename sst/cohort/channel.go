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
	quick   bool    // handler is a QuickHandler
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

// push adds an event, and sees to it that it is handled. The caller holds the lock.
func (c *channel) push(e event) {
	c.add(e)
	c.rouse()
}

// add adds an event. The caller holds the lock, and rouses or claims the channel.
func (c *channel) add(e event) {
	if c.closed {
		return
	}
	c.inbox = append(c.inbox, e)
	c.bytes += e.cost()
}

// rouse sees to it that a goroutine calls the handler, while there is something
// to tell. The caller holds the lock.
func (c *channel) rouse() {
	if c.claim() {
		c.hub.calls.Go(c.run)
	}
}

// claim reports whether there is something to tell and nobody at it: then the caller
// has to call the handler, after it has given up the lock.
func (c *channel) claim() bool {
	if c.handler == nil || c.running || c.closed || len(c.inbox) == 0 {
		return false
	}
	c.running = true
	return true
}

// maxHere is how many calls the goroutine makes that reads from a rank.
const maxHere = 64

// runHere is run for the goroutine that reads from a rank, if the handler is quick.
// Other ranks may add to the inbox all the while, so it does a bounded part.
func (c *channel) runHere() {
	done := 0
	for range maxHere {
		var more bool
		if done, more = c.handle(done); !more {
			return
		}
	}
	c.hub.calls.Go(func() { c.runOn(done) })
}

// run calls the handler until nothing is left. One goroutine does so at a time.
func (c *channel) run() { c.runOn(0) }

// runOn is run after a call of the given cost.
func (c *channel) runOn(done int) {
	for more := true; more; {
		done, more = c.handle(done)
	}
}

// handle makes one call, if there is something to tell. It is given the cost of the
// call before, and returns that of its own.
func (c *channel) handle(done int) (cost int, more bool) {
	e, ok := c.next(done)
	if !ok {
		return 0, false
	}
	if e.lost != nil {
		c.handler.Lost(e.from, e.lost)
	} else {
		c.handler.Message(e.from, e.msg)
	}
	return e.cost(), true
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
		if cap(c.inbox) > maxSpare {
			c.inbox = nil
		}
		return event{}, false
	}
	e := c.inbox[0]
	c.inbox[0] = event{}
	if len(c.inbox) > 1 {
		c.inbox = c.inbox[1:]
	} else {
		c.inbox = c.inbox[:0]
	}
	return e, true
}

// end stops the calls. The caller holds the lock.
func (c *channel) end() {
	c.closed = true
	c.inbox, c.bytes = nil, 0
	c.hub.room.Broadcast()
}

// Send implements Channel.
func (c *channel) Send(to int, msg []byte) error { return c.send(to, msg, now) }

// SendLater implements Delayer.
func (c *channel) SendLater(to int, msg []byte) error { return c.send(to, msg, later) }

func (c *channel) send(to int, msg []byte, u urgency) error {
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
	if err := h.mover.message(to, c, msg, u); err != nil {
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
