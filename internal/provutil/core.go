package provutil

import (
	"runtime"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// The wait ladder, where the configuration does not say otherwise.
const (
	defaultSpin   = 2 * time.Microsecond
	defaultYields = 8
	spinRound     = 60 * time.Nanosecond // a poll, and its part of a Gosched, about
)

// watchEvery is how often the sleeper looks whether a program that polled goes on to. While nobody polls
// there is no timer.
const watchEvery = 200 * time.Microsecond

// CoreConfig says how a Core is to be. The zero value works.
type CoreConfig struct {
	Progress provider.Progress
	// Spin is how long a wait polls before it yields and sleeps; 0 means 2 µs, or nothing where Go has one
	// processor; negative means never.
	Spin time.Duration
	// Yield lets other processes run; nil means that a wait goes from polling to sleep.
	Yield func()
	// NewBell makes the descriptor of a completion queue; nil means that queues have none. It is given the
	// engine's descriptor to watch as well, or -1.
	NewBell func(engine int) (Bell, error)
	Tracer  *provider.Tracer // of Complete, Sleep and Wake; the provider calls the others
}

// Core is the lock of a domain and what drives its engine: the goroutines that poll or wait, and in auto mode
// the sleeper, the domain's one goroutine.
//
// Who polls: a Wait polls for a while by itself, then arms the engine and sleeps. In auto mode the sleeper is parked
// in the engine; it polls when it is rung, and the completions it finds wake the waiters. A poll by a program
// disarms the engine, so that peers pay no wake-up; unless the program then goes to sleep in a Wait, the sleeper watches
// with a timer whether it goes on polling, and arms again when it does not. In manual mode the waiters park
// themselves, one in the engine and the others behind it.
//
// Nobody else polls to the end: who only passes by, as a post does, says what it leaves (Later), and giving the lock back
// wakes who sleeps for it.
//
// Its methods are safe for concurrent use as far as their docs say locked or unlocked.
type Core struct {
	mu     lock
	engine Engine
	manual bool
	rounds int      // of the ladder: polls, some with Gosched
	yields int      // of the ladder: polls with yield
	habit  yielding // of yields
	yield  func()
	bell   func(engine int) (Bell, error)
	tracer provider.Tracer
	flush  func() // of a Flusher, or nil

	armed    bool
	stopped  bool
	polls    uint64 // by programs, in auto mode
	spinning int    // waits in the ladder
	asleep   waiters
	parker   *waiter       // manual: the wait that is parked in the engine
	ringers  []*CQ         // manual: whose descriptors were armed; some have rung since
	vacant   chan struct{} // closed when the Core has stopped and nobody is parked
	spare    *waiter

	started bool
	sleeper sleeper
	stats   CoreStats
}

// CoreStats are a Core's part of a domain's statistics.
type CoreStats struct {
	Wakes, Errors, Again uint64
}

// NewCore returns the Core that drives e. It does nothing before Start.
func NewCore(e Engine, c CoreConfig) *Core {
	k := &Core{engine: e, manual: c.Progress == provider.Manual, yield: c.Yield, bell: c.NewBell, vacant: make(chan struct{})}
	if c.Tracer != nil {
		k.tracer = *c.Tracer
	}
	k.mu.nudge = k.Nudge
	k.asleep.init()
	k.sleeper.init()
	if f, ok := e.(Flusher); ok {
		k.flush = f.Flush
	}
	k.setSpin(c.Spin)
	if k.yield != nil {
		k.yields = defaultYields
	}
	return k
}

func (c *Core) setSpin(d time.Duration) {
	if d == 0 && runtime.GOMAXPROCS(0) > 1 {
		d = defaultSpin
	}
	// In rounds, not by a clock: it costs less, and the clock of a synctest bubble stands still.
	c.rounds = max(0, int(min(d, time.Second/2)/spinRound))
}

// Lock takes the lock of the domain.
func (c *Core) Lock() { c.mu.Lock() }

// Unlock gives it back.
func (c *Core) Unlock() { c.mu.Unlock() }

// Manual says whether the program alone drives progress.
func (c *Core) Manual() bool { return c.manual }

// Stats returns numbers. Locked.
func (c *Core) Stats() CoreStats { return c.stats }

// Start starts the sleeper in auto mode. Unlocked.
func (c *Core) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.manual || c.started || c.stopped {
		return
	}
	c.started = true
	go c.sleeper.run(c)
}

// Stop ends the sleeper and has joined it at return; nobody is in Engine.Park any more. Waits that still run fail with ErrClosed. Afterwards the engine
// is not called any more but by posts. Idempotent. Unlocked.
func (c *Core) Stop() {
	c.mu.Lock()
	if !c.stopped {
		c.stopped = true
		c.wakeAll()
		c.sleeper.kick()
		if c.started {
			c.engine.Unpark()
		} else {
			close(c.sleeper.done)
		}
		if c.parker == nil {
			close(c.vacant)
		}
	}
	c.mu.Unlock()
	<-c.sleeper.done
	<-c.vacant
}

// Poll moves what can move, once, for a post or a close: if something did, more may (Later). It does not change who watches. Locked.
func (c *Core) Poll() {
	if c.engine.Poll() {
		c.Later()
	}
}

// poll is Engine.Poll for those who go on while something moves. Locked.
func (c *Core) poll() bool {
	c.mu.later = false // this is that poll
	return c.moved(c.engine.Poll())
}

// moved is whether to go on, after the engine says whether something moved. What it has left counts. Locked.
func (c *Core) moved(moved bool) bool {
	moved = moved || c.mu.later
	c.mu.later = false
	return moved
}

// Nudge makes the sleeper poll soon. In manual mode, where the program's next call does it, a parked wait is woken, or the event
// loops that rely on being told. Locked.
func (c *Core) Nudge() {
	switch {
	case c.stopped:
	case c.manual && c.parker == nil:
		for _, q := range c.ringers {
			q.announce()
		}
	default:
		c.engine.Unpark()
		c.sleeper.kick()
	}
}

// Progress drives the engine for a call that looks for completions without waiting. Locked.
func (c *Core) Progress() {
	c.pollOnce()
	c.watch()
}

// flushMore publishes posts with the flag More, for a reading that does not poll. Locked.
func (c *Core) flushMore() {
	if c.flush != nil {
		c.flush()
	}
}

// pollOnce polls for a program: peers need not ring meanwhile. Locked.
func (c *Core) pollOnce() bool {
	if c.stopped {
		return false
	}
	c.polls++
	if c.armed && c.parker == nil {
		c.disarm()
	}
	moved := c.poll()
	if moved && c.parker != nil {
		c.Later() // it may have been what would have woken the parked wait, which goes on with what is left
	}
	return moved
}

// watch sees to it that the engine is armed again when the program polls no more. Locked.
func (c *Core) watch() {
	if c.manual && len(c.ringers) == 0 || c.sleeper.state == watches {
		return // nothing to do, as mostly
	}
	c.watchOn()
}

func (c *Core) watchOn() {
	s := &c.sleeper
	if c.manual {
		c.rearm()
		return
	}
	if c.stopped {
		return
	}
	waited := c.asleep.first() != nil
	if s.state == parked {
		if waited && !c.settle() {
			return // the next event finds the engine armed
		}
		s.state = waking
		c.engine.Unpark()
	}
	s.watching = !waited
}

// settle arms the engine, or has the sleeper do it, before somebody sleeps. True means that something has come
// meanwhile: poll first. Locked.
func (c *Core) settle() bool {
	switch {
	case c.armed || c.stopped:
		return false
	case c.manual || c.sleeper.state == parked:
		return c.arm()
	}
	c.sleeper.watching = false
	c.sleeper.kick()
	return false
}

// settleFor is settle for a Read, in auto mode, of a program that waits for events elsewhere. True means that something has come,
// and was polled. Locked.
func (c *Core) settleFor() bool {
	if !c.settle() {
		return false
	}
	c.poll()
	c.Later() // the sleeper goes on
	return true
}

// arm arms the engine; true means that it is not, since something has come. Locked.
func (c *Core) arm() bool {
	c.mu.later = false
	if c.moved(c.engine.Arm()) {
		c.engine.Disarm()
		return true
	}
	c.armed = true
	return false
}

func (c *Core) disarm() {
	c.engine.Disarm()
	c.armed = false
}
