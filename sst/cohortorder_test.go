package sst_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// right are the errors that a wrong order of calls may bring.
func right(err error) bool {
	if err == nil || isOrder(err) {
		return true
	}
	for _, want := range []error{sst.ErrStepAborted, sst.ErrRankFailed, sst.ErrTimeout, context.DeadlineExceeded} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// TestF83CohortOrder is field report F83 for ranks of a writer: each of them calls
// anything at any time, and every call comes back soon, with an error that says
// what is wrong. Another stream on the same cohort is not touched.
func TestF83CohortOrder(t *testing.T) {
	rng := testutil.Rand(t)
	s := quickSession(t)
	for round := range testutil.Count(t, 25, 3000) {
		c := &crew{t: t, name: streamName(t), part: 4}
		carriers[[]string{"Local", "TCP"}[round%2]](c, 3)
		cfg := sst.WriterConfig{Session: s, CloseTimeout: 100 * time.Millisecond, Params: sst.Params{
			RendezvousReaderCount: none(), QueueLimit: 1 + rng.IntN(3), BlockAt: []string{"EndStep", "BeginStep"}[rng.IntN(2)],
		}}
		c.must(c.create(bounded(t), func(int) sst.WriterConfig { return cfg }))
		seed := rng.Uint64()
		errs := c.all(func(rank int) error {
			return wildRank(t, c, rank, rand.New(rand.NewPCG(seed, uint64(rank))))
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if t.Failed() {
			return
		}
	}
}

// wildRank calls in any order, from two goroutines.
func wildRank(t *testing.T, c *crew, rank int, rng *rand.Rand) error {
	w := c.writers[rank]
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 1))
		wg.Go(func() {
			var st *sst.WriterStep
			for n := range 12 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(20))*time.Millisecond)
				start, what := time.Now(), ""
				var err error
				switch k := rng.IntN(24); {
				case k < 8:
					what = "BeginStep"
					var next *sst.WriterStep
					if next, err = w.BeginStep(ctx); err == nil {
						st = next
					}
				case k < 18 && st != nil:
					what = "End"
					err = st.End(ctx)
				case k < 21 && st != nil:
					what = "Abort"
					st.Abort()
				case k == 21 && n > 6:
					what = "Finish"
					err = w.Finish(ctx)
				case k == 22 && n > 8:
					what = "Close"
					err = w.Close()
				}
				cancel()
				if took := time.Since(start); took > 5*time.Second {
					err = fmt.Errorf("took %v: %w", took, err)
					errs[i] = fmt.Errorf("rank %d: %s: %w", rank, what, err)
					return
				}
				if !right(err) {
					errs[i] = fmt.Errorf("rank %d: %s: %w", rank, what, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); !right(err) {
		return fmt.Errorf("rank %d: Close: %w", rank, err)
	}
	return errors.Join(errs...)
}

// TestAbortStorm gives steps up on one rank as fast as it can, while another one
// computes: what that one has to catch up with takes little memory, and the stream
// goes on.
func TestAbortStorm(t *testing.T) {
	c := newCrew(t, 2, sst.WriterConfig{Session: quickSession(t)})
	r := attach(t, c.name, sst.ReaderConfig{})
	n := testutil.Count(t, 20_000, 500_000)
	ctx := bounded(t)
	before := heap()
	for range n {
		st, err := c.writers[1].BeginStep(ctx)
		if err != nil {
			t.Fatal(err)
		}
		st.Abort()
	}
	if more := int64(heap()) - int64(before); more > 1<<20 {
		t.Errorf("%d KiB more after %d steps that were given up", more>>10, n)
	}
	for range n {
		st, err := c.writers[0].BeginStep(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.End(ctx); !errors.Is(err, sst.ErrStepAborted) {
			t.Fatal(err)
		}
	}
	c.step()
	if seen := c.finish(r); !slices.Equal(seen, []uint64{0}) {
		t.Errorf("steps %v", seen)
	}
}

// TestStreamsOfOneName opens the same name several times on one cohort, more often
// on one rank than on another: what has no counterpart waits, and ends with its
// context; the others work.
func TestStreamsOfOneName(t *testing.T) {
	c := &crew{t: t, name: streamName(t), part: 4}
	c.join(2)
	cfg := func(int) sst.WriterConfig {
		return sst.WriterConfig{CloseTimeout: 200 * time.Millisecond, Params: sst.Params{RendezvousReaderCount: none()}}
	}
	c.must(c.create(bounded(t), cfg))
	first, vars := c.writers, c.vars
	c.must(c.create(bounded(t), cfg)) // takes the contact file over
	r := attach(t, c.name, sst.ReaderConfig{})
	for _, other := range []func(){func() { c.step() }, func() {
		w, v := c.writers, c.vars
		c.writers, c.vars = first, vars
		c.step()
		c.writers, c.vars = w, v
	}} {
		other()
	}
	lone := async(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		one := cfg(1)
		one.Cohort, one.Session = c.ranks[1], quickSession(t)
		_, err := sst.Create(ctx, c.name, one)
		return err
	})
	within(t, 2*time.Second, "Create", func() { wants(t, "Create of one rank", next(t, "Create", lone), context.DeadlineExceeded) })
	c.step()
	if seen := c.finish(r); len(seen) != 2 {
		t.Errorf("steps %v", seen)
	}
	c.writers = first
	c.must(c.close())
	// The lone one has used up a turn of its rank: the other rank meets its end.
	late := cfg(0)
	late.Cohort, late.Session = c.ranks[0], quickSession(t)
	_, err := sst.Create(bounded(t), c.name, late)
	wants(t, "Create that comes too late", err, context.DeadlineExceeded)
	c.must(c.create(bounded(t), cfg))
	c.step()
	c.must(c.close())
	empty(t, c.name)
}

// TestEndsUnderTheStream closes the session and the cohort of one rank at each
// phase: the others get an error that names a rank, or the normal end, and nothing
// waits.
func TestEndsUnderTheStream(t *testing.T) {
	phases := map[string]func(c *crew, rank int) error{
		"between steps": func(*crew, int) error { return nil },
		"in a step":     func(c *crew, rank int) error { _, err := c.begin(bounded(c.t), rank); return err },
		"in End": func(c *crew, rank int) error {
			st, err := c.begin(bounded(c.t), rank)
			if err == nil && rank != 2 {
				async(func() error { return st.End(bounded(c.t)) })
			}
			return err
		},
		"in Finish": func(c *crew, rank int) error {
			if rank != 2 {
				async(func() error { return c.writers[rank].Finish(bounded(c.t)) })
			}
			return nil
		},
		"closed": func(c *crew, rank int) error {
			if rank != 2 {
				async(func() error { return c.writers[rank].Close() })
			}
			return nil
		},
	}
	for phase, enter := range phases {
		for _, what := range []string{"session", "cohort"} {
			for _, victim := range []int{0, 2} {
				t.Run(fmt.Sprintf("%s of rank %d, %s", what, victim, phase), func(t *testing.T) {
					c := &crew{t: t, name: streamName(t), part: 4}
					c.join(3)
					sessions := []*sst.Session{quickSession(t), quickSession(t), quickSession(t)}
					c.must(c.create(bounded(t), func(rank int) sst.WriterConfig {
						return sst.WriterConfig{Session: sessions[rank], CloseTimeout: 10 * time.Second, Params: sst.Params{RendezvousReaderCount: none()}}
					}))
					r := attach(t, c.name, sst.ReaderConfig{})
					c.must(c.all(func(rank int) error { return enter(c, rank) }))
					end := sessions[victim].Close
					if what == "cohort" {
						end = c.ranks[victim].Close
					}
					within(t, 5*time.Second, "Close under it", func() { end() })
					within(t, 5*time.Second, "what follows", func() {
						for rank, err := range c.all(func(rank int) error {
							return errors.Join(c.write(bounded(t), rank), c.writers[rank].Close())
						}) {
							if !right(err) && !errors.Is(err, sst.ErrClosed) {
								t.Errorf("rank %d: %v", rank, err)
							}
						}
						ctx := bounded(t)
						for {
							st, err := r.BeginStep(ctx)
							if err != nil {
								if ctx.Err() != nil {
									t.Error("the reader waits")
								}
								break
							}
							st.End()
						}
					})
				})
			}
		}
	}
}

// TestReaderCohortOrder is F83 for ranks of a reader.
func TestReaderCohortOrder(t *testing.T) {
	rng := testutil.Rand(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 3, QueueFullPolicy: "Discard"}}), 8)
	stop := make(chan struct{})
	wrote := async(func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			if err := x.write(bounded(t)); err != nil {
				return err
			}
			runtime.Gosched()
		}
	})
	for round := range testutil.Count(t, 15, 1000) {
		c := local(t, 3)
		mode := []string{"On", "Off"}[round%2]
		for rank, err := range c.open(bounded(t), name, all(sst.ReaderConfig{CloseTimeout: 200 * time.Millisecond, Params: sst.Params{SpeculativePreloadMode: mode}})) {
			if err != nil {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
		seed := rng.Uint64()
		c.each(t, func(rank int, r *sst.Reader) error {
			rng := rand.New(rand.NewPCG(seed, uint64(rank)))
			var held []*step.Step
			for range 30 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(20))*time.Millisecond)
				start := time.Now()
				var err error
				switch k := rng.IntN(12); {
				case k < 5:
					var st *step.Step
					if st, err = r.BeginStep(ctx); err == nil {
						held = append(held, st)
					}
				case k < 7 && len(held) > 0:
					held[rng.IntN(len(held))].End()
				case k == 7 && len(held) > 0:
					err = r.Retain(held[rng.IntN(len(held))])
				case k == 8 && len(held) > 0:
					// Once rank 0 has gone the writer has forgotten us all: a read may fail, but
					// never bring something else.
					if err = verify(ctx, held[rng.IntN(len(held))]); err != nil && !strings.Contains(err.Error(), ", want ") {
						err = nil
					}
				case k == 9:
					err = r.LockSelections()
				case k == 10 && rng.IntN(4) == 0:
					err = r.Close()
				}
				cancel()
				r.Info()
				if took := time.Since(start); took > 5*time.Second || !right(err) {
					return fmt.Errorf("after %v: %w", took, err)
				}
			}
			for _, st := range held {
				st.End()
			}
			if err := r.Close(); !right(err) {
				return err
			}
			return nil
		})
		for _, s := range c.sessions {
			s.Close()
		}
		if t.Failed() {
			break
		}
	}
	close(stop)
	if err := next(t, "the writer", wrote); err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "no reader is left", func() bool { return len(x.w.Info().Readers) == 0 })
}
