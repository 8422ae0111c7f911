package sst

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// defaultReaderClose is how long rank 0 waits for the other ranks.
const defaultReaderClose = time.Minute

// Close leaves the stream; the writer goes on. Open steps end, also retained
// ones, and reads that are under way fail. Every rank of a cohort has to close;
// rank 0 waits until the others have, at most for CloseTimeout, so that no step
// is taken away from them. An ADIOS2 writer hears of it at a moment that it
// survives, within 200 ms: a session of the reader's own is waited for, a shared
// one does it in the background. It is idempotent.
func (r *Reader) Close() error {
	why := fmt.Errorf("reader of %s: %w", r.name, ErrClosed)
	r.plane.Fail(why) // first, so that reads under way say why they end
	r.memberEvent(cp.MemberLeave{Err: ErrClosed})
	err := r.waitForOthers()
	r.abort(ErrClosed)
	r.dropOwnSession()
	if err != nil {
		return r.fail("close", err)
	}
	return nil
}

// waitForOthers waits until every other rank has closed or is gone. Only rank 0
// does.
func (r *Reader) waitForOthers() error {
	if r.leader == nil || r.ranks == 1 {
		return nil
	}
	limit := r.cfg.CloseTimeout
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, ErrTimeout)
	defer cancel()
	defer explain(ctx, r.session.log, func() (string, []any) {
		args := []any{"stream", r.name, "ranks that have not closed", r.stillHere()}
		return "closing: waiting for the other ranks of the reader", append(args, until(ctx)...)
	})()
	for {
		r.mu.Lock()
		over := len(r.here) == 0 || r.aborted || errors.Is(r.leader.Failure(), ErrRankFailed)
		changed := r.changed.wait()
		r.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("ranks %v have not closed after %v: %w", r.stillHere(), limit, context.Cause(ctx))
		}
	}
}

// stillHere lists the other ranks that have neither closed nor died.
func (r *Reader) stillHere() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.here))
}

// abort leaves the stream without waiting.
func (r *Reader) abort(err error) {
	why := fmt.Errorf("reader of %s: %w", r.name, err)
	r.plane.Fail(why)
	r.mu.Lock()
	r.aborted = true
	r.handle(cp.MemberLeave{Err: err})
	if r.leader != nil {
		r.lead(cp.LeaveNow{Err: err})
	}
	r.changed.notify()
	r.unlock()
	r.plane.Close(why)
	r.leaveChannel()
	r.giveBack(err)
}

// dropOwnSession ends a session that nobody else uses, and waits for that.
func (r *Reader) dropOwnSession() {
	if r.own {
		r.session.Close()
	}
}

// giveBack releases what the reader holds, once, unless a handshake goes on
// without its caller. It does not wait, and may run in a callback.
func (r *Reader) giveBack(err error) {
	r.mu.Lock()
	if r.released || r.leader != nil && r.leader.Pending() {
		r.mu.Unlock()
		return
	}
	r.released = true
	links := append([]carrier.Link{r.link}, r.far...)
	for _, l := range r.peers {
		links = append(links, l)
	}
	r.mu.Unlock()
	r.plane.Close(fmt.Errorf("reader of %s: %w", r.name, err))
	s := r.session
	s.retire(r.ids...)
	for _, l := range links {
		if l != nil {
			s.unuse(l)
		}
	}
	s.removeStream(r)
	if r.own {
		go s.Close() // not here: in a callback it would wait for itself
	}
}
