package dp

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fabric"
)

// A read that meets a lost connection, or a writer that serves it no more, is
// often the first to see that a rank has died somewhere: the reason is on its
// way, on another connection, and better than what the read has seen. So the read
// waits a little for it.

// UnreachableError is what a [Sender] returns if the writer rank cannot be reached.
type UnreachableError struct{ Err error }

// Error is the text of the cause.
func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// lostRank is the error of a read whose writer rank is lost to us.
type lostRank struct {
	step  int64
	rank  int
	cause error
}

func (l *lostRank) Error() string {
	return fmt.Sprintf("step %d: read from writer rank %d: %v", l.step, l.rank, l.cause)
}

func (l *lostRank) Unwrap() error { return l.cause }

// sendFailed is the error of a request that could not be sent.
func sendFailed(number int64, rank int, err error) error {
	if lost, ok := errors.AsType[*UnreachableError](err); ok {
		return &lostRank{number, rank, lost.Err}
	}
	return fmt.Errorf("step %d: read from writer rank %d: %w", number, rank, err)
}

// explained puts the reason to the error of a read that needs one.
func (e *Evpath) explained(ctx context.Context, err error) error {
	lost, ok := errors.AsType[*lostRank](err)
	if !ok {
		return err
	}
	const text = "step %d: read from writer rank %d: %w"
	if why := e.reason(ctx, lost.rank); why != nil {
		return fmt.Errorf(text+" (first seen: %w)", lost.step, lost.rank, why, lost.cause)
	}
	what := e.cfg.Lost
	if e.cfg.Gone != nil && (errors.Is(lost.cause, errEmpty) || errors.Is(lost.cause, fabric.ErrKey)) {
		what = e.cfg.Gone
	}
	if what != nil {
		return fmt.Errorf(text+": %w", lost.step, lost.rank, what, lost.cause)
	}
	return err
}

// reason waits for what ends the whole plane; nil if nothing does within the
// grace. That is waited for in vain once for each rank: a program may go on to
// read, from other ranks.
func (e *Evpath) reason(ctx context.Context, rank int) error {
	e.mu.Lock()
	why, vain := e.failure, e.vain[rank]
	e.mu.Unlock()
	if why != nil || vain {
		return why
	}
	waiting, stop := context.WithTimeout(ctx, e.cfg.Grace)
	defer stop()
	if e.cfg.Await(waiting, e.failed) != nil && ctx.Err() != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.vain[rank] = e.failure == nil
	return e.failure
}
