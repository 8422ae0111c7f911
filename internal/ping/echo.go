package ping

import "context"

// roundTrip sends transfer i and waits for the one that answers it.
func (r *run) roundTrip(ctx context.Context, i int) error {
	if err := r.send(ctx, i); err != nil {
		return err
	}
	if err := r.land(ctx, i); err != nil {
		return err
	}
	return r.arm(ctx, i+r.Slots)
}

// echo answers each transfer by one of this side.
func (r *run) echo(ctx context.Context) error {
	for i := range r.total() {
		r.tick(i)
		if err := r.land(ctx, i); err != nil {
			return err
		}
		if err := r.send(ctx, i); err != nil {
			return err
		}
		if err := r.arm(ctx, i+r.Slots); err != nil {
			return err
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.checkIn(ctx)
}

// sink takes messages in.
func (r *run) sink(ctx context.Context) error {
	for i := range r.total() {
		r.tick(i)
		if err := r.land(ctx, i); err != nil {
			return err
		}
		if err := r.arm(ctx, i+r.Slots); err != nil {
			return err
		}
	}
	return r.say(ctx, control{Verb: allHere})
}
