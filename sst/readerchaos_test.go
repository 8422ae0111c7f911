package sst_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
)

// TestRanksShareASession has all ranks of a reader, and the writer, in one session.
func TestRanksShareASession(t *testing.T) {
	const ranks, steps = 3, 10
	for _, mode := range []string{"On", "Off"} {
		name := streamName(t)
		s := quickSession(t)
		x := define(t, create(t, name, sst.WriterConfig{Session: s, Ranks: 2}), 7)
		c := attachRanks(t, name, ranks, sst.ReaderConfig{Session: s, Params: sst.Params{SpeculativePreloadMode: mode}})
		for range steps {
			if err := writeRanks(bounded(t), x, 2); err != nil {
				t.Fatal(err)
			}
		}
		done := async(x.w.Close)
		c.each(t, func(rank int, r *sst.Reader) error { return readAll(bounded(t), r, 7, rank, ranks, steps) })
		if err := next(t, "Close of the writer", done); err != nil {
			t.Error(err)
		}
	}
}

// TestCohortFindsTheNext has a cohort come again and again while writers of the
// name follow each other: some openings come too late for one, and find the next.
func TestCohortFindsTheNext(t *testing.T) {
	const ranks, steps = 3, 2
	rounds := testutil.Count(t, 20, 200)
	name := filepath.Join(t.TempDir(), "s")
	over, end := context.WithCancel(bounded(t))
	wrote := async(func() error {
		defer end()
		s := quickSession(t)
		for range rounds {
			if err := passOne(t.Context(), s, name, steps); err != nil {
				return err
			}
		}
		return nil
	})
	c := local(t, ranks)
	for got := 0; ; got++ {
		errs := c.open(over, name, all(sst.ReaderConfig{}))
		if over.Err() != nil && errs[0] != nil {
			t.Logf("%d streams read of %d", got, rounds)
			break
		}
		for rank, err := range errs {
			if err != nil {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
		seen := make([][]uint64, ranks)
		c.each(t, func(rank int, r *sst.Reader) (err error) {
			seen[rank], err = drain(t.Context(), r)
			return errors.Join(err, r.Close())
		})
		for rank, list := range seen {
			if !slices.Equal(list, seen[0]) {
				t.Errorf("rank %d has the steps %v, rank 0 %v", rank, list, seen[0])
			}
		}
		// Who comes as a writer is closing gets what that still holds, or nothing.
		n := len(seen[0])
		if err := consecutive(seen[0], uint64(steps-n), n); err != nil {
			t.Error(err)
		}
	}
	if err := next(t, "the writers", wrote); err != nil {
		t.Error(err)
	}
}

// TestRanksEndAtRandom closes sessions and kills ranks at random
// moments of a stream: every call comes back with an error that fits, and the
// writer goes on.
func TestRanksEndAtRandom(t *testing.T) {
	const ranks = 3
	rng := testutil.Rand(t)
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Ranks: 2}), 20)
	for range testutil.Count(t, 30, 1000) {
		c := local(t, ranks)
		victim, yields := rng.IntN(ranks), rng.IntN(3000)
		kill, mode := rng.IntN(2) == 0, "Off"
		if kill && rng.IntN(2) == 0 { // nothing can be pushed to a rank that has closed
			mode = "On"
		}
		done := async(func() error {
			g, _ := newGroup(t.Context())
			errs := c.open(bounded(t), name, all(sst.ReaderConfig{CloseTimeout: time.Second, Params: sst.Params{SpeculativePreloadMode: mode}}))
			for rank, r := range c.readers {
				if r == nil {
					if !fits(errs[rank]) {
						return fmt.Errorf("Open of rank %d: %w", rank, errs[rank])
					}
					continue
				}
				g.Go(func() error {
					defer r.Close()
					taken := 0
					for st, err := range r.Steps(bounded(t)) {
						if err == nil {
							err = verify(bounded(t), st)
						}
						if err != nil && !fits(err) {
							return fmt.Errorf("rank %d: %w", rank, err)
						}
						if taken++; err != nil || taken == 30 {
							break
						}
					}
					if err := r.Close(); err != nil && !errors.Is(err, sst.ErrTimeout) {
						return fmt.Errorf("Close of rank %d: %w", rank, err)
					}
					return nil
				})
			}
			return g.Wait()
		})
		for range yields {
			runtime.Gosched()
			if yields%100 == 0 {
				if err := writeRanks(bounded(t), x, 2); err != nil {
					t.Fatal(err)
				}
			}
		}
		if kill {
			c.dies(victim)
		} else {
			c.sessions[victim].Close()
		}
		stop := make(chan struct{})
		wrote := async(func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				if err := writeRanks(bounded(t), x, 2); err != nil {
					return err
				}
				runtime.Gosched()
			}
		})
		if err := next(t, "all ranks", done); err != nil {
			t.Errorf("rank %d, killed %v, preload %s: %v", victim, kill, mode, err)
		}
		close(stop)
		if err := next(t, "the writer", wrote); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.sessions {
			s.Close()
		}
	}
	testutil.Eventually(t, "no reader is left", func() bool { return len(x.w.Info().Readers) == 0 })
	if held := x.w.Info().Held; held != 0 {
		t.Errorf("the writer still holds %d steps", held)
	}
}

// fits reports whether an error can be the end of a rank, or of another one.
func fits(err error) bool {
	for _, want := range []error{sst.ErrRankFailed, sst.ErrClosed, sst.ErrOrder, sst.ErrWriterFailed, io.EOF} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}
