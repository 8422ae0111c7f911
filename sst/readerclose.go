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
// ones, and reads that are under way fail. An ADIOS2 writer hears of it at a
// moment that it survives, within 200 ms: a session of the reader's own is waited
// for, a shared one does it in the background. It is idempotent.
//
// Every rank of a cohort has to close. Rank 0 waits until the others have, at
// most for CloseTimeout, so that no step is taken away from them. Another rank
// waits as long for rank 0 if it closes in the middle of a stream whose blocks
// are pushed to every rank: a writer gives up a reader that it cannot push to.
func (r *Reader) Close() error {
	why := fmt.Errorf("reader of %s: %w", r.name, ErrClosed)
	r.plane.Fail(why) // first, so that reads under way say why they end
	r.memberEvent(cp.MemberLeave{Err: ErrClosed, Looks: r.plane.InUse()})
	err := r.waitForOthers()
	r.abort(ErrClosed)
	r.seeOff()
	r.dropOwnSession()
	if err != nil {
		return r.fail("close", err)
	}
	return nil
}

// waitForOthers waits until no other rank needs us any more.
func (r *Reader) waitForOthers() error {
	limit := r.cfg.CloseTimeout
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, ErrTimeout)
	defer cancel()
	for first := true; ; first = false {
		r.mu.Lock()
		needed, changed := r.needed(), r.changed.wait()
		r.mu.Unlock()
		if !needed {
			return nil
		}
		if first {
			defer explain(ctx, r.session.log, func() (string, []any) {
				args := []any{"stream", r.name, "rank", r.ranks.rank, "ranks that have not closed", r.stillHere()}
				return "closing: waiting for the other ranks of the reader", append(args, until(ctx)...)
			})()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("ranks %v have not closed after %v: %w", r.stillHere(), limit, context.Cause(ctx))
		}
	}
}

// needed reports whether other ranks rely on us. The caller holds mu.
func (r *Reader) needed() bool {
	switch {
	case r.ranks.size == 1 || r.aborted:
		return false
	case r.leader != nil:
		return len(r.here) > 0 && !errors.Is(r.leader.Failure(), ErrRankFailed)
	}
	return len(r.here) > 0 && (r.preloading() || r.mayBePushed())
}

// stillHere lists the ranks that we wait for.
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
	r.handle(cp.MemberLeave{Err: err, Looks: r.plane.InUse()})
	if r.leader != nil {
		r.lead(cp.LeaveNow{Err: err})
	}
	if r.leader != nil {
		r.ranks.send(&cp.StreamEnd{}, r.ranks.others()...) // to those that have closed before us
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
	r.dropRoutes()
	r.mu.Unlock()
	r.plane.Close(fmt.Errorf("reader of %s: %w", r.name, err))
	s := r.session
	s.retire(r.ids...)
	for _, l := range links {
		if l != nil {
			s.unuse(l, r)
		}
	}
	s.removeStream(r)
	if r.own {
		go s.Close() // not here: in a callback it would wait for itself
	}
}
