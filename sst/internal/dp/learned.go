package dp

import (
	"context"
	"errors"

	"github.com/weft-fabric/weft/step"
)

// In learned mode the writer pushes to a reader rank what that rank asked for in
// the first step of the mode: whole blocks, from the next step on, once the first
// one was released (docs/wire/sst.md §8.3). Whoever did not ask then has to ask.
// A push can come twice, and before the metadata of its step.

// learning is what the writer can have learned of us.
type learning struct {
	first int64        // first step of the mode, -1 before it came
	asked map[int]bool // writer ranks that were asked for something in it
}

// Saw tells the plane the mode of a step, also of one that nobody reads: the
// writer learns in the first step of its mode, and learns nothing if that was
// passed over.
func (e *Evpath) Saw(number int64, mode int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.saw(number, mode)
}

// saw is Saw for who holds mu.
func (e *Evpath) saw(number int64, mode int32) {
	if mode == ModeLearned && e.learned.first < 0 {
		e.learned.first = number
	}
}

// Learned reports whether blocks come by themselves because of what was read.
func (e *Evpath) Learned() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.learned.first >= 0 && len(e.learned.asked) > 0
}

// readLearned takes what is pushed, and asks for the rest.
func (e *Evpath) readLearned(ctx context.Context, number int64, pieces []step.Piece) error {
	rest := make([]step.Piece, 0, len(pieces))
	for _, p := range pieces {
		b, err := e.expected(ctx, block{number, p.Rank})
		switch {
		case err != nil:
			return err
		case b == nil:
			rest = append(rest, p)
		default:
			if err := e.copyPart(b, number, p); err != nil {
				return err
			}
		}
	}
	e.learn(number, rest)
	return e.request(ctx, number, rest)
}

// learn notes whom we ask in the first step.
func (e *Evpath) learn(number int64, pieces []step.Piece) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range pieces {
		if number == e.learned.first {
			e.learned.asked[p.Rank] = true
		}
	}
}

// errImpatient ends the wait for a block that the writer should have pushed.
var errImpatient = errors.New("the block does not come by itself")

// expected returns a block that is here or is bound to come, in use until unuse;
// nil if it has to be asked for. A writer that does not push after all, because
// another rank of ours still holds the first step, say, must not hold us up: then
// it is asked, and not waited for again.
func (e *Evpath) expected(ctx context.Context, b block) (*preloaded, error) {
	here, coming := e.bound(b)
	switch {
	case here:
		return e.await(ctx, b)
	case !coming:
		return nil, nil
	}
	short, cancel := context.WithTimeoutCause(ctx, e.cfg.Patience, errImpatient)
	defer cancel()
	p, err := e.await(short, b)
	_, lost := errors.AsType[*lostRank](err)
	if err != nil && ctx.Err() == nil && (lost || errors.Is(err, errImpatient)) {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.learned.asked, b.rank)
		return nil, nil
	}
	return p, err
}

// bound reports whether a block is here, and whether it should come without
// being asked for.
func (e *Evpath) bound(b block) (here, coming bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, l := e.preloads[b], &e.learned
	return p != nil && p.here, l.asked[b.rank] && b.step > l.first && e.over(l.first)
}
