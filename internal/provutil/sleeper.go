package provutil

import (
	"runtime"
	"time"
)

// sleeperState is where the sleeper is.
type sleeperState uint8

const (
	running sleeperState = iota // polls, or is about to decide
	parked                      // in Engine.Park, whoever arms
	waking                      // was called out of Park
	watches                     // sleeps with a timer while a program polls
)

// sleeper is the one goroutine of a domain in auto mode.
type sleeper struct {
	state    sleeperState
	watching bool          // a program polls: look again after watchEvery, and do not arm
	kicked   chan struct{} // ends the watch early
	done     chan struct{}
}

func (s *sleeper) init() {
	s.kicked = make(chan struct{}, 1)
	s.done = make(chan struct{})
}

// kick ends the watch of now, or the next one. Locked or unlocked.
func (s *sleeper) kick() {
	select {
	case s.kicked <- struct{}{}:
	default:
	}
}

func (s *sleeper) run(c *Core) {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.stopped {
		s.state = running
		if c.poll() {
			c.mu.Unlock()
			runtime.Gosched() // who waited for it runs now, not when all is settled here
			c.mu.Lock()
			continue
		}
		switch {
		case s.watching:
			s.watch(c, timer)
		case c.spinning > 0: // who polls arms when it leaves
			s.park(c)
		case c.armed || !c.arm():
			s.park(c)
		}
	}
}

// watch sleeps while a program polls, and finds out whether it still does.
func (s *sleeper) watch(c *Core, timer *time.Timer) {
	seen := c.polls
	s.state = watches
	select {
	case <-s.kicked: // of an earlier state, which is over
	default:
	}
	c.mu.Unlock()
	timer.Reset(watchEvery)
	select {
	case <-timer.C:
	case <-s.kicked:
		timer.Stop()
	}
	c.mu.Lock()
	if c.polls == seen {
		s.watching = false
	}
}

// park sleeps in the engine.
func (s *sleeper) park(c *Core) {
	s.state = parked
	if c.tracer.Sleep != nil {
		c.tracer.Sleep()
	}
	c.mu.Unlock()
	c.engine.Park()
	c.mu.Lock()
	c.woken()
}

// woken follows each Park. Locked.
func (c *Core) woken() {
	if c.armed {
		c.disarm()
	}
	c.stats.Wakes++
	if c.tracer.Wake != nil {
		c.tracer.Wake()
	}
}
