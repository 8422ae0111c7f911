package provutil

import (
	"runtime"
	"time"
)

// goschedEvery is after how many polls of the ladder other goroutines get their turn. It costs as much as some polls.
const goschedEvery = 8

// ladder polls for a while, and lets goroutines, then processes, run in between. Locked, and unlocks meanwhile.
func (c *Core) ladder(q waitable, w *waiter) bool {
	c.spinning++
	found := c.climb(q, w)
	c.spinning--
	return found
}

func (c *Core) climb(q waitable, w *waiter) bool {
	for i := range c.rounds {
		c.mu.Unlock()
		if i%goschedEvery == goschedEvery-1 {
			runtime.Gosched()
		}
		c.mu.Lock()
		c.pollOnce()
		if q.over(w) || c.stopped {
			return q.over(w)
		}
	}
	if c.yields == 0 || !c.habit.wanted() {
		return false
	}
	for range c.yields {
		c.mu.Unlock()
		start := time.Now()
		c.yield()
		slow := time.Since(start) > slowYield
		c.mu.Lock()
		c.pollOnce()
		over := q.over(w)
		if over || slow || c.stopped {
			c.habit.went(slow)
			return over
		}
	}
	return false
}

// slowYield is a yield after which others have run who are not in a hurry: programs that compute have slices of milliseconds, and
// who yields to them comes after all of them, while a sleeper who is woken comes before.
const slowYield = 100 * time.Microsecond

// yielding is whether waits yield, by how that went. The lock guards it.
type yielding struct {
	rest uint // waits that do not
	step uint // how many it will be after the next slow yield
}

// maxRest is the most waits that go by until yielding is tried again.
const maxRest = 255

func (y *yielding) wanted() bool {
	if y.rest == 0 {
		return true
	}
	y.rest--
	return false
}

// went tells how a yield went that ended a wait, or was slow.
func (y *yielding) went(slow bool) {
	if !slow {
		y.step = 0
		return
	}
	y.step = min(2*y.step+1, maxRest)
	y.rest = y.step
}
