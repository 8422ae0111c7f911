package fakeprov

import (
	"context"

	"github.com/weft-fabric/weft/fabric/provider"
)

// queue is a completion queue. changed is closed, and made anew, at every change, so that all waiters look again.
type queue struct {
	d        *domain
	size     int
	reserved int // places of outstanding operations and unread completions
	list     []provider.Completion
	signal   bool
	closed   bool
	changed  chan struct{}
	ready    chan struct{}
}

// push is called locked.
func (q *queue) push(c provider.Completion) {
	q.list = append(q.list, c)
	q.wake()
}

func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take is called locked.
func (q *queue) take(c []provider.Completion) (int, error) {
	n := copy(c, q.list)
	q.list = q.list[n:]
	q.reserved -= n
	if n == 0 && q.closed {
		return 0, provider.ErrClosed
	}
	return n, nil
}

func (q *queue) Read(c []provider.Completion) (int, error) {
	q.d.net.mu.Lock()
	defer q.d.net.mu.Unlock()
	return q.take(c)
}

func (q *queue) Wait(ctx context.Context, c []provider.Completion) (int, error) {
	for {
		q.d.net.mu.Lock()
		n, err := q.take(c)
		changed := q.changed
		if n == 0 && err == nil && q.signal {
			q.signal, err = false, provider.ErrSignal
		}
		q.d.net.mu.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (q *queue) Signal() {
	q.d.net.mu.Lock()
	defer q.d.net.mu.Unlock()
	q.signal = true
	q.wake()
}

func (q *queue) Ready() <-chan struct{} { return q.ready }

func (q *queue) Descriptor() (int, error) { return 0, provider.ErrNotSupported }

func (q *queue) TryWait() bool {
	q.d.net.mu.Lock()
	defer q.d.net.mu.Unlock()
	return len(q.list) == 0
}

func (q *queue) Close() error {
	q.d.net.mu.Lock()
	defer q.d.net.mu.Unlock()
	q.closed = true
	q.wake()
	return nil
}

type counter struct {
	d           *domain
	value, errs uint64
	err         error
	closed      bool
	changed     chan struct{}
}

// count is called locked.
func (c *counter) count(err error) {
	if err != nil {
		c.errs++
		c.err = err
	} else {
		c.value++
	}
	c.wake()
}

func (c *counter) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *counter) Value() uint64 {
	c.d.net.mu.Lock()
	defer c.d.net.mu.Unlock()
	return c.value
}

func (c *counter) Errors() uint64 {
	c.d.net.mu.Lock()
	defer c.d.net.mu.Unlock()
	return c.errs
}

func (c *counter) Add(n uint64) {
	c.d.net.mu.Lock()
	defer c.d.net.mu.Unlock()
	c.value += n
	c.wake()
}

func (c *counter) Set(n uint64) {
	c.d.net.mu.Lock()
	defer c.d.net.mu.Unlock()
	c.value = n
	c.wake()
}

func (c *counter) Wait(ctx context.Context, n uint64) error {
	for {
		c.d.net.mu.Lock()
		value, err, closed, changed := c.value, c.err, c.closed, c.changed
		c.err = nil
		c.d.net.mu.Unlock()
		switch {
		case err != nil:
			return err
		case closed:
			return provider.ErrClosed
		case value >= n:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *counter) Close() error {
	c.d.net.mu.Lock()
	defer c.d.net.mu.Unlock()
	c.closed = true
	c.wake()
	return nil
}
