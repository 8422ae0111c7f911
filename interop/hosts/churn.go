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
	p := &piece{c: c, cache: cache}
	if err := p.get(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.give()) }()
	for _, lose := range []func() error{
		p.again,
		func() error { return c.MapAt(p.at, memoryBytes, true) },
		func() error { return c.Drop(p.at, memoryBytes) },
	} {
		if err := p.misses(lose); err != nil {
			return err
		}
	}
	if _, err := p.handle(); err != nil {
		return err
	}
	last()
	if err := p.kept(); err != nil {
		return err
	}
	s := cache.Stats()
	r.Rounds++
	r.Hits += s.Hits
	r.Dead += s.DeadMonitor + s.New - 1
	return nil
}

// piece is memory of the C library that goes through a cache.
type piece struct {
	c     Calls
	cache *mrcache.Cache[uint64]
	at    uint64 // 0: there is none now
}

func (p *piece) get() (err error) {
	p.at, err = p.c.Map(memoryBytes)
	return err
}

func (p *piece) give() error {
	at := p.at
	if p.at = 0; at == 0 {
		return nil
	}
	return p.c.Unmap(at, memoryBytes)
}

// again unmaps, and maps at the same address, unless another thread has got that.
func (p *piece) again() error {
	at := p.at
	if err := p.give(); err != nil {
		return err
	}
	switch err := there(p.c, at); {
	case errors.Is(err, errTaken):
		return p.get()
	case err != nil:
		return err
	}
	p.at = at
	return nil
}

// handle is what the cache has for the memory, when it was asked twice.
func (p *piece) handle() (h uint64, err error) {
	sys.BytesAt(p.at, 1)[0] = 1
	for range 2 {
		k, err := p.cache.Acquire(memmon.Mapped(sys.BytesAt(p.at, memoryBytes), nil))
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

// misses looks whether memory that becomes other memory is registered anew.
func (p *piece) misses(lose func() error) error {
	before, err := p.handle()
	if err == nil {
		err = lose()
	}
	if err != nil {
		return err
	}
	if after, err := p.handle(); err != nil || after != before {
		return err
	}
	return errMissed
}

// doubts is how often in a row a monitor may be in doubt, for which nobody has to have done anything: then memory is registered anew.
const doubts = 20

// kept looks whether memory to which nothing happens is kept.
func (p *piece) kept() error {
	for range doubts {
		one, err := p.handle()
		if err != nil {
			return err
		}
		if two, err := p.handle(); err != nil || two == one {
			return err
		}
	}
	return errLost
}
