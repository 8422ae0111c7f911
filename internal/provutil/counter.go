package provutil

import (
	"context"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Counter counts completions. It implements provider.Counter; Done is for the provider.
type Counter struct {
	core    *Core
	value   uint64
	errors  uint64
	last    error  // of the last failure
	told    uint64 // errors that some wait has ended with
	waiters waiters
	closed  bool
}

var _ provider.Counter = (*Counter)(nil)

// NewCounter returns a counter of the Core's domain. Unlocked or locked.
func NewCounter(c *Core) *Counter {
	n := &Counter{core: c}
	n.waiters.init()
	return n
}

// Done counts an operation that ended well, or with err. A nil Counter counts nothing. Locked.
func (n *Counter) Done(err error) {
	switch {
	case n == nil:
	case err != nil:
		n.errors++
		n.last = err
		n.changed()
	default:
		n.value++
		n.changed()
	}
}

// changed wakes the waits that are over.
func (n *Counter) changed() {
	for w := n.waiters.first(); w != nil; w = w.of.following() {
		if n.over(w) {
			n.core.wake(w)
		}
	}
}

func (n *Counter) over(w *waiter) bool {
	return n.closed || n.value >= w.target || n.errors != w.failures
}

// Value is the number of operations that ended well.
func (n *Counter) Value() uint64 {
	n.core.Lock()
	defer n.core.Unlock()
	n.core.Progress()
	return n.value
}

// Errors is the number of operations that ended in error.
func (n *Counter) Errors() uint64 {
	n.core.Lock()
	defer n.core.Unlock()
	n.core.Progress()
	return n.errors
}

// Add adds to the value.
func (n *Counter) Add(by uint64) {
	n.core.Lock()
	defer n.core.Unlock()
	n.value += by
	n.changed()
}

// Set sets the value.
func (n *Counter) Set(value uint64) {
	n.core.Lock()
	defer n.core.Unlock()
	n.value = value
	n.changed()
}

// Wait sleeps until the value is target at least. An operation that ends in error ends the waits of now with that error, or,
// if there are none, the next one, so that none waits for what failed just before.
func (n *Counter) Wait(ctx context.Context, target uint64) error {
	n.core.Lock()
	defer n.core.Unlock()
	w := n.core.newWaiter()
	w.target, w.failures = target, n.told
	n.waiters.add(&w.of)
	err := n.core.waitFor(ctx, n, w)
	w.of.remove()
	failed := n.errors != w.failures
	n.core.freeWaiter(w)
	switch {
	case n.value >= target:
		return nil
	case failed:
		n.told = n.errors
		return n.last
	case n.closed:
		return provider.ErrClosed
	}
	return err
}

// Close ends every wait with ErrClosed.
func (n *Counter) Close() error {
	n.core.Lock()
	defer n.core.Unlock()
	n.closed = true
	n.changed()
	return nil
}
