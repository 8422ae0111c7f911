package mrcache

import (
	"errors"
	"os"
)

var pageSize = uint64(os.Getpagesize())

// reserve counts a registration that is about to be made. One that is to be kept needs room within the limits: what has died is given back for
// it, and then what is idle, by the clock: the hand goes round, lets go what was not used since it came by last, and notes that it came by.
// Nothing waits for what is in use. False: there is no room.
func (c *Cache[H]) reserve(e *entry[H]) bool {
	for {
		c.mu.Lock()
		fits := e.why != Kept || c.count < c.cfg.MaxCount && e.bytes <= c.cfg.MaxBytes && c.bytes <= c.cfg.MaxBytes-e.bytes
		var victim *entry[H]
		switch {
		case fits:
			c.account(e, 1, e.bytes)
		case e.bytes <= c.cfg.MaxBytes && c.grave.Load() == nil:
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

// account counts by entries and bytes, of which less is a number that wraps. The caller has mu.
func (c *Cache[H]) account(e *entry[H], entries int, bytes uint64) {
	c.stats.Pinned += bytes
	c.stats.MostPinned = max(c.stats.MostPinned, c.stats.Pinned)
	if e.why == Kept {
		c.count += entries
		c.bytes += bytes
	}
}

// evict takes out an idle entry, or none. The caller has mu.
func (c *Cache[H]) evict() *entry[H] {
	for range 2 * len(c.ring) {
		if c.hand >= len(c.ring) {
			c.hand = 0
		}
		if e := c.ring[c.hand]; e.dieIdle(false) {
			c.unlink(e)
			c.stats.Evicted++
			return e
		}
		c.hand++
	}
	return nil
}

// clear makes the cache forget all that it keeps, or only what is idle, and deregisters what is idle.
func (c *Cache[H]) clear(all bool) error {
	var list []*entry[H]
	c.mu.Lock()
	for i := len(c.ring) - 1; i >= 0; i-- { // unlink moves the last one
		e := c.ring[i]
		if !all {
			if e.dieIdle(true) {
				c.unlink(e)
				list = append(list, e)
			}
			continue
		}
		if first, idle := e.die(); first {
			c.unlink(e)
			if idle {
				list = append(list, e)
			}
		}
	}
	c.mu.Unlock()
	var failed []error
	for _, e := range list {
		failed = append(failed, c.dismiss(e))
	}
	return errors.Join(append(failed, c.reap())...)
}

// unlink takes a dead entry out of the tables. The caller has mu, and is the one who made it dead.
func (c *Cache[H]) unlink(e *entry[H]) {
	c.index.remove(e)
	last := len(c.ring) - 1
	c.ring[e.place] = c.ring[last]
	c.ring[e.place].place = e.place
	c.ring[last] = nil
	c.ring = c.ring[:last]
	c.countHits(e)
}
