package provutil

import "sync"

// lock is the lock of a domain. What its holder leaves to others is seen to by Unlock, and so on every way out of every call: work
// that can go on, and words for the program.
type lock struct {
	sync.Mutex
	later bool     // see Core.Later
	after []func() // see Core.After
	nudge func()
}

// Unlock gives the lock back.
func (l *lock) Unlock() {
	if l.later || l.after != nil {
		l.leave()
		return
	}
	l.Mutex.Unlock()
}

func (l *lock) leave() {
	if l.later {
		l.later = false
		l.nudge()
	}
	after := l.after
	l.after = nil
	l.Mutex.Unlock()
	for _, f := range after {
		f()
	}
}

// Later says that something is left that can go on, and of which no peer rings (any more): a call has done its share of long
// work, or has taken a wake-up in passing that was for who sleeps. Whoever polls goes on with it; if the lock is given back first,
// the sleeper is woken, or who sleeps in its place. Locked.
func (c *Core) Later() { c.mu.later = true }

// After has f called by who gives the lock back, without the lock: for what calls the program, as a logger does. Locked.
func (c *Core) After(f func()) { c.mu.after = append(c.mu.after, f) }
