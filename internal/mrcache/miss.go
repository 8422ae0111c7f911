package mrcache

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// How often memory is registered that changes each time meanwhile, and of which nobody can tell for a moment; of that also how long, since a driver
// may take its time.
const (
	tries          = 3
	unsureTries    = 500
	unsurePatience = 20 * time.Millisecond
)

// missed goes on where a hit of b was not possible; found is an entry that is not valid any more, or nil.
func (c *Cache[H]) missed(k memmon.Kind, b []byte, found *entry[H]) (Registration[H], error) {
	why := missNew
	want := memmon.RangeOf(b)
	var unsure time.Time // since when
	for changes, doubts := 0, 0; changes < tries; {
		epoch := c.cfg.Arbiter.Epoch()
		for found != nil {
			why = found.missed(epoch)
			c.kill(found)
			c.unuse(found)
			var r Registration[H]
			if r, found = c.find(k, want, epoch); found == nil && r.entry != nil {
				return r, nil
			}
		}
		whole := k.Bytes()
		if !memmon.RangeOf(whole).Contains(want) { // an arena that is closed has none
			return Registration[H]{}, ErrEmpty
		}
		r, err := c.register(k, whole, b, epoch, why, true)
		switch {
		case errors.Is(err, ErrRemapped):
			changes++
		case !errors.Is(err, errUnsure):
			return r, err
		default:
			if doubts == 0 {
				unsure = time.Now()
			}
			if doubts++; doubts == unsureTries || time.Since(unsure) > unsurePatience {
				return c.register(k, whole, b, epoch, why, false)
			}
			runtime.Gosched()
		}
	}
	return Registration[H]{}, fmt.Errorf("%w: %d times while it was being registered", ErrRemapped, tries)
}

// register makes a registration of the whole of a memory, or of b. The epoch was asked before: what is turned off or forgotten from then on is so for this registration.
func (c *Cache[H]) register(k memmon.Kind, whole, b []byte, epoch uint64, why miss, ask bool) (Registration[H], error) {
	e := &entry[H]{source: memmon.Source(k), epoch: epoch, class: classOf(k)}
	e.state.Store(1)
	e.why = Unsure
	if ask {
		e.why = Kept
	}
	if err := c.make(e, k, whole, b); err != nil {
		return Registration[H]{}, err
	}
	out := false
	defer func() {
		if !out { // nobody has seen it
			c.logFailure(c.dismiss(e))
		}
	}()
	r := Registration[H]{c, e, k, false}
	if e.proof != nil {
		var valid bool
		if r.held, valid = e.proof.Hold(); !valid {
			if e.proof.Changed() {
				return Registration[H]{}, ErrRemapped
			}
			return Registration[H]{}, errUnsure
		}
	}
	if e.why != Kept {
		c.countOnce(e.why)
		out = true
		return r, nil
	}
	other, err := c.publish(e, k, memmon.RangeOf(b), why)
	if err != nil || other.entry != nil {
		return other, err
	}
	out = true
	return r, nil
}

// make asks who answers for the memory, if it is to be kept, and registers it. Unless it is made, also if the registrar panics, nothing is left of it.
func (c *Cache[H]) make(e *entry[H], k memmon.Kind, whole, b []byte) (err error) {
	if !c.enter() {
		return ErrClosed
	}
	made := false
	defer func() {
		if made {
			return
		}
		if e.proof != nil {
			e.proof.Close()
		}
		c.leave()
	}()
	if e.why == Kept {
		err = c.prove(e, k, whole)
	}
	if err == nil {
		err = c.pin(e, k, whole, b)
	}
	made = err == nil
	return err
}

// prove asks who answers for the memory, before it is registered. What the proof says is of b only if that is still the memory: who closes an arena
// between the two leaves nothing that would change any more.
func (c *Cache[H]) prove(e *entry[H], k memmon.Kind, b []byte) (err error) {
	e.proof, err = c.cfg.Arbiter.Prove(k)
	unanswered := errors.Is(err, memmon.ErrUnanswered)
	switch {
	case err != nil && !unanswered:
		return err
	case memmon.RangeOf(k.Bytes()) != memmon.RangeOf(b):
		return ErrRemapped
	case unanswered:
		e.proof = nil
		if e.why = NoAnswer; e.class == ofMonitor {
			e.why = NoMonitor
		}
	}
	if e.why == Kept && !c.cfg.Arbiter.Enabled() {
		e.why = Disabled
	}
	return nil
}

// pin registers the memory: as much as makes sense, so that neighbours need not be registered as well, if that is possible and within the limits; else
// what was asked for, if need be for one operation.
func (c *Cache[H]) pin(e *entry[H], k memmon.Kind, whole, b []byte) error {
	if e.why != Kept {
		return c.pinAs(e, b, c.Register)
	}
	more := around(k, whole)
	register := c.Register
	if pagesOf(more) != pagesOf(b) { // nobody gives way to what need not be
		register = c.registrar.Register
	}
	err := c.pinAs(e, more, register)
	if err != nil && len(more) > len(b) {
		err = c.pinAs(e, b, c.Register)
	}
	if errors.Is(err, errNoRoom) {
		e.why = Full
		err = c.pinAs(e, b, c.Register)
	}
	return err
}

var (
	errNoRoom = errors.New("no room")
	errUnsure = errors.New("nobody can tell at this moment whether the memory has changed")
)

func pagesOf(b []byte) memmon.Range { return memmon.RangeOf(b).Rounded(pageSize) }

// pinAs registers b if there is room, or if it is not to be kept.
func (c *Cache[H]) pinAs(e *entry[H], b []byte, register func([]byte) (H, error)) (err error) {
	e.span = memmon.RangeOf(b)
	e.bytes = pagesOf(b).Len
	if !c.reserve(e) {
		return errNoRoom
	}
	made := false
	defer func() {
		if !made {
			c.unreserve(e)
		}
	}()
	if e.handle, err = register(b); err != nil {
		return fmt.Errorf("mrcache: register %d bytes at %v: %w", len(b), e.span, err)
	}
	made = true
	c.pinned(e)
	return nil
}

// Register has the registrar register memory, without keeping or counting it: the caller has it deregistered. For want of memory what is idle in
// the cache is let go, then what is in the other caches of the process, and it is tried again.
func (c *Cache[H]) Register(b []byte) (H, error) {
	h, err := c.registrar.Register(b)
	if IsShortage(err) {
		c.spare()
		h, err = c.registrar.Register(b)
	}
	if IsShortage(err) {
		c.cfg.Arbiter.Shortage()
		h, err = c.registrar.Register(b)
	}
	return h, err
}

// around is what is registered if it can be: whole pages of mapped memory, or a slice of the Go heap up to its capacity, which is of the same
// object. The rest of the pages of an object belongs to others, and a slice of it would tell lies to the garbage collector; so it
// must not be made of memory either that somebody says is mapped and is not.
func around(k memmon.Kind, b []byte) []byte {
	if memmon.Lasting(k) {
		return b[:cap(b)]
	}
	if is, err := sys.OfGoHeap(b); is || err != nil {
		return b
	}
	r := memmon.RangeOf(b).Rounded(pageSize)
	return sys.BytesAt(r.Addr, int(r.Len))
}

// publish makes the entry known, and what is superseded by it unknown. If another goroutine was faster, its entry is returned, in use. If
// the arbiter was flushed meanwhile, the entry is dead from the beginning, and given back by its release.
func (c *Cache[H]) publish(e *entry[H], k memmon.Kind, want memmon.Range, why miss) (Registration[H], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return Registration[H]{}, ErrClosed
	}
	for {
		r, found := c.find(k, want, e.epoch)
		if found == nil {
			if r.entry != nil {
				c.stats.Raced++
				return r, nil
			}
			break
		}
		c.drop(found)
	}
	if e.epoch != c.cfg.Arbiter.Epoch() {
		c.stats.count(why)
		e.die()
		return Registration[H]{}, nil
	}
	if c.supersede(e) && why == missNew {
		why = missGrown
	}
	c.stats.count(why)
	c.link(e)
	return Registration[H]{}, nil
}

// supersede drops what lies within the new entry, and what has died around it. It says whether there was some of the same memory. The caller has mu.
func (c *Cache[H]) supersede(e *entry[H]) (known bool) {
	c.index.overlapping(e.span, func(old *entry[H]) {
		if !old.use() {
			return
		}
		valid := old.epoch == e.epoch && old.proof.Valid()
		known = known || valid && old.source == e.source
		if !valid || old.source == e.source && e.span.Contains(old.span) {
			c.drop(old)
			return
		}
		c.unuse(old)
	})
	return known
}
