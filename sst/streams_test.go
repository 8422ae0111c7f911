package sst_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// passOne writes a stream of n steps, rendezvous included.
func passOne(ctx context.Context, s *sst.Session, name string, n int) error {
	w, err := sst.Create(ctx, name, sst.WriterConfig{Session: s})
	if err != nil {
		return err
	}
	defer w.Close()
	v, err := sst.Define[int64](w, "n", step.GlobalArray(4))
	if err != nil {
		return err
	}
	x := &numbers{w, v, 4}
	for range n {
		if err := x.write(ctx); err != nil {
			return err
		}
	}
	return w.Close()
}

// takeOne reads a stream of n steps.
func takeOne(ctx context.Context, s *sst.Session, name string, n int) error {
	r, err := sst.Open(ctx, name, sst.ReaderConfig{Session: s})
	if err != nil {
		return err
	}
	defer r.Close()
	if err := drains(ctx, r, 0, n); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return r.Close()
}

// TestF05ManyStreamsBothWays is field report F05: eight streams between two
// sessions, four each way, all opened at once, their names used again.
func TestF05ManyStreamsBothWays(t *testing.T) {
	const streams, rounds = 8, 20
	dir := t.TempDir()
	sides := []*sst.Session{quickSession(t), quickSession(t)}
	for round := range rounds {
		g, ctx := newGroup(t.Context())
		for i := range streams {
			name := filepath.Join(dir, fmt.Sprint("s", i))
			writer, reader := sides[i%2], sides[1-i%2]
			g.Go(func() error { return passOne(ctx, writer, name, 2) })
			g.Go(func() error { return takeOne(ctx, reader, name, 2) })
		}
		if err := next(t, fmt.Sprint("round ", round), async(g.Wait)); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// TestNamesUsedAtOnce lets each stream run at its own pace: readers come while
// the writer before is still ending. They find the next one, and no stream
// disturbs another on the link that all share.
func TestNamesUsedAtOnce(t *testing.T) {
	const streams, rounds, steps = 6, 25, 2
	dir := t.TempDir()
	sides := []*sst.Session{quickSession(t), quickSession(t)}
	g, ctx := newGroup(bounded(t))
	for i := range streams {
		name := filepath.Join(dir, fmt.Sprint("s", i))
		writer, reader := sides[i%2], sides[1-i%2]
		over, end := context.WithCancel(ctx)
		g.Go(func() error {
			defer end()
			for range rounds {
				if err := passOne(ctx, writer, name, steps); err != nil {
					return fmt.Errorf("writer of %s: %w", name, err)
				}
			}
			return nil
		})
		g.Go(func() error {
			for {
				seen, err := takeAny(over, reader, name)
				if err == nil && len(seen) > 0 { // else it came as the writer was closing: an empty stream
					// Or with the last step not given back yet: what the reader before has said last goes by
					// another link than what this one says first.
					err = consecutive(seen, seen[0], steps-int(seen[0]))
				}
				if over.Err() != nil {
					return ctx.Err()
				}
				if err != nil {
					return fmt.Errorf("reader of %s: %w", name, err)
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// takeAny reads a stream of whatever length.
func takeAny(ctx context.Context, s *sst.Session, name string) ([]uint64, error) {
	r, err := sst.Open(ctx, name, sst.ReaderConfig{Session: s})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return drain(ctx, r)
}

// TestF15BlockLosesNothing is field report F15.
func TestF15BlockLosesNothing(t *testing.T) {
	const steps = 10_000
	for _, limit := range []int{1, 4} {
		for _, readers := range []int{1, 3} {
			t.Run(fmt.Sprintf("limit %d, readers %d", limit, readers), func(t *testing.T) {
				n := steps
				if readers > 1 {
					n /= 4
				}
				testBlock(t, n, limit, readers)
			})
		}
	}
}

func testBlock(t *testing.T, steps, limit, readers int) {
	name := streamName(t)
	ws, rs := quickSession(t), quickSession(t)
	g, ctx := newGroup(t.Context())
	g.Go(func() error {
		w, err := sst.Create(ctx, name, sst.WriterConfig{Session: ws, Params: sst.Params{QueueLimit: limit, RendezvousReaderCount: &readers}})
		if err != nil {
			return err
		}
		v, err := sst.Define[int64](w, "n", step.GlobalArray(1))
		if err != nil {
			return err
		}
		x := &numbers{w, v, 1}
		for range steps {
			if err := x.write(ctx); err != nil {
				return err
			}
		}
		return w.Close()
	})
	for i := range readers {
		g.Go(func() error {
			r, err := sst.Open(ctx, name, sst.ReaderConfig{Session: rs, Params: sst.Params{SpeculativePreloadMode: []string{"On", "Off", "Auto"}[i]}})
			if err != nil {
				return err
			}
			defer r.Close()
			want := uint64(0)
			for st, err := range r.Steps(ctx) {
				if err == nil && (i == 0 || st.Number()%16 == 0) { // the others do not even look: they are the fast ones
					err = verify(ctx, st)
				}
				if err != nil {
					return err
				}
				if st.Number() != want {
					return fmt.Errorf("reader %d: step %d, want %d", i, st.Number(), want)
				}
				want++
			}
			if want != uint64(steps) || r.Info().Skipped != 0 {
				return fmt.Errorf("reader %d: %d steps, %d skipped", i, want, r.Info().Skipped)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestF17DiscardIsCounted is field report F17: what is dropped is counted.
func TestF17DiscardIsCounted(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 2, QueueFullPolicy: "Discard"}}), 8)
	r := attach(t, name, sst.ReaderConfig{})
	const steps = 500
	var slow *step.Step // the reader sits on its first step until all are made
	for n := range steps {
		x.must(t)
		if n > 0 {
			continue
		}
		var err error
		if slow, err = r.BeginStep(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := verify(bounded(t), slow); err != nil {
		t.Fatal(err)
	}
	slow.End()
	done := async(x.w.Close)
	rest, err := drain(bounded(t), r)
	if err != nil {
		t.Fatal(err)
	}
	if got := 1 + int64(len(rest)) + r.Info().Skipped; got != steps {
		t.Errorf("%d received and %d skipped of %d", 1+len(rest), r.Info().Skipped, steps)
	}
	if r.Info().Skipped == 0 {
		t.Error("nothing was discarded: the test shows nothing")
	}
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
}

// TestLatest skips to the newest step.
func TestLatest(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 8)
	r := attach(t, name, sst.ReaderConfig{Params: sst.Params{AlwaysProvideLatestTimestep: true}})
	const steps = 20
	for range steps {
		x.must(t)
	}
	done := async(x.w.Close)
	seen, err := drain(bounded(t), r)
	if err != nil || len(seen) == 0 || seen[len(seen)-1] != steps-1 {
		t.Errorf("%v, %v", seen, err)
	}
	if got := int64(len(seen)) + r.Info().Skipped; got != steps {
		t.Errorf("%d taken and %d skipped of %d", len(seen), r.Info().Skipped, steps)
	}
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
}

// TestF23ReaderLeavesEarly is field report F23.
func TestF23ReaderLeavesEarly(t *testing.T) {
	const steps = 20
	for _, inStep := range []bool{false, true} {
		t.Run(fmt.Sprint("inside a step ", inStep), func(t *testing.T) {
			name := streamName(t)
			x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 2}}), 100)
			a, b := attach(t, name, sst.ReaderConfig{}), attach(t, name, sst.ReaderConfig{})
			rest := async(func() error {
				return drains(bounded(t), b, 0, steps)
			})
			early := async(func() error {
				for range 3 {
					st, err := a.BeginStep(bounded(t))
					if err != nil {
						return err
					}
					if st.Number() == 2 && inStep {
						return a.Close()
					}
					st.End()
				}
				return a.Close()
			})
			for range steps {
				x.must(t)
			}
			for _, done := range []<-chan error{early, async(x.w.Close), rest} {
				if err := next(t, "end", done); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestF53OneLink is field report F53: all streams between two sessions share one
// connection.
func TestF53OneLink(t *testing.T) {
	const streams = 50
	dir := t.TempDir()
	a, b := quickSession(t), quickSession(t)
	var writers []*numbers
	var readers []*sst.Reader
	before := openSockets(t)
	for i := range streams {
		name := filepath.Join(dir, fmt.Sprint("s", i))
		writers = append(writers, define(t, create(t, name, sst.WriterConfig{Session: []*sst.Session{a, b}[i%2]}), 4))
		readers = append(readers, attach(t, name, sst.ReaderConfig{Session: []*sst.Session{b, a}[i%2]}))
	}
	// One connection has two ends, and both are ours. If both sides dial at the
	// same moment there can be two; here they do not.
	if got := openSockets(t) - before; got != 2 {
		t.Errorf("%d sockets for %d streams, want 2", got, streams)
	}
	for i, x := range writers {
		x.must(t)
		done := async(x.w.Close)
		seen, err := drain(bounded(t), readers[i])
		if err != nil || len(seen) != 1 {
			t.Errorf("stream %d: %v, %v", i, seen, err)
		}
		if err := next(t, "Close", done); err != nil {
			t.Error(err)
		}
		readers[i].Close()
	}
}

// TestF88StepsDoNotMix is field report F88: a reader sees what was put in this very step.
func TestF88StepsDoNotMix(t *testing.T) {
	name := streamName(t)
	s := quickSession(t) // writer and reader in one session
	w := create(t, name, sst.WriterConfig{Session: s})
	every, err := sst.Define[int64](w, "a", step.GlobalValue())
	if err != nil {
		t.Fatal(err)
	}
	even, err := sst.Define[int64](w, "b", step.GlobalArray(1000))
	if err != nil {
		t.Fatal(err)
	}
	r := attach(t, name, sst.ReaderConfig{Session: s})
	const steps = 6
	for n := range int64(steps) {
		st, err := w.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := every.PutValue(st, n); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			data, err := even.Span(st, step.Box{Count: []uint64{1000}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range data {
				data[i] = n
			}
		}
		if err := st.End(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	done := async(w.Close)
	seen := int64(0)
	var late *step.Step
	for st, err := range r.Steps(bounded(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if int64(st.Number()) != seen {
			t.Errorf("step %d, want %d", st.Number(), seen)
		}
		if a, err := step.Read[int64](bounded(t), st, "a"); err != nil || len(a) != 1 || a[0] != seen {
			t.Errorf("step %d: a is %v, %v", seen, a, err)
		}
		b, err := step.Lookup[int64](st, "b")
		switch {
		case seen%2 == 1:
			wants(t, "b at an odd step", err, step.ErrNoVariable)
		case err != nil:
			t.Error(err)
		case seen > 0: // nobody reads it at step 0
			got, err := b.Get(bounded(t), step.All, nil)
			if err != nil || got[0] != seen || got[999] != seen {
				t.Errorf("step %d: b %v", seen, err)
			}
		}
		late = st
		seen++
	}
	if seen != steps {
		t.Errorf("%d steps", seen)
	}
	_, err = step.Read[int64](bounded(t), late, "a")
	wants(t, "reading after the end of the step", err, step.ErrStepEnded)
	if err := next(t, "Close", done); err != nil {
		t.Error(err)
	}
}

// TestF94IndependentSessions is field report F94: two of everything in one process.
func TestF94IndependentSessions(t *testing.T) {
	const steps = 200
	var writers []*numbers
	var readers []*sst.Reader
	for range 2 {
		name := streamName(t)
		writers = append(writers, define(t, create(t, name, sst.WriterConfig{}), 16))
		readers = append(readers, attach(t, name, sst.ReaderConfig{}))
	}
	for n := range steps {
		for i, x := range writers {
			if i == 0 && n >= steps/2 {
				continue
			}
			x.must(t)
			st, err := readers[i].BeginStep(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := verify(bounded(t), st); err != nil {
				t.Fatal(err)
			}
			st.End()
		}
		if n == steps/2 {
			if err := writers[0].w.Close(); err != nil {
				t.Fatal(err)
			}
			beginEOF(t, readers[0])
			readers[0].Close()
		}
	}
}

// TestWriterRanks lets one process stand for three writer ranks.
func TestWriterRanks(t *testing.T) {
	for _, mode := range []string{"On", "Off"} {
		t.Run("preload "+mode, func(t *testing.T) {
			name := streamName(t)
			w := create(t, name, sst.WriterConfig{Ranks: 3})
			v, err := sst.Define[int64](w, "n", step.GlobalArray(6))
			if err != nil {
				t.Fatal(err)
			}
			r := attach(t, name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode, DataTransport: "evpath"}})
			if got := r.Info(); got.Ranks != 3 || got.Plane != "evpath" || got.Preload != (mode == "On") {
				t.Errorf("info %+v", got)
			}
			st, err := w.BeginStep(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			for rank := range 3 {
				box := step.Box{Start: []uint64{uint64(2 * rank)}, Count: []uint64{2}}
				if err := v.Put(st.Rank(rank), box, []int64{int64(2 * rank), int64(2*rank + 1)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := v.Put(st.Rank(3), step.Box{Start: []uint64{0}, Count: []uint64{2}}, []int64{0, 0}); err == nil {
				t.Error("rank 3 of 3 is accepted")
			}
			if err := st.End(bounded(t)); err != nil {
				t.Fatal(err)
			}
			done := async(w.Close)
			if seen, err := drain(bounded(t), r); err != nil || len(seen) != 1 {
				t.Errorf("%v, %v", seen, err)
			}
			if err := next(t, "Close", done); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestF95F96Flat is field reports F95 and F96: opening and closing leaves nothing.
func TestF95F96Flat(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	dir := t.TempDir()
	cycle := func(i int) {
		name := filepath.Join(dir, fmt.Sprint("s", i%3))
		g, ctx := newGroup(t.Context())
		g.Go(func() error { return passOne(ctx, nil, name, 1) })
		g.Go(func() error { return takeOne(ctx, nil, name, 1) })
		if err := next(t, "cycle", async(g.Wait)); err != nil {
			t.Fatalf("cycle %d: %v", i, err)
		}
	}
	failing := func(i int) {
		ctx, cancel := context.WithTimeout(bounded(t), time.Millisecond)
		defer cancel()
		_, err := sst.Open(ctx, filepath.Join(dir, "missing"), sst.ReaderConfig{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("failing open %d: %v", i, err)
		}
	}
	for i := range 5 {
		cycle(i)
		failing(i)
	}
	fds, goroutines := usage(t)
	for i := range rounds {
		cycle(i)
		failing(i)
	}
	settled(t, fds, goroutines)
}
