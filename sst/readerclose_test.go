package sst_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestCloseWaitsForRanks: rank 0 leaves the writer only when the others have all
// they want.
func TestCloseWaitsForRanks(t *testing.T) {
	const ranks, steps = 3, 6
	for _, mode := range []string{"On", "Off"} {
		t.Run("preload "+mode, func(t *testing.T) {
			name := streamName(t)
			x := define(t, create(t, name, sst.WriterConfig{Ranks: 2}), 10)
			c := attachRanks(t, name, ranks, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode}})
			closed := async(c.readers[0].Close)
			for range steps {
				if err := writeRanks(bounded(t), x, 2); err != nil {
					t.Fatal(err)
				}
			}
			done := async(x.w.Close)
			for _, r := range c.readers[1:] {
				if err := drains(bounded(t), r, 0, steps); err != nil {
					t.Error(err)
				}
			}
			if err := next(t, "Close of the writer", done); err != nil {
				t.Error(err)
			}
			for _, r := range c.readers[1:] {
				select {
				case err := <-closed:
					t.Fatalf("rank 0 has closed before the others: %v", err)
				default:
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := next(t, "Close of rank 0", closed); err != nil {
				t.Error(err)
			}
			if _, err := c.readers[0].BeginStep(bounded(t)); !isOrder(err) {
				t.Errorf("BeginStep after Close: %v", err)
			}
		})
	}
}

// TestCloseOrder closes the ranks in every order, each in the middle of a step.
func TestCloseOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			name := streamName(t)
			v := &victim{name: name}
			v.x = define(t, create(t, name, sst.WriterConfig{}), 100)
			v.honest = attach(t, name, sst.ReaderConfig{})
			c := attachRanks(t, name, 3, sst.ReaderConfig{})
			v.step(t)
			c.each(t, func(_ int, r *sst.Reader) error { _, err := r.BeginStep(bounded(t)); return err })
			var closed []<-chan error
			for _, rank := range order {
				done := async(c.readers[rank].Close)
				if rank != 0 {
					if err := next(t, "Close", done); err != nil {
						t.Error(err)
					}
				}
				closed = append(closed, done)
			}
			for i, rank := range order {
				if rank == 0 {
					if err := next(t, "Close of rank 0", closed[i]); err != nil {
						t.Error(err)
					}
				}
			}
			v.unharmed(t)
		})
	}
}

// TestCloseTimeout does not wait for ever, says for whom it waits, and tells them.
func TestCloseTimeout(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 10)
	c := local(t, 3)
	log, logger := testutil.NewLog(slog.LevelInfo)
	c.sessions[0] = newSession(t, sst.SessionConfig{Logger: logger})
	for rank, err := range c.open(bounded(t), name, all(sst.ReaderConfig{CloseTimeout: 3500 * time.Millisecond})) {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	x.must(t)
	st, err := c.readers[1].BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	err = c.readers[0].Close()
	if took := time.Since(start); took < 3500*time.Millisecond || took > 4500*time.Millisecond {
		t.Errorf("a time-out of 3.5 s took %v", took)
	}
	wants(t, "Close", err, sst.ErrTimeout)
	for _, text := range []string{err.Error(), log.String()} {
		if !strings.Contains(text, "[1 2]") {
			t.Errorf("%q does not name the ranks", text)
		}
	}
	st.End()
	for _, r := range c.readers[1:] {
		testutil.Eventually(t, "BeginStep fails", func() bool {
			st, err := r.BeginStep(bounded(t))
			if err == nil { // it was faster than the bad news
				st.End()
			}
			return errors.Is(err, sst.ErrClosed)
		})
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := c.readers[0].Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	if err := x.w.Close(); err != nil {
		t.Error(err)
	}
}

// TestEarlyLeaver: a rank that closes in the middle of a stream that is pushed to
// every rank stays reachable until rank 0 closes. Else it is done at once.
func TestEarlyLeaver(t *testing.T) {
	for _, mode := range []string{"On", "Off"} {
		t.Run("preload "+mode, func(t *testing.T) {
			name := streamName(t)
			x := define(t, create(t, name, sst.WriterConfig{}), 10)
			c := attachRanks(t, name, 2, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode}})
			x.must(t)
			take := func(_ int, r *sst.Reader) error {
				st, err := r.BeginStep(bounded(t))
				if err != nil {
					return err
				}
				defer st.End()
				return verify(bounded(t), st)
			}
			c.each(t, take)
			closed := async(func() error {
				err := c.readers[1].Close()
				c.sessions[1].Close() // as its process does
				return err
			})
			if mode == "Off" {
				if err := next(t, "Close of rank 1", closed); err != nil {
					t.Error(err)
				}
			}
			for range 5 {
				x.must(t)
				if err := take(0, c.readers[0]); err != nil {
					t.Fatal(err)
				}
			}
			if err := next(t, "Close of rank 0", async(c.readers[0].Close)); err != nil {
				t.Error(err)
			}
			if mode == "On" {
				if err := next(t, "Close of rank 1", closed); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestCloseOfOwnSessions leaves nothing behind, on any rank.
func TestCloseOfOwnSessions(t *testing.T) {
	const ranks = 3
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 10)
	c := local(t, ranks)
	fds, goroutines := usage(t)
	for range 3 {
		c.sessions = make([]*sst.Session, ranks) // each opens its own
		for rank, err := range c.open(bounded(t), name, all(sst.ReaderConfig{Params: sst.Params{NetworkInterface: "lo"}})) {
			if err != nil {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
		x.must(t)
		c.each(t, func(_ int, r *sst.Reader) error {
			st, err := r.BeginStep(bounded(t))
			if err == nil {
				err = verify(bounded(t), st)
			}
			if err != nil {
				return err
			}
			st.End()
			return r.Close()
		})
	}
	settled(t, fds, goroutines)
}

// dies lets a rank of a cohort die: what it shares with the others breaks.
func (x *readerRanks) dies(rank int) {
	x.cohorts[rank].Close()
	go x.sessions[rank].Close()
}

// TestRankDies kills each rank of a reader in the middle of a step, and while the
// others wait for the next: they hear of it, by name, and the writer goes on.
func TestRankDies(t *testing.T) {
	const ranks = 3
	for _, mode := range []string{"On", "Off"} {
		for dead := range ranks {
			t.Run(fmt.Sprintf("rank %d, preload %s", dead, mode), func(t *testing.T) {
				t.Parallel()
				name := streamName(t)
				v := &victim{name: name}
				v.x = define(t, create(t, name, sst.WriterConfig{}), 100)
				v.honest = attach(t, name, sst.ReaderConfig{})
				c := local(t, ranks)
				cfg := sst.ReaderConfig{CloseTimeout: time.Second, Params: sst.Params{SpeculativePreloadMode: mode}}
				for rank, err := range c.open(bounded(t), name, all(cfg)) {
					if err != nil {
						t.Fatalf("rank %d: %v", rank, err)
					}
				}
				v.step(t)
				steps := make([]*step.Step, ranks)
				c.each(t, func(rank int, r *sst.Reader) (err error) {
					steps[rank], err = r.BeginStep(bounded(t))
					return err
				})
				waiting := (dead + 1) % ranks // this one waits for the next step, the third one is in a step
				if err := steps[waiting].End(); err != nil {
					t.Error(err)
				}
				begun := async(func() error { _, err := c.readers[waiting].BeginStep(bounded(t)); return err })
				start := time.Now()
				c.dies(dead)
				err := next(t, "BeginStep", begun)
				if took := time.Since(start); took > time.Second {
					t.Errorf("it took %v to hear of it", took)
				}
				c.mourns(t, "BeginStep", err, dead)
				other := (dead + 2) % ranks
				if mode == "Off" {
					testutil.Eventually(t, "reads fail", func() bool { return verify(bounded(t), steps[other]) != nil })
					c.mourns(t, "Get", verify(bounded(t), steps[other]), dead)
				}
				steps[other].End()
				_, err = c.readers[other].BeginStep(bounded(t))
				c.mourns(t, "BeginStep", err, dead)
				for rank, r := range c.readers {
					if rank != dead {
						if err := next(t, "Close", async(r.Close)); err != nil {
							t.Errorf("Close of rank %d: %v", rank, err)
						}
					}
				}
				v.unharmed(t)
			})
		}
	}
}

// mourns wants an error that says which rank has died.
func (x *readerRanks) mourns(t *testing.T, what string, err error, dead int) {
	t.Helper()
	wants(t, what, err, sst.ErrRankFailed)
	if err != nil && !strings.Contains(err.Error(), fmt.Sprint("rank ", dead)) {
		t.Errorf("%s: %v does not name rank %d", what, err, dead)
	}
}

// TestRankDiesAtTheEnd: who has read the stream to its end needs nobody any more.
func TestRankDiesAtTheEnd(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 10)
	c := attachRanks(t, name, 3, sst.ReaderConfig{CloseTimeout: time.Second})
	x.must(t)
	c.finish(t, x.w, 1)
	c.cohorts[1].Close()
	for _, rank := range []int{0, 2} {
		beginEOF(t, c.readers[rank])
	}
	if err := next(t, "Close", async(c.readers[0].Close)); err == nil {
		t.Error("rank 2 has not closed: there is nothing to wait for")
	} else if !errors.Is(err, sst.ErrTimeout) {
		t.Error(err)
	}
}

// TestWriterDiesForAll: every rank gets the steps that are complete, and then the
// right error.
func TestWriterDiesForAll(t *testing.T) {
	const ranks = 3
	name := streamName(t)
	s := quickSession(t)
	x := define(t, create(t, name, sst.WriterConfig{Session: s, CloseTimeout: time.Millisecond}), 10)
	c := attachRanks(t, name, ranks, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "On", DataTransport: "evpath"}})
	x.must(t)
	steps := make([]*step.Step, ranks)
	c.each(t, func(rank int, r *sst.Reader) (err error) {
		if steps[rank], err = r.BeginStep(bounded(t)); err != nil {
			return err
		}
		return verify(bounded(t), steps[rank])
	})
	s.Close()
	c.each(t, func(rank int, r *sst.Reader) error {
		if err := verify(bounded(t), steps[rank]); err != nil {
			return fmt.Errorf("a step that is complete here: %w", err)
		}
		steps[rank].End()
		return nil
	})
}
