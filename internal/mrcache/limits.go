package mrcache

import (
	"errors"
	"os"
)

var pageSize = uint64(os.Getpagesize())

// reserve counts a registration that is about to be made, if it is to be kept. It needs room within the limits: what has died is given back for
// it, and then what is idle, by the clock: the hand goes round, lets go what was not used since it came by last, and notes that it came by.
// Nothing waits for what is in use. False: there is no room.
func (c *Cache[H]) reserve(e *entry[H]) bool {
	if e.why != Kept {
		return true
	}
	for {
		c.mu.Lock()
		fits := c.count < c.cfg.MaxCount && e.bytes <= c.cfg.MaxBytes && c.bytes <= c.cfg.MaxBytes-e.bytes
		var victim *entry[H]
		switch {
		case fits:
			c.account(e, 1, e.bytes)
		case e.bytes <= c.cfg.MaxBytes && c.grave.Load() == nil && !c.inVain(e.bytes):
			victim = c.evict()
		}
		c.mu.Unlock()
		switch {
		case fits:
			return true
		case victim != nil:
			c.logFailure(c.dismiss(victim))
		case e.bytes > c.cfg.MaxBytes || c.grave.Load() == nil:
			return false
		default:
			c.logFailure(c.reap())
		}
	}
}

// unreserve counts a registration that there is not any more, or never was.
func (c *Cache[H]) unreserve(e *entry[H]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account(e, -1, -e.bytes)
}

// account counts against the limits, by entries and bytes, of which less is a number that wraps. The caller has mu.
func (c *Cache[H]) account(e *entry[H], entries int, bytes uint64) {
	if e.why == Kept {
		c.count += entries
		c.bytes += bytes
	}
}

// pinned counts a registration that has been made.
func (c *Cache[H]) pinned(e *entry[H]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Pinned += e.bytes
	c.stats.MostPinned = max(c.stats.MostPinned, c.stats.Pinned)
}

// handSteps is how many entries the hand passes at a time: where nearly all are in use nobody is to look at all of them for each miss.
const handSteps = 128

// inVain says that all that is idle would not make room for so many bytes: then nothing is let go for them, or each miss of a large buffer would
// cost all small ones. Of more entries than the hand passes at a time it is not known. The caller has mu.
func (c *Cache[H]) inVain(bytes uint64) bool {
	if len(c.ring) > handSteps {
		return false
	}
	room := c.cfg.MaxBytes - c.bytes
	for _, e := range c.ring {
		if e != nil && e.isIdle() {
			room += e.bytes
		}
	}
	return room < bytes
}

// evict takes out an idle entry, or none of those that the hand passes. If all idle ones among these were used since it came by last, one goes that
// was. The caller has mu.
func (c *Cache[H]) evict() *entry[H] {
	var idle *entry[H]
	for range min(2*len(c.ring), handSteps) {
		e := c.ring[c.hand]
		c.hand = (c.hand + 1) % len(c.ring)
		switch {
		case e == nil:
		case e.dieIdle(false):
			return c.evicted(e)
		case idle == nil && e.isIdle():
			idle = e
		}
	}
	if idle != nil && idle.dieIdle(true) {
		return c.evicted(idle)
	}
	return nil
}

func (c *Cache[H]) evicted(e *entry[H]) *entry[H] {
	c.unlink(e)
	c.stats.Evicted++
	return e
}

// clear makes the cache forget all that it keeps, or only what is idle, and deregisters what is idle.
func (c *Cache[H]) clear(all bool) error {
	var list []*entry[H]
	c.mu.Lock()
	for _, e := range c.ring {
		if e == nil {
			continue
		}
		dies, idle := false, true
		if all {
			dies, idle = e.die()
		} else {
			dies = e.dieIdle(true)
		}
		if dies {
			c.unlink(e)
		}
		if dies && idle {
			list = append(list, e)
		}
	}
	c.mu.Unlock()
	var failed []error
	for _, e := range list {
		failed = append(failed, c.dismiss(e))
	}
	return errors.Join(append(failed, c.reap())...)
}

// link makes an entry known: for the clock it comes to a place that became free, the last one first, which the hand has just passed. Who
// was used once goes at the hand's first coming. The caller has mu.
func (c *Cache[H]) link(e *entry[H]) {
	c.index.add(e)
	if n := len(c.free) - 1; n >= 0 {
		e.place = c.free[n]
		c.free = c.free[:n]
		c.ring[e.place] = e
		return
	}
	e.place = len(c.ring)
	c.ring = append(c.ring, e)
}

// unlink makes a dead entry unknown. The caller has mu, and is the one who made it dead.
func (c *Cache[H]) unlink(e *entry[H]) {
	c.index.remove(e)
	c.ring[e.place] = nil
	c.free = append(c.free, e.place)
	c.countHits(e)
}
