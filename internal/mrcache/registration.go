package mrcache

import (
	"errors"
	"runtime"

	"github.com/weft-fabric/weft/memmon"
)

// Registration is memory that is registered and held, until Release. It is a value for one owner, not to be copied; the zero value is released.
type Registration[H any] struct {
	cache *Cache[H]
	entry *entry[H]
	held  any // what keeps the memory alive, if that can be done
	hit   bool
}

// Handle is what the registrar returned. It is good until Release.
func (r *Registration[H]) Handle() H { return r.entry.handle }

// Range is what is registered, which may be more than was asked for.
func (r *Registration[H]) Range() memmon.Range { return r.entry.span }

// Why is why the registration is for one operation only, or Kept.
func (r *Registration[H]) Why() Reason { return r.entry.why }

// Release gives it back; again, it does nothing. It takes no lock if the registration is kept; else it deregisters. The error is
// ErrRemapped if the memory has become other memory since Acquire, and what the registrar
// says. The last one after the cache's Close also ends the work of the monitor, which may block.
func (r *Registration[H]) Release() error {
	c, e := r.cache, r.entry
	if e == nil {
		return nil
	}
	held, hit := r.held, r.hit
	*r = Registration[H]{}
	var err error
	invalid := held == nil && !e.proof.Valid() // who is held cannot have gone
	if invalid && e.proof.Changed() {
		err = ErrRemapped
	}
	if e.why != Kept {
		err = errors.Join(err, c.dismiss(e))
		runtime.KeepAlive(held)
		return err
	}
	if invalid {
		c.kill(e)
	}
	if !hit {
		c.unuse(e)
		return err
	}
	died, last := e.unhit()
	if died {
		c.countLate(e)
	}
	if last {
		c.bury(e)
	}
	return err
}
