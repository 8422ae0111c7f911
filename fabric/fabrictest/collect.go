package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// way is how a program waits for completions.
type way int

// The ways. In manual mode nobody sends on Ready while nobody calls, so ready is for auto only.
const (
	byWait       way = iota // CompletionQueue.Wait
	byRead                  // Read in a loop
	byReady                 // the channel
	byDescriptor            // the pollable descriptor
	byHand                  // not at all: the test reads when it wants to
)

func (w way) String() string { return [...]string{"wait", "read", "ready", "descriptor", "hand"}[w] }

// collector has the completions of one queue that nobody has asked for. It is safe for concurrent use.
type collector struct {
	mu   sync.Mutex
	list []provider.Completion
	news chan struct{} // closed, and replaced, when something was added
	err  error         // why no more will come

	room bool // a wait may return with nothing: posts were refused, and there is room again
}

func newCollector(o *opener) *collector { return &collector{news: make(chan struct{}), room: o.again} }

func (c *collector) add(more []provider.Completion, err error) {
	if len(more) == 0 && err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, more...)
	if c.err == nil {
		c.err = err
	}
	close(c.news)
	c.news = make(chan struct{})
}

// take waits until n completions are there, or the time is over, and takes n of them, or all.
func (c *collector) take(n int, limit time.Duration) ([]provider.Completion, error) {
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		c.mu.Lock()
		got, news, err := len(c.list), c.news, c.err
		if got >= n || err != nil {
			taken := c.cut(n)
			c.mu.Unlock()
			if got < n {
				return taken, err
			}
			return taken, nil
		}
		c.mu.Unlock()
		select {
		case <-news:
		case <-end.C:
			c.mu.Lock()
			defer c.mu.Unlock()
			taken := c.cut(n)
			if len(taken) < n {
				return taken, fmt.Errorf("after %v only %d of %d completions: %w", limit, len(taken), n, context.DeadlineExceeded)
			}
			return taken, nil
		}
	}
}

// all takes what is there; if that is nothing, it waits for something, or until the time is over.
func (c *collector) all(limit time.Duration) []provider.Completion {
	c.waitNews(limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut(len(c.list))
}

// cut takes up to n completions; c.mu is held.
func (c *collector) cut(n int) []provider.Completion {
	n = min(n, len(c.list))
	taken := c.list[:n:n]
	c.list = c.list[n:]
	return taken
}

// waitNews waits until something comes, or a short time.
func (c *collector) waitNews(limit time.Duration) {
	c.mu.Lock()
	news, some := c.news, len(c.list) > 0
	c.mu.Unlock()
	if some {
		return
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	select {
	case <-news:
	case <-end.C:
	}
}

// collect moves completions from q to c until ctx ends or the queue is closed.
func (c *collector) collect(ctx context.Context, q queue, w way) {
	var err error
	switch w {
	case byWait:
		err = c.byWait(ctx, q)
	case byRead:
		err = c.byRead(ctx, q)
	case byReady:
		err = c.byReady(ctx, q)
	case byDescriptor:
		err = c.byDescriptor(ctx, q)
	case byHand:
		return
	}
	if err != nil && ctx.Err() == nil {
		c.add(nil, err)
	}
}

func (c *collector) byWait(ctx context.Context, q queue) error {
	var some [32]provider.Completion
	for {
		n, err := q.Wait(ctx, some[:])
		c.add(some[:n], nil)
		if err != nil {
			return err
		}
		if n == 0 && !c.room {
			return errors.New("CompletionQueue.Wait returned neither a completion nor an error")
		}
	}
}

func (c *collector) byRead(ctx context.Context, q queue) error {
	var some [32]provider.Completion
	for ctx.Err() == nil {
		n, err := q.Read(some[:])
		c.add(some[:n], nil)
		if err != nil {
			return err
		}
		if n == 0 {
			runtime.Gosched()
		}
	}
	return nil
}

// drain reads until nothing is left.
func (c *collector) drain(q queue) error {
	var some [32]provider.Completion
	for {
		n, err := q.Read(some[:])
		c.add(some[:n], nil)
		if n == 0 || err != nil {
			return err
		}
	}
}

func (c *collector) byReady(ctx context.Context, q queue) error {
	for {
		if err := c.drain(q); err != nil {
			return err
		}
		select {
		case <-q.Ready():
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *collector) byDescriptor(ctx context.Context, q queue) error {
	p, err := newPoller(q)
	if err != nil {
		return err
	}
	defer p.close()
	defer context.AfterFunc(ctx, p.interrupt)()
	for ctx.Err() == nil {
		if err := c.drain(q); err != nil {
			return err
		}
		if err := p.wait(q); err != nil {
			return err
		}
	}
	return nil
}

// poller waits on the descriptor of a queue, in the event loop of the Go runtime: one that is told
// of edges only.
type poller struct{ file *os.File }

func newPoller(q queue) (*poller, error) {
	fd, err := q.Descriptor()
	if err != nil {
		return nil, fmt.Errorf("descriptor: %w", err)
	}
	// The descriptor belongs to the queue, and os.File closes its own.
	own, err := syscall.Dup(fd)
	if err != nil {
		return nil, fmt.Errorf("dup of descriptor %d: %w", fd, err)
	}
	syscall.CloseOnExec(own)
	if err := syscall.SetNonblock(own, true); err != nil {
		return nil, errors.Join(err, syscall.Close(own))
	}
	return &poller{os.NewFile(uintptr(own), "completion queue")}, nil
}

// wait returns when Read may find something, or after interrupt.
func (p *poller) wait(q queue) error {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	err = raw.Read(func(uintptr) bool { return !q.TryWait() })
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// interrupt ends every wait, now and later.
func (p *poller) interrupt() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) }

func (p *poller) close() { _ = p.file.Close() }
