package sst_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// TestWriterRanksAtRandom gives steps up, loses readers, closes ranks and kills
// them at random moments, under random policies. Every call comes back with an
// error that fits, what a reader gets is right, and nothing is left.
func TestWriterRanksAtRandom(t *testing.T) {
	rng := testutil.Rand(t)
	for round := range testutil.Count(t, 25, 2000) {
		done := async(func() error { return oneLife(t, rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))) })
		if err := next(t, fmt.Sprint("round ", round), done); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// life is a stream with what happens to it.
type life struct {
	*crew
	reads  context.Context
	steps  int
	abort  int // one step in so many is given up
	victim int // this rank ends early, -1 for none
	how    int // it dies, its session is closed, it closes
	after  int // steps of it
	evicts bool
}

func oneLife(t *testing.T, rng *rand.Rand) error {
	const ranks = 3
	l := &life{crew: &crew{t: t, name: streamName(t), part: 4}, steps: 1 + rng.IntN(20), abort: 2 + rng.IntN(8), victim: rng.IntN(ranks+1) - 1, how: rng.IntN(3), after: rng.IntN(10)}
	reads, stop := context.WithCancel(t.Context())
	defer stop()
	l.reads = reads
	l.join(ranks)
	cfg := sst.WriterConfig{CloseTimeout: 300 * time.Millisecond, Params: sst.Params{
		RendezvousReaderCount: count(rng.IntN(2)), QueueLimit: rng.IntN(3), QueueFullPolicy: []string{"Block", "Discard"}[rng.IntN(2)],
		BlockAt: []string{"EndStep", "BeginStep"}[rng.IntN(2)], ReserveQueueLimit: rng.IntN(3), FirstTimestepPrecious: rng.IntN(2) == 0,
		StepDistributionMode: []string{"AllToAll", "RoundRobin"}[rng.IntN(2)], LagLimit: rng.IntN(2) * 10,
	}}
	l.evicts = cfg.Params.LagLimit > 0 // a reader that is evicted loses what it is reading
	what := fmt.Sprintf("%v; rank %d ends in way %d after %d of %d steps", cfg.Params, l.victim, l.how, l.after, l.steps)
	g, _ := newGroup(t.Context())
	for range 2 {
		mode, leave := []string{"On", "Off"}[rng.IntN(2)], rng.IntN(3*l.steps)
		g.Go(func() error { return l.read(mode, leave) })
	}
	errs := l.create(bounded(t), func(int) sst.WriterConfig { return cfg })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	seed := rng.Uint64()
	errs = l.all(func(rank int) error { return l.live(rank, rand.New(rand.NewPCG(seed, uint64(rank)))) })
	stop()
	if err := errors.Join(errors.Join(errs...), g.Wait()); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// live writes on one rank, to the end or until something stops it.
func (l *life) live(rank int, rng *rand.Rand) error {
	for n := range l.steps {
		if rank == l.victim && n == l.after {
			l.fall(rank)
			return nil
		}
		if err := l.try(rank, rng); errors.Is(err, sst.ErrStepAborted) && !errors.Is(err, context.DeadlineExceeded) {
			continue
		} else if err != nil {
			if !l.fits(err) {
				return fmt.Errorf("rank %d, step %d: %w", rank, n, err)
			}
			break
		}
	}
	if err := l.writers[rank].Close(); err != nil && !l.fits(err) {
		return fmt.Errorf("Close of rank %d: %w", rank, err)
	}
	return nil
}

// try makes a step, or gives it up.
func (l *life) try(rank int, rng *rand.Rand) error {
	st, err := l.begin(bounded(l.t), rank)
	if err != nil {
		return err
	}
	switch rng.IntN(2 * l.abort) {
	case 0:
		st.Abort()
		return nil
	case 1:
		ctx, cancel := context.WithCancel(l.t.Context())
		defer cancel()
		go func() {
			for range 50 {
				runtime.Gosched()
			}
			cancel()
		}()
		return st.End(ctx)
	}
	return st.End(bounded(l.t))
}

// fall ends a rank before its time.
func (l *life) fall(rank int) {
	switch l.how {
	case 0:
		l.ranks[rank].Close()
		l.writers[rank].Close()
	case 1:
		l.writers[rank].Close()
	case 2:
		go l.ranks[rank].Close()
		l.writers[rank].Close()
	}
}

// fits reports whether an error is one that what happens can cause.
func (l *life) fits(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return false // it hung
	}
	for _, want := range []error{sst.ErrRankFailed, sst.ErrStepAborted, sst.ErrClosed, sst.ErrTimeout, cohort.ErrClosed, context.Canceled} {
		if errors.Is(err, want) {
			return l.victim >= 0 || errors.Is(err, sst.ErrStepAborted) || errors.Is(err, sst.ErrTimeout)
		}
	}
	return false
}

// read reads so many steps, or to the end.
func (l *life) read(mode string, leave int) error {
	r, err := sst.Open(l.reads, l.name, sst.ReaderConfig{Session: quickSession(l.t), Params: sst.Params{SpeculativePreloadMode: mode, OpenTimeoutSecs: 20}})
	if err != nil {
		return nil // the writer was gone, or had no use for it
	}
	defer r.Close()
	last := int64(-1)
	for range leave {
		st, err := r.BeginStep(l.reads)
		if err != nil {
			return nil
		}
		err = verify(l.reads, st)
		n := int64(st.Number())
		st.End()
		switch {
		case n <= last:
			return fmt.Errorf("step %d after %d", n, last)
		case err != nil && l.victim < 0 && !l.evicts && l.reads.Err() == nil && !errors.Is(err, sst.ErrClosed) && !errors.Is(err, sst.ErrWriterFailed):
			return fmt.Errorf("step %d: %w", n, err)
		}
		last = n
	}
	return nil
}
