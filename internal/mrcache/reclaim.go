package mrcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/weft-fabric/weft/memmon"
)

// reclaimer is what wakes the cache's goroutine.
type reclaimer struct {
	events chan memmon.Range // memory that has gone
	lost   *atomic.Bool      // some was not noted: look at everything
	wake   chan struct{}     // lost, or something lies in the graveyard
	stop   chan struct{}
	done   chan struct{}
}

// eventsNoted is how many events are looked at one by one; more at once are one look at everything.
const eventsNoted = 256

func newReclaimer() reclaimer {
	return reclaimer{make(chan memmon.Range, eventsNoted), new(atomic.Bool), make(chan struct{}, 1), make(chan struct{}), make(chan struct{})}
}

// gone is told by the arbiter what memory has gone. It only notes that.
func (r *reclaimer) gone(where memmon.Range) {
	select {
	case r.events <- where:
	default:
		r.lost.Store(true)
		r.ring()
	}
}

func (r *reclaimer) ring() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// reclaim is the cache's goroutine: it looks at what is told to have gone, and deregisters what is dead.
func (c *Cache[H]) reclaim() {
	r := &c.reclaimer
	defer close(r.done)
	for {
		select {
		case where := <-r.events:
			c.look(where)
		case <-r.wake:
		case <-r.stop:
			return
		}
		if r.lost.Swap(false) {
			c.look(memmon.Everything)
		}
		c.logFailure(c.reap())
	}
}

// look takes out what is not valid any more. That something has happened to an address says nothing of an entry: it may be of what lies there
// since. The proof says it.
func (c *Cache[H]) look(where memmon.Range) {
	epoch := c.cfg.Arbiter.Epoch()
	c.index.overlapping(where, func(e *entry[H]) {
		if !e.use() {
			return
		}
		if e.epoch < epoch || !e.proof.Valid() {
			c.kill(e)
		}
		c.unuse(e)
	})
}

// kill makes an entry dead that the caller uses: nobody gets it any more.
func (c *Cache[H]) kill(e *entry[H]) {
	if first, _ := e.die(); first {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unlink(e)
	}
}

// drop is kill and unuse by who has mu.
func (c *Cache[H]) drop(e *entry[H]) {
	if first, _ := e.die(); first {
		c.unlink(e)
	}
	if e.unuse() {
		c.inter(e)
	}
}

// unuse ends a use; the last user of a dead entry buries it.
func (c *Cache[H]) unuse(e *entry[H]) {
	if e.unuse() {
		c.bury(e)
	}
}

// bury hands an entry that is dead and idle to the goroutine; when there is none any more, the caller does its work.
func (c *Cache[H]) bury(e *entry[H]) {
	c.inter(e)
	if c.closed.Load() {
		c.logFailure(c.reap())
	}
}

// inter puts an entry into the graveyard. After that the entry is somebody else's.
func (c *Cache[H]) inter(e *entry[H]) {
	for {
		e.next = c.grave.Load()
		if c.grave.CompareAndSwap(e.next, e) {
			c.reclaimer.ring()
			return
		}
	}
}

// reap deregisters what lies in the graveyard.
func (c *Cache[H]) reap() error {
	var failed []error
	for e := c.grave.Swap(nil); e != nil; {
		next := e.next
		if err := c.dismiss(e); err != nil {
			failed = append(failed, err)
		}
		e = next
	}
	return errors.Join(failed...)
}

// dismiss deregisters. Nobody else knows the entry.
func (c *Cache[H]) dismiss(e *entry[H]) error {
	err := c.registrar.Deregister(e.handle)
	if e.proof != nil {
		e.proof.Close()
	}
	c.mu.Lock()
	c.account(e, -1, -e.bytes)
	c.stats.Pinned -= e.bytes
	c.countHits(e)
	if err != nil {
		c.stats.Failed++
		err = fmt.Errorf("mrcache: deregister %v: %w", e.span, err)
	}
	c.mu.Unlock()
	c.leave()
	return err
}

func (c *Cache[H]) logFailure(err error) {
	if err != nil {
		c.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "memory stays registered: the device does not let it go", slog.Any("error", err))
	}
}
