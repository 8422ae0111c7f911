package ping

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/fabric"
)

// Slot s of the peer's memory is stamped with s; it does not change.

// readNext checks what the last read into the slot has brought, and starts the next one.
func (r *run) readNext(ctx context.Context, i int) error {
	s := i % r.Slots
	if err := r.free(ctx, s); err != nil {
		return err
	}
	op := fabric.Op{
		Local: r.in.slots[s], Peer: r.peer, Key: r.key, Offset: uint64(s * r.Size), Context: uint64(i),
	}
	if i >= r.Slots {
		if err := checkEdges(r.Op, op.Local.Bytes, uint64(s)); err != nil {
			return err
		}
	}
	stamp(op.Local.Bytes, ^uint64(s)) // which a read that does nothing leaves
	r.busy[s] = true
	return r.post(ctx, r.post1, op)
}

// readOne reads, and waits for the end.
func (r *run) readOne(ctx context.Context, i int) error {
	if err := r.readNext(ctx, i); err != nil {
		return err
	}
	return r.free(ctx, i%r.Slots)
}

// checkRead looks at every byte that was read last.
func (r *run) checkRead(ctx context.Context) error {
	want, err := r.newReference(ctx)
	if err != nil {
		return err
	}
	for s := range min(r.Slots, r.total()) {
		if err := want.check(r.Op, r.in.slots[s].Bytes, uint64(s)); err != nil {
			return err
		}
	}
	return nil
}

// view opens slot s.
func (r *run) view(ctx context.Context, s int) (*fabric.View, error) {
	v, err := r.domain.View(ctx, r.peer, r.key, uint64(s*r.Size), r.Size)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	if len(v.Bytes()) != r.Size {
		v.Release()
		return nil, fmt.Errorf("%w: a view of %d bytes instead of %d", ErrData, len(v.Bytes()), r.Size)
	}
	return v, nil
}

// viewOne opens a view, looks at its ends, and releases it.
func (r *run) viewOne(ctx context.Context, i int) error {
	s := i % r.Slots
	v, err := r.view(ctx, s)
	if err != nil {
		return err
	}
	defer v.Release()
	return checkEdges(r.Op, v.Bytes(), uint64(s))
}

// viewRate reads every byte of view after view, as a program does that works on the data in place.
func (r *run) viewRate(ctx context.Context) (m measured, err error) {
	want := make([]uint64, r.Slots)
	one, err := r.newReference(ctx)
	if err != nil {
		return m, err
	}
	for s := range want {
		stamp(one, uint64(s))
		want[s] = sum(one)
	}
	var start time.Time
	for i := range r.total() {
		if i == r.Warm {
			start = time.Now()
		}
		s := i % r.Slots
		v, err := r.view(ctx, s)
		if err != nil {
			return m, err
		}
		got := sum(v.Bytes())
		v.Release()
		r.tick(i)
		if got != want[s] {
			return m, fmt.Errorf("%w: the sum of view %d, of %d bytes, is %#x instead of %#x", ErrData, i, r.Size, got, want[s])
		}
	}
	m.took = time.Since(start)
	return m, nil
}
