package fabric

import (
	"context"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Counter counts completions.
type Counter struct {
	domain *Domain
	inner  provider.Counter
	waits  ends

	mu       sync.Mutex
	closed   bool
	closeErr error
}

// Value is the number of operations that ended well. In manual mode it drives progress.
func (c *Counter) Value() uint64 { return c.inner.Value() }

// Errors is the number of operations that ended in error.
func (c *Counter) Errors() uint64 { return c.inner.Errors() }

// Add adds to the value.
func (c *Counter) Add(n uint64) { c.inner.Add(n) }

// Set sets the value.
func (c *Counter) Set(n uint64) { c.inner.Set(n) }

// Wait sleeps until the value is n at least. An operation that ends in error ends the waits of now with its error or, if there
// are none, the next one, so that none waits for what failed just before; the context and Close end it too.
func (c *Counter) Wait(ctx context.Context, n uint64) error {
	if ctx == nil {
		return c.waits.of(errNoContext)
	}
	return c.waits.of(c.inner.Wait(ctx, n))
}

// Close wakes every waiter with ErrClosed. Endpoints that count here need not be closed before: they go on, and what they count
// can still be read. No endpoint can be opened on the counter afterwards. More than once is harmless.
func (c *Counter) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.closeErr
	}
	c.closed = true
	c.closeErr = c.domain.fail("close counter", c.inner.Close())
	forget(c.domain, c.domain.counters, c)
	return c.closeErr
}

// open says whether the counter was not closed, for an endpoint.
func (c *Counter) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed
}
