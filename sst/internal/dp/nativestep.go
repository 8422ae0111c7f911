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
	l, err := s.lease(ctx, rank, x, offset, n)
	switch {
	case err != nil:
		return nil, nil, err
	case l == nil:
		return s.evpathStep.View(ctx, rank, offset, n)
	}
	b, release := s.viewed(l, offset, n)
	return b, release, nil
}

// ViewNow is View of what can be had without any waiting; false: View knows more.
func (s *nativeStep) ViewNow(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), bool) {
	l := s.leased(ctx, rank, offset, n)
	if l == nil {
		return nil, nil, false
	}
	b, release := s.viewed(l, offset, n)
	return b, release, true
}

// viewed counts a view of a part.
func (s *nativeStep) viewed(l *lease, offset, n uint64) ([]byte, func()) {
	s.seen[l.rank].views.Add(1)
	s.seen[l.rank].viewed.Add(n)
	return shown(l.part(offset, n), l.release)
}

// Held lends what lies in one extent, so that it is copied from there to where it
// belongs.
func (s *nativeStep) Held(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), error) {
	x, _, err := s.find(rank, offset, n)
	if err != nil {
		return nil, nil, err
	}
	if x != nil {
		l, err := s.lease(ctx, rank, x, offset, n)
		if err != nil {
			return nil, nil, err
		}
		if l != nil {
			s.seen[rank].copied.Add(n)
			return l.part(offset, n), l.release, nil
		}
	}
	return s.evpathStep.Held(ctx, rank, offset, n)
}

// HeldNow is Held of what can be had without any waiting; false: Held knows more.
func (s *nativeStep) HeldNow(ctx context.Context, rank int, offset, n uint64) ([]byte, func(), bool) {
	l := s.leased(ctx, rank, offset, n)
	if l == nil {
		return nil, nil, false
	}
	s.seen[rank].copied.Add(n)
	return l.part(offset, n), l.release, true
}

// leased lends a part of what is leased already; nil if the range is not in that, or something is
// wrong.
func (s *nativeStep) leased(ctx context.Context, rank int, offset, n uint64) *lease {
	if n == 0 || ctx.Err() != nil {
		return nil
	}
	l := s.uses.again(s.use, rank, offset, n)
	if l != nil && s.plane.alive(s.number) != nil { // after that, as in begin
		l.end()
		return nil
	}
	return l
}

// lease views the extent of a rank that a range is in; nil without an error means that the range is
// to be had by messages.
func (s *nativeStep) lease(ctx context.Context, rank int, x *Extent, offset, n uint64) (*lease, error) {
	if l := s.leased(ctx, rank, offset, n); l != nil {
		return l, nil
	}
	if err := s.begin(rank); err != nil {
		return nil, err
	}
	u, from := &until{Context: ctx, plane: s.plane}, x.Offset
	mem, free, err := s.look(u, rank, x, from, x.Length)
	if errors.Is(err, fabric.ErrKey) { // a list may promise more than there is, as long as nobody wants it
		from = offset
		mem, free, err = s.look(u, rank, x, from, n)
	}
	u.end()
	if err != nil {
		s.uses.end(s.use)
		return nil, s.refused(ctx, rank, err)
	}
	return s.uses.lease(s.use, rank, from, mem, free), nil
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
	if err := s.begin(rank); err != nil {
		return nil, nil, err
	}
	b, free, err := s.look(ctx, rank, x, offset, n)
	ctx.end()
	if err != nil {
		s.uses.end(s.use)
		return nil, nil, s.refused(ctx.Context, rank, err)
	}
	return b, func() {
		free()
		s.uses.end(s.use)
	}, nil
}

// begin counts one more use of the step.
func (s *nativeStep) begin(rank int) error {
	if !s.uses.begin(s.use) {
		return s.failed(rank, errOver)
	}
	// After that: a plane that has failed has nothing in use that InUse does not tell.
	if err := s.plane.alive(s.number); err != nil {
		s.uses.end(s.use)
		return s.failed(rank, err)
	}
	return nil
}

// look asks the route for a range in an extent. What nobody looks at makes room for it, if there is none.
func (s *nativeStep) look(ctx *until, rank int, x *Extent, offset, n uint64) (b []byte, free func(), err error) {
	route, at := s.ranks[rank].route, x.At+(offset-x.Offset)
	b, free, err = route.View(ctx, x.Key, at, int(n))
	if errors.Is(err, fabric.ErrNoMemory) && s.uses.tidy() {
		b, free, err = route.View(ctx, x.Key, at, int(n))
	}
	return slices.Clip(b), free, err
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
