package provutil

import (
	"context"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// waiter is one wait that runs. It is in the list of its object from begin to end, and in Core.asleep while
// it sleeps. The lock guards it but for the channel.
type waiter struct {
	ch       chan struct{} // capacity 1: wakes it from sleep
	signal   bool          // CQ.Signal is for this one
	room     bool          // room for posts came while it waited
	told     bool          // of a completion; it has not looked yet
	target   uint64        // of a counter
	failures uint64        // of a counter, that earlier waits have told of
	reminds  *CQ           // whose waits it tells of room once more, when it is time
	timer    *time.Timer   // for that

	of, sleep links // lists
}

// waitable is what can be waited for.
type waitable interface {
	// over says whether w's wait has an end, for the caller to tell which. Locked.
	over(w *waiter) bool
}

// newWaiter returns a clean waiter. Locked.
func (c *Core) newWaiter() *waiter {
	w := c.spare
	if w == nil {
		w = &waiter{ch: make(chan struct{}, 1)}
		w.of.self, w.sleep.self = w, w
		return w
	}
	c.spare = w.of.next.owner()
	w.of.next = nil
	return w
}

// freeWaiter takes back a waiter that is in no list. Locked.
func (c *Core) freeWaiter(w *waiter) {
	select {
	case <-w.ch:
	default:
	}
	w.signal, w.room, w.told, w.target, w.failures, w.reminds = false, false, false, 0, 0, nil
	w.of.next = nil
	if c.spare != nil {
		w.of.next = &c.spare.of
	}
	c.spare = w
}

// wake ends the sleep of w. Locked.
func (c *Core) wake(w *waiter) {
	if c.parker == w {
		c.engine.Unpark()
		return
	}
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// wakeAll wakes everybody. Locked.
func (c *Core) wakeAll() {
	for w := c.asleep.first(); w != nil; w = w.sleep.following() {
		c.wake(w)
	}
	if c.parker != nil {
		c.engine.Unpark()
	}
}

// waitFor polls and then sleeps until q is over for w. The error is that of ctx, or ErrClosed of a Core that
// stopped. Locked, and unlocks meanwhile.
func (c *Core) waitFor(ctx context.Context, q waitable, w *waiter) error {
	defer c.handOver()
	for tries := 0; ; tries++ {
		switch {
		case q.over(w):
			return nil
		case c.stopped:
			return provider.ErrClosed
		}
		if tries == 0 {
			c.pollOnce() // what is there counts, also when ctx has ended
			if q.over(w) {
				c.watch()
				return nil
			}
		}
		if err := ctx.Err(); err != nil {
			c.watch()
			return err
		}
		if c.ladder(q, w) {
			c.watch()
			return nil
		}
		if c.stopped { // while it polled: nobody would wake it
			continue
		}
		if w.reminds != nil && w.reminds.remind.Over() {
			w.reminds.tellRoom() // this one too
			c.watch()
			return nil
		}
		if c.manual && c.parker == nil {
			c.parkHere(ctx, w)
		} else {
			c.sleepHere(ctx, w)
		}
	}
}

// sleepHere sleeps until w is woken. Locked, and unlocks meanwhile.
func (c *Core) sleepHere(ctx context.Context, w *waiter) {
	if c.parker == nil && c.spinning == 0 && c.settle() {
		c.poll()
		c.Later() // if that is all, nobody else would arm
		return
	}
	c.asleep.add(&w.sleep)
	alarm := w.alarm()
	c.mu.Unlock()
	select {
	case <-w.ch:
	case <-ctx.Done():
	case <-alarm:
	}
	if alarm != nil {
		w.timer.Stop()
	}
	c.mu.Lock()
	w.sleep.remove()
}

// alarm is sent to when w is to remind of room; nil if it never is. Locked.
func (w *waiter) alarm() <-chan time.Time {
	pause, some := w.pause()
	switch {
	case !some:
		return nil
	case w.timer == nil:
		w.timer = time.NewTimer(pause)
	default:
		w.timer.Reset(pause)
	}
	return w.timer.C
}

// pause is how long w may sleep; false if as long as it wants. Locked.
func (w *waiter) pause() (time.Duration, bool) {
	if w.reminds == nil {
		return 0, false
	}
	return w.reminds.remind.Sleeps()
}

// parkHere is sleepHere for the wait that parks in the engine, in manual mode. Locked, and unlocks meanwhile.
func (c *Core) parkHere(ctx context.Context, w *waiter) {
	if !c.armed && c.arm() {
		c.poll()
		return
	}
	c.parker = w
	if c.tracer.Sleep != nil {
		c.tracer.Sleep()
	}
	pause, bounded := w.pause()
	c.mu.Unlock()
	c.parkFor(ctx, pause, bounded)
	c.mu.Lock()
	c.parker = nil
	c.woken()
	if c.stopped {
		close(c.vacant)
		return
	}
	c.poll()
}

// parkFor parks until something comes, or ctx ends, or, if it is bounded, the pause. Unlocked.
func (c *Core) parkFor(ctx context.Context, pause time.Duration, bounded bool) {
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, c.engine.Unpark)()
	}
	if bounded {
		defer time.AfterFunc(pause, c.engine.Unpark).Stop()
	}
	c.engine.Park()
}

// handOver gives the role of the parked wait to another one, or to an event loop, when nobody has it. Locked.
func (c *Core) handOver() {
	if c.manual && c.parker == nil {
		if w := c.asleep.first(); w != nil {
			c.wake(w)
			return
		}
		c.rearm()
	}
}
