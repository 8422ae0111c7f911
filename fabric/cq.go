package fabric

import (
	"context"
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
)

// CompletionQueue has the ends of operations, in the order in which they came.
type CompletionQueue struct {
	domain *Domain
	inner  provider.CompletionQueue
	reads  ends // of Read
	waits  ends // of Wait

	mu       sync.Mutex
	users    int // endpoints that put completions here
	closed   bool
	closeErr error
}

// Read takes the completions that are there, at most len(c), without blocking. In manual mode it drives progress. After Close,
// and once the queue is empty, it gives ErrClosed. It does not allocate.
func (q *CompletionQueue) Read(c []Completion) (int, error) {
	n, err := q.inner.Read(c)
	if err != nil {
		err = q.reads.of(err)
	}
	return n, err
}

// Wait takes at least one completion, and sleeps until there is one. It ends without one by the context (with its error),
// by Signal (ErrSignal), and by Close (ErrClosed). After a post of this queue has got ErrAgain, it also returns when there is room
// for it, with no completion and no error. All waits of the queue do, and, as who was refused may not have waited then, those that
// sleep later do again, ever more rarely. len(c) must not be 0.
func (q *CompletionQueue) Wait(ctx context.Context, c []Completion) (int, error) {
	if len(c) == 0 {
		return 0, q.waits.of(invalid("no place for a completion"))
	}
	if ctx == nil {
		return 0, q.waits.of(errNoContext)
	}
	n, err := q.inner.Wait(ctx, c)
	if err != nil {
		err = q.waits.of(err)
	}
	return n, err
}

// Signal wakes one Wait, or the next one if there is none, with ErrSignal.
func (q *CompletionQueue) Signal() { q.inner.Signal() }

// Ready is sent to when completions, or room for posts, may have come. After a receive from it, Read until nothing is left. In
// manual mode nothing is sent while nobody calls the domain.
func (q *CompletionQueue) Ready() <-chan struct{} { return q.inner.Ready() }

// Descriptor is a file descriptor that polls as readable when Read may find something. It belongs to the queue. Before each
// wait on it, call TryWait.
func (q *CompletionQueue) Descriptor() (int, error) {
	fd, err := q.inner.Descriptor()
	return fd, q.domain.fail("descriptor", err)
}

// TryWait arms the descriptor. False means: do not wait, Read first.
func (q *CompletionQueue) TryWait() bool { return q.inner.TryWait() }

// Close wakes every waiter with ErrClosed. While an open endpoint uses the queue it fails with ErrBusy. More than once is harmless.
func (q *CompletionQueue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return q.closeErr
	}
	if q.users > 0 {
		return q.domain.fail("close completion queue", fmt.Errorf("%d uses by endpoints: %w", q.users, ErrBusy))
	}
	q.closed = true
	q.closeErr = q.domain.fail("close completion queue", q.inner.Close())
	forget(q.domain, q.domain.queues, q)
	return q.closeErr
}

// retain keeps the queue from closing, for an endpoint.
func (q *CompletionQueue) retain() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return closed("completion queue")
	}
	q.users++
	return nil
}

func (q *CompletionQueue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.users--
}
