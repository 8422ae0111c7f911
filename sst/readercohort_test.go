package sst_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/step"
)

// readerRanks is a reader of several ranks that live in this process.
type readerRanks struct {
	cohorts  []cohort.Cohort
	sessions []*sst.Session
	readers  []*sst.Reader
}

// local makes a cohort with a session a rank; all is closed at the end.
func local(t testing.TB, n int) *readerRanks {
	t.Helper()
	x := &readerRanks{cohorts: cohort.Local(n)}
	for range n {
		x.sessions = append(x.sessions, quickSession(t))
	}
	t.Cleanup(func() {
		for _, c := range x.cohorts {
			c.Close()
		}
	})
	return x
}

// open opens a stream on every rank and returns what each of them got.
func (x *readerRanks) open(ctx context.Context, name string, cfg func(rank int) sst.ReaderConfig) []error {
	x.readers = make([]*sst.Reader, len(x.cohorts))
	errs := make([]error, len(x.cohorts))
	g, _ := newGroup(ctx)
	for rank, c := range x.cohorts {
		g.Go(func() error {
			cfg := cfg(rank)
			cfg.Cohort = c
			if cfg.Session == nil {
				cfg.Session = x.sessions[rank]
			}
			x.readers[rank], errs[rank] = sst.Open(ctx, name, cfg)
			return nil
		})
	}
	g.Wait()
	return errs
}

// all gives every rank the same configuration.
func all(cfg sst.ReaderConfig) func(int) sst.ReaderConfig {
	return func(int) sst.ReaderConfig { return cfg }
}

// attachRanks opens a stream on n ranks. They are closed at the end.
func attachRanks(t testing.TB, name string, n int, cfg sst.ReaderConfig) *readerRanks {
	t.Helper()
	x := local(t, n)
	for rank, err := range x.open(bounded(t), name, all(cfg)) {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	t.Cleanup(func() { x.close(t) })
	return x
}

// each runs f for every rank at once and fails with the first error.
func (x *readerRanks) each(t testing.TB, f func(rank int, r *sst.Reader) error) {
	t.Helper()
	g, _ := newGroup(t.Context())
	for rank, r := range x.readers {
		g.Go(func() error {
			if err := f(rank, r); err != nil {
				return fmt.Errorf("rank %d: %w", rank, err)
			}
			return nil
		})
	}
	if err := next(t, "all ranks", async(g.Wait)); err != nil {
		t.Error(err)
	}
}

// close closes every rank, as a collective call does.
func (x *readerRanks) close(t testing.TB) {
	t.Helper()
	x.each(t, func(_ int, r *sst.Reader) error {
		if r == nil {
			return nil
		}
		return r.Close()
	})
}

// finish closes the writer while every rank reads the stream to its end: n steps,
// from 0.
func (x *readerRanks) finish(t testing.TB, w *sst.Writer, n int) {
	t.Helper()
	done := async(w.Close)
	x.each(t, func(_ int, r *sst.Reader) error { return drains(bounded(t), r, 0, n) })
	if err := next(t, "Close of the writer", done); err != nil {
		t.Error(err)
	}
}

// writeRanks publishes a step of "n" in which every writer rank puts its share.
func writeRanks(ctx context.Context, x *numbers, ranks int) error {
	st, err := x.w.BeginStep(ctx)
	if err != nil {
		return err
	}
	for rank := range ranks {
		start, count := share(x.n, rank, ranks)
		data := make([]int64, count)
		for i := range data {
			data[i] = int64(st.Number())<<20 + int64(start+i)
		}
		if err := x.v.Put(st.Rank(rank), step.Box{Start: []uint64{uint64(start)}, Count: []uint64{uint64(count)}}, data); err != nil {
			return err
		}
	}
	return st.End(ctx)
}

// share cuts n into parts as even as possible; some are empty if n is small.
func share(n, rank, ranks int) (start, count int) {
	start, end := n*rank/ranks, n*(rank+1)/ranks
	return start, end - start
}

// readShare reads what falls to a rank and compares it.
func readShare(ctx context.Context, st *step.Step, n, rank, ranks int) error {
	v, err := step.Lookup[int64](st, "n")
	if err != nil {
		return err
	}
	start, count := share(n, rank, ranks)
	got, err := v.Get(ctx, step.Box{Start: []uint64{uint64(start)}, Count: []uint64{uint64(count)}}, nil)
	if err != nil {
		return err
	}
	if len(got) != count {
		return fmt.Errorf("step %d: %d values, want %d", st.Number(), len(got), count)
	}
	for i, x := range got {
		if want := int64(st.Number())<<20 + int64(start+i); x != want {
			return fmt.Errorf("step %d: value %d is %d, want %d", st.Number(), start+i, x, want)
		}
	}
	return nil
}

// TestReaderCohort has readers of several ranks read shares, some of them empty,
// and wholes, from writers of several ranks.
func TestReaderCohort(t *testing.T) {
	const steps, n = 10, 7
	for _, writers := range []int{1, 3} {
		for _, ranks := range []int{1, 2, 3, 5, 9} {
			for _, mode := range []string{"On", "Off"} {
				t.Run(fmt.Sprintf("%d x %d, preload %s", writers, ranks, mode), func(t *testing.T) {
					t.Parallel()
					name := streamName(t)
					x := define(t, create(t, name, sst.WriterConfig{Ranks: writers}), n)
					c := attachRanks(t, name, ranks, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode, DataTransport: "evpath"}})
					for range steps {
						if err := writeRanks(bounded(t), x, writers); err != nil {
							t.Fatal(err)
						}
					}
					done := async(x.w.Close)
					c.each(t, func(rank int, r *sst.Reader) error { return readAll(bounded(t), r, n, rank, ranks, steps) })
					if err := next(t, "Close of the writer", done); err != nil {
						t.Error(err)
					}
					c.checkInfo(t, writers, mode == "On")
				})
			}
		}
	}
}

// TestReaderCohortSharesSession: the ranks of one process may have one session, and
// even that of the writer.
func TestReaderCohortSharesSession(t *testing.T) {
	const steps, n, ranks = 5, 7, 3
	for _, mode := range []string{"On", "Off"} {
		for _, withWriter := range []bool{false, true} {
			t.Run(fmt.Sprintf("preload %s, with the writer %v", mode, withWriter), func(t *testing.T) {
				t.Parallel()
				name, s := streamName(t), quickSession(t)
				cfg := sst.WriterConfig{Ranks: 2}
				if withWriter {
					cfg.Session = s
				}
				x := define(t, create(t, name, cfg), n)
				c := attachRanks(t, name, ranks, sst.ReaderConfig{Session: s, Params: sst.Params{SpeculativePreloadMode: mode}})
				for range steps {
					if err := writeRanks(bounded(t), x, 2); err != nil {
						t.Fatal(err)
					}
				}
				done := async(x.w.Close)
				c.each(t, func(rank int, r *sst.Reader) error { return readAll(bounded(t), r, n, rank, ranks, steps) })
				if err := next(t, "Close of the writer", done); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// readAll reads a stream to its end: shares, and in every third step the whole.
func readAll(ctx context.Context, r *sst.Reader, n, rank, ranks, steps int) error {
	var seen []uint64
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return err
		}
		if err := readShare(ctx, st, n, rank, ranks); err != nil {
			return err
		}
		if st.Number()%3 == 0 {
			if err := verify(ctx, st); err != nil {
				return err
			}
		}
		seen = append(seen, st.Number())
	}
	if err := consecutive(seen, 0, steps); err != nil {
		return err
	}
	if _, err := r.BeginStep(ctx); err != io.EOF {
		return fmt.Errorf("after the end: %w", err)
	}
	return nil
}

func (x *readerRanks) checkInfo(t *testing.T, writers int, preload bool) {
	t.Helper()
	for rank, r := range x.readers {
		info := r.Info()
		if info.Rank != rank || info.Size != len(x.readers) || info.Ranks != writers || info.Preload != preload ||
			info.Taken != 10 || info.Held != 0 || info.Queued != 0 || info.Lag != 0 || info.Skipped != 0 || info.Unreleased != 0 ||
			info.Writer == "" || info.Release == "" || info.Distribution != "AllToAll" || len(info.Writers) != writers {
			t.Errorf("rank %d: %+v", rank, info)
		}
		for k, w := range info.Writers {
			asked, pushed := w.Requests > 0 && w.Replied > 0, w.Pushes == 10 && w.Pushed > 0
			if w.Addr == "" || preload && (asked || !pushed) || !preload && (!asked || pushed) {
				t.Errorf("rank %d, writer rank %d: %+v", rank, k, w)
			}
		}
	}
}

// TestF73EmptyShares is field report F73 for a cohort: five ranks read three
// values, two of them nothing, at any place.
func TestF73EmptyShares(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 3)
	c := attachRanks(t, name, 5, sst.ReaderConfig{})
	x.must(t)
	c.each(t, func(rank int, r *sst.Reader) error {
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			return err
		}
		defer st.End()
		v, err := step.Lookup[int64](st, "n")
		if err != nil {
			return err
		}
		if rank < 3 {
			got, err := v.Get(bounded(t), step.Box{Start: []uint64{uint64(rank)}, Count: []uint64{1}}, nil)
			if err != nil || got[0] != int64(rank) {
				return fmt.Errorf("%v: %w", got, err)
			}
			return nil
		}
		for _, start := range []uint64{0, 2, 3} {
			got, err := v.Get(bounded(t), step.Box{Start: []uint64{start}, Count: []uint64{0}}, nil)
			if err != nil || len(got) != 0 {
				return fmt.Errorf("nothing from %d on: %v: %w", start, got, err)
			}
		}
		if w := r.Info().Writers[0]; w.Requests != 0 {
			return fmt.Errorf("nothing was asked for: %+v", w)
		}
		return nil
	})
}

// TestCohortLatest skips to the newest step: to the same one on every rank.
func TestCohortLatest(t *testing.T) {
	const ranks, steps = 3, 30
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 8)
	c := attachRanks(t, name, ranks, sst.ReaderConfig{Params: sst.Params{AlwaysProvideLatestTimestep: true}})
	done := async(func() error {
		for range steps {
			if err := x.write(bounded(t)); err != nil {
				return err
			}
		}
		return x.w.Close()
	})
	seen := make([][]uint64, ranks)
	c.each(t, func(rank int, r *sst.Reader) (err error) {
		seen[rank], err = drain(bounded(t), r)
		return err
	})
	for rank, list := range seen {
		if !slices.Equal(list, seen[0]) || len(list) == 0 || list[len(list)-1] != steps-1 {
			t.Errorf("rank %d has the steps %v, rank 0 %v", rank, list, seen[0])
		}
		if got := int64(len(list)) + c.readers[rank].Info().Skipped; got != steps {
			t.Errorf("rank %d: %d taken and %d skipped of %d", rank, len(list), c.readers[rank].Info().Skipped, steps)
		}
	}
	if err := next(t, "Close of the writer", done); err != nil {
		t.Error(err)
	}
}

// TestSlowRank: each rank takes steps at its own pace, and a step goes back when
// the last one has ended it.
func TestSlowRank(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 4}}), 8)
	c := attachRanks(t, name, 2, sst.ReaderConfig{})
	for range 4 {
		x.must(t)
	}
	for range 4 { // rank 0 is through before rank 1 has begun
		st, err := c.readers[0].BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		st.End()
	}
	if held := x.w.Info().Held; held != 4 {
		t.Errorf("the writer holds %d steps, want 4", held)
	}
	if info := c.readers[0].Info(); info.Unreleased != 4 || info.Held != 0 {
		t.Errorf("rank 0: %+v", info)
	}
	testutil.Eventually(t, "rank 1 has all steps", func() bool {
		info := c.readers[1].Info()
		return info.Queued == 4 && info.Lag == 4
	})
	wrote := async(func() error { return x.write(bounded(t)) })
	for range 4 {
		st, err := c.readers[1].BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(bounded(t), st); err != nil {
			t.Error(err)
		}
		st.End()
	}
	if err := next(t, "the fifth step", wrote); err != nil {
		t.Error(err)
	}
}

// same fails unless every rank got the same typed error.
func same(t *testing.T, errs []error, want ...error) {
	t.Helper()
	for rank, err := range errs {
		if _, ok := errors.AsType[*sst.Error](err); !ok {
			t.Errorf("rank %d: %v is no *sst.Error", rank, err)
		}
		for _, w := range want {
			wants(t, fmt.Sprint("rank ", rank), err, w)
		}
	}
}

// TestF07MissingName is field report F07: only rank 0 looks for the contact file,
// and every rank gets its error, within the same second. The log has a line for
// the stream, not one for each rank (F02).
func TestF07MissingName(t *testing.T) {
	const ranks = 8
	name := streamName(t)
	x := local(t, ranks)
	logs := make([]*testutil.Log, ranks)
	for rank := range ranks {
		log, logger := testutil.NewLog(slog.LevelInfo)
		logs[rank], x.sessions[rank] = log, newSession(t, sst.SessionConfig{Logger: logger})
	}
	start := time.Now()
	errs := x.open(bounded(t), name, all(sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 4}}))
	if took := time.Since(start); took < 4*time.Second || took > 5*time.Second {
		t.Errorf("a time-out of 4 s took %v", took)
	}
	same(t, errs, sst.ErrNoStream, sst.ErrTimeout)
	for rank, err := range errs {
		if err.Error() != errs[0].Error() {
			t.Errorf("rank %d says %q, rank 0 %q", rank, err, errs[0])
		}
		text := logs[rank].String()
		lines := strings.Count(text, "\n")
		switch {
		case rank == 0 && (lines != 1 || !strings.Contains(text, name+".sst")):
			t.Errorf("rank 0 logs %q", text)
		case rank == 1 && (lines != 1 || !strings.Contains(text, "rank 0")):
			t.Errorf("rank 1 logs %q", text)
		case rank > 1 && lines != 0:
			t.Errorf("rank %d logs %q", rank, text)
		}
	}
}

// TestCohortOpenFails has openings that fail on one rank: none of them goes on.
func TestCohortOpenFails(t *testing.T) {
	const ranks = 3
	short := sst.Params{OpenTimeoutSecs: 1}
	t.Run("other parameters", func(t *testing.T) {
		name := streamName(t)
		create(t, name, sst.WriterConfig{})
		errs := local(t, ranks).open(bounded(t), name, func(rank int) sst.ReaderConfig {
			return sst.ReaderConfig{Params: sst.Params{AlwaysProvideLatestTimestep: rank == 1}}
		})
		same(t, errs, sst.ErrParam)
		if !strings.Contains(errs[2].Error(), "AlwaysProvideLatestTimestep") {
			t.Errorf("%v does not name the parameter", errs[2])
		}
	})
	t.Run("a session that is closed", func(t *testing.T) {
		for bad := range ranks {
			x := local(t, ranks)
			x.sessions[bad].Close()
			within(t, 5*time.Second, "Open", func() {
				for rank, err := range x.open(bounded(t), streamName(t), all(sst.ReaderConfig{})) {
					if rank == bad {
						wants(t, "Open", err, sst.ErrClosed)
					} else {
						wants(t, "Open", err, sst.ErrRankFailed)
					}
				}
			})
		}
	})
	t.Run("rank 0 is told to stop", func(t *testing.T) {
		x := local(t, ranks)
		ctx, cancel := context.WithCancel(bounded(t))
		done := async(func() []error { return x.open(ctx, streamName(t), all(sst.ReaderConfig{})) })
		cancel()
		same(t, next(t, "Open", done), context.Canceled)
	})
	t.Run("a rank dies", func(t *testing.T) {
		for dead := range ranks {
			x := local(t, ranks)
			done := async(func() []error { return x.open(bounded(t), streamName(t), all(sst.ReaderConfig{Params: short})) })
			x.cohorts[dead].Close()
			errs := next(t, "Open", done)
			for rank, err := range errs {
				if rank != dead && !errors.Is(err, sst.ErrRankFailed) {
					t.Errorf("rank %d of %d dies: rank %d: %v", dead, ranks, rank, err)
				}
			}
		}
	})
	t.Run("a rank never comes", func(t *testing.T) {
		name := streamName(t)
		create(t, name, sst.WriterConfig{})
		x := local(t, ranks)
		missing := x.cohorts[2]
		x.cohorts = x.cohorts[:2]
		errs := x.open(bounded(t), name, all(sst.ReaderConfig{Params: short}))
		same(t, errs, sst.ErrTimeout)
		missing.Close()
	})
	t.Run("rank 0 never comes", func(t *testing.T) {
		x := local(t, 2)
		zero := x.cohorts[0]
		x.cohorts = x.cohorts[1:]
		errs := x.open(bounded(t), streamName(t), all(sst.ReaderConfig{Params: short}))
		same(t, errs, sst.ErrTimeout)
		zero.Close()
	})
}

// TestCohortOpensAgain: a cohort can open after an opening that failed, and
// several streams one after the other.
func TestCohortOpensAgain(t *testing.T) {
	const ranks = 3
	x := local(t, ranks)
	name := streamName(t)
	same(t, x.open(bounded(t), name, all(sst.ReaderConfig{Params: sst.Params{OpenTimeoutSecs: 1}})), sst.ErrNoStream)
	for round := range 5 {
		w := define(t, create(t, name, sst.WriterConfig{}), 4)
		for rank, err := range x.open(bounded(t), name, all(sst.ReaderConfig{})) {
			if err != nil {
				t.Fatalf("round %d: rank %d: %v", round, rank, err)
			}
		}
		w.must(t)
		x.finish(t, w.w, 1)
		x.close(t)
	}
}
