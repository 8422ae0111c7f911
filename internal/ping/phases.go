package ping

import (
	"context"
	"time"
)

// latency does one operation after the other, and takes the time of each, without the pause before it. check is called
// at the end; it may be nil.
func (r *run) latency(ctx context.Context, one func(context.Context, int) error, check func(context.Context) error) (m measured, err error) {
	m.samples = make([]int64, 0, r.Iters)
	start := time.Now()
	var last time.Duration
	for i := range r.total() {
		if r.Pause > 0 {
			if err := Pause(ctx, r.Pause); err != nil {
				return m, err
			}
			last = time.Since(start)
		}
		if err := one(ctx, i); err != nil {
			return m, err
		}
		r.tick(i)
		now := time.Since(start)
		if i >= r.Warm {
			m.samples = append(m.samples, int64(now-last))
			m.took += now - last
		}
		last = now
	}
	if err := r.settle(ctx); err != nil || check == nil {
		return m, err
	}
	return m, check(ctx)
}

// rate starts operations as long as there are slots. The time ends when all have ended, and finish,
// which may be nil, has returned.
func (r *run) rate(ctx context.Context, next func(context.Context, int) error, finish func() error) (m measured, err error) {
	var start time.Time
	for i := range r.total() {
		if i == r.Warm {
			start = time.Now()
		}
		if err := next(ctx, i); err != nil {
			return m, err
		}
		r.tick(i)
	}
	if err := r.settle(ctx); err != nil {
		return m, err
	}
	if r.Op == Read { // finish looks at all bytes
		m.took = time.Since(start)
		return m, finish()
	}
	if finish != nil {
		err = finish()
	}
	m.took = time.Since(start)
	return m, err
}
