package dp

import (
	"context"
	"time"
)

// A block that is pushed comes over a connection of the writer rank's making, of
// which this side knows nothing before the first one came. If the rank dies, an
// ADIOS2 writer tells nobody. So a read that has waited for a while has somebody look
// after the rank.

// Watcher returns why a writer rank can push no block any more, when that is so; nil
// when ctx ends first. It must not take long then.
type Watcher func(ctx context.Context, rank int) error

const defaultDoubt = time.Second

// arrival waits for what is closed when there is more to know of a block, or for the
// death of the rank that should push it.
func (e *Evpath) arrival(ctx context.Context, b block, ready <-chan struct{}) error {
	if isClosed(ready) {
		return nil
	}
	doubt := time.NewTimer(e.cfg.Doubt)
	defer doubt.Stop()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-doubt.C:
		return e.doubtful(ctx, b, ready)
	}
}

// doubtful is the rest of arrival, in which the rank is watched.
func (e *Evpath) doubtful(ctx context.Context, b block, ready <-chan struct{}) error {
	watching, stop := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() {
		defer close(gone)
		if e.cfg.Watch == nil {
			<-watching.Done()
			return
		}
		if err := e.cfg.Watch(watching, b.rank); err != nil {
			gone <- err
		}
	}()
	defer func() {
		stop()
		for range gone { // it has ended when we return
		}
	}()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case err, died := <-gone:
		switch {
		case isClosed(ready): // it was the last thing that came
			return nil
		case died:
			return &lostRank{b.step, b.rank, err}
		}
		return context.Cause(ctx)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
