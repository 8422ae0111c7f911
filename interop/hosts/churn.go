package hosts

import (
	"errors"

	"github.com/weft-fabric/weft/internal/mrcache"
	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// Churn is what the program threads prints, as JSON: caches that came and went, and with them the monitor.
type Churn struct {
	Rounds int
	Hits   uint64
	Dead   uint64 // registrations whose memory went, and that were noticed
	Calls  uint64 // that the threads made meanwhile
	Child  int    // what a child of fork ended with, that unmaps 500 times beside a cache that is in use
	Posts  uint64 // that there were meanwhile
}

var (
	errMissed = errors.New("memory went and came again, and the old registration was given")
	errLost   = errors.New("a registration is not kept, although nothing has happened to its memory")
)

// numbers is a registrar that gives each registration a number.
type numbers struct{ n uint64 }

func (r *numbers) Register([]byte) (uint64, error) {
	r.n++
	return r.n, nil
}

func (*numbers) Deregister(uint64) error { return nil }

// Round makes a cache of the process's arbiter, has memory go under it, and ends it. Before that it calls last, with the cache in use.
func (r *Churn) Round(c Calls, last func()) (err error) {
	cache, err := mrcache.New(&numbers{}, mrcache.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cache.Close()) }()
	at, err := c.Map(memoryBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Unmap(at, memoryBytes)) }()
	handle := func() (h uint64, err error) {
		sys.BytesAt(at, 1)[0] = 1
		for range 2 {
			k, err := cache.Acquire(memmon.Mapped(sys.BytesAt(at, memoryBytes), nil))
			if err != nil {
				return 0, err
			}
			h = k.Handle()
			if err := k.Release(); err != nil {
				return 0, err
			}
		}
		return h, nil
	}
	for _, lose := range []func() error{
		func() error {
			if err := c.Unmap(at, memoryBytes); err != nil {
				return err
			}
			if err := there(c, at); !errors.Is(err, errTaken) {
				return err
			}
			at, err = c.Map(memoryBytes) // another thread has got the address
			return err
		},
		func() error { return c.MapAt(at, memoryBytes, true) },
		func() error { return c.Drop(at, memoryBytes) },
	} {
		before, err := handle()
		if err == nil {
			err = lose()
		}
		if err != nil {
			return err
		}
		after, err := handle()
		if err == nil && after == before {
			err = errMissed
		}
		if err != nil {
			return err
		}
	}
	if _, err := handle(); err != nil {
		return err
	}
	last()
	if err := kept(handle); err != nil {
		return err
	}
	s := cache.Stats()
	r.Rounds++
	r.Hits += s.Hits
	r.Dead += s.DeadMonitor + s.New - 1
	return nil
}

// doubts is how often in a row a monitor may be in doubt, for which nobody has to have done anything: then memory is registered anew.
const doubts = 20

// kept looks whether memory to which nothing happens is kept.
func kept(handle func() (uint64, error)) error {
	for range doubts {
		one, err := handle()
		if err != nil {
			return err
		}
		if two, err := handle(); err != nil || two == one {
			return err
		}
	}
	return errLost
}
