package dp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/step"
)

// nativeStep is a step of which something lies in memory that can be looked at. What
// does not is the business of the step inside.
type nativeStep struct {
	*evpathStep
	ranks []located
	seen  []rankViews
	uses  *uses
	use   *use
}

// located returns where the block of a rank lies; nil if it is asked for.
func (s *nativeStep) located(rank int) *located {
	if rank < 0 || rank >= len(s.ranks) || s.ranks[rank].route == nil {
		return nil
	}
	return &s.ranks[rank]
}

// View hands out the writer's own memory, if the range lies in one extent.
func (s *nativeStep) View(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	x, touched, err := s.find(rank, offset, n)
	switch {
	case err != nil:
		return nil, nil, err
	case x == nil && touched:
		return nil, nil, fmt.Errorf("step %d: %d bytes at %d of writer rank %d's block are not in one piece of its memory: %w", s.number, n, offset, rank, step.ErrNoView)
	case x == nil:
		return s.evpathStep.View(ctx, rank, offset, n)
	}
	b, release, err := s.lend(&until{Context: ctx, plane: s.plane}, rank, x, offset, n)
	switch {
	case err != nil:
		return nil, nil, err
	case b == nil:
		return s.evpathStep.View(ctx, rank, offset, n)
	}
	s.seen[rank].views.Add(1)
	s.seen[rank].viewed.Add(n)
	return b, release, nil
}

// Held lends what lies in one extent, so that it is copied from there to where it
// belongs.
func (s *nativeStep) Held(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	x, _, err := s.find(rank, offset, n)
	if err != nil {
		return nil, nil, err
	}
	if x != nil {
		b, release, err := s.lend(&until{Context: ctx, plane: s.plane}, rank, x, offset, n)
		if b != nil || err != nil {
			s.seen[rank].copied.Add(uint64(len(b)))
			return b, release, err
		}
	}
	return s.evpathStep.Held(ctx, rank, offset, n)
}

// find returns the extent that a range lies in; nil if there is none, then touched says
// whether a part of it lies in some.
func (s *nativeStep) find(rank int, offset, n uint64) (x *Extent, touched bool, err error) {
	l := s.located(rank)
	if l == nil || n == 0 {
		return nil, false, nil
	}
	if l.err != nil {
		return nil, false, s.failed(rank, l.err)
	}
	i := behind(l.extents, offset)
	if i == len(l.extents) {
		return nil, false, nil
	}
	switch x := &l.extents[i]; {
	case offset < x.Offset:
		return nil, n > x.Offset-offset, nil
	case n > x.end()-offset:
		return nil, true, nil
	default:
		return x, true, nil
	}
}

// lend returns the memory of a range in an extent, in use until it is released; nil
// without an error means that it is to be had by messages.
func (s *nativeStep) lend(ctx *until, rank int, x *Extent, offset, n uint64) ([]byte, func(), error) {
	if !s.uses.begin(s.use) {
		return nil, nil, s.failed(rank, errOver)
	}
	// After that: a plane that has failed has nothing in use that InUse does not tell.
	if err := s.plane.alive(s.number); err != nil {
		s.uses.end(s.use)
		return nil, nil, s.failed(rank, err)
	}
	b, free, err := s.ranks[rank].route.View(ctx, x.Key, x.At+(offset-x.Offset), int(n))
	ctx.end()
	if err != nil {
		s.uses.end(s.use)
		return nil, nil, s.refused(ctx.Context, rank, err)
	}
	return slices.Clip(b), func() {
		free()
		s.uses.end(s.use)
	}, nil
}

// alive returns why nothing of the step can be looked at: the plane has failed, or the
// step is over.
func (e *Evpath) alive(number int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.failure != nil:
		return e.failure
	case !e.open[number]:
		return errOver
	}
	return nil
}

// refused says what the error of a route means to a read; nil if messages may do
// better: the memory cannot be mapped here, or this side has no room for more views, or
// no descriptors. A peer that was given up for want of descriptors is gone, but lives.
func (s *nativeStep) refused(ctx context.Context, rank int, err error) error {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case is(fabric.ErrNotSupported, fabric.ErrNoMemory):
		return nil
	case is(fabric.ErrPeerGone, fabric.ErrUnreachable, fabric.ErrProtocol, fabric.ErrKey):
		// It is dead, or has given us up and closed its memory.
		return s.plane.explained(ctx, &lostRank{s.number, rank, err})
	}
	// This side has closed something, most likely, and should have said so.
	if why := s.plane.alive(s.number); why != nil {
		return s.failed(rank, why)
	}
	return s.failed(rank, err)
}

// failed says of which step and rank an error is.
func (s *nativeStep) failed(rank int, err error) error {
	return fmt.Errorf("step %d: read from writer rank %d: %w", s.number, rank, err)
}
