package mrcache

import (
	"log/slog"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// Config says how much a cache keeps. The zero value works.
type Config struct {
	// Arbiter knows which monitor serves; nil is that of the process.
	Arbiter *memmon.Arbiter
	// MaxCount is how many registrations are kept; 0 means 1024, and less than 0 none.
	MaxCount int
	// MaxBytes is how many bytes of pages are kept registered; 0 means half of the memory that the process may use. It is never more than what
	// RLIMIT_MEMLOCK leaves when the cache is made.
	MaxBytes uint64
	// Logger is told what the monitor does, and which registrations could not be given back, also by the goroutine that Close waits for: its handler
	// must not close the cache. Nil discards.
	Logger *slog.Logger
}

const defaultCount = 1024

// resolve is a copy with the defaults. lockable asks how much more may be pinned; what cannot be asked is no limit.
func (c Config) resolve(lockable func() (uint64, error)) Config {
	if c.Arbiter == nil {
		c.Arbiter = memmon.Process()
	}
	if c.MaxCount == 0 {
		c.MaxCount = defaultCount
	}
	c.MaxCount = max(c.MaxCount, 0)
	if c.MaxBytes == 0 {
		c.MaxBytes = ^uint64(0)
		if n, err := sys.MemoryLimit(); err == nil {
			c.MaxBytes = n / 2
		}
	}
	if n, err := lockable(); err == nil {
		c.MaxBytes = min(c.MaxBytes, n)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
