package sst_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
	"github.com/weft-fabric/weft/step"
)

// putOnRanks publishes one step in which each rank does something of its own.
func (c *crew) putOnRanks(put func(rank int, w *sst.Writer, st *sst.WriterStep) error) []error {
	c.t.Helper()
	return c.all(func(rank int) error {
		st, err := c.writers[rank].BeginStep(bounded(c.t))
		if err != nil {
			return err
		}
		if err := put(rank, c.writers[rank], st); err != nil {
			st.Abort()
			return err
		}
		return st.End(bounded(c.t))
	})
}

// TestRanksDisagree has ranks that define the same name otherwise, or others, or
// nothing at all. The writer cannot know, so the step goes out; a reader gets what
// makes sense, an error for what does not, and the next steps.
func TestRanksDisagree(t *testing.T) {
	for name, put := range map[string]func(rank int, w *sst.Writer, st *sst.WriterStep) error{
		"types": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			if rank == 0 {
				return putOne[float64](w, st, "v", step.GlobalArray(8), step.Box{Start: []uint64{0}, Count: []uint64{4}}, 4)
			}
			return putOne[int8](w, st, "v", step.GlobalArray(8), step.Box{Start: []uint64{4}, Count: []uint64{4}}, 4)
		},
		"shapes": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			n := uint64(8 << (10 * rank))
			return putOne[int64](w, st, "v", step.GlobalArray(n), step.Box{Start: []uint64{0}, Count: []uint64{4}}, 4)
		},
		"dimensions": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			if rank == 0 {
				return putOne[int64](w, st, "v", step.GlobalArray(4), step.Box{Start: []uint64{0}, Count: []uint64{4}}, 4)
			}
			return putOne[int64](w, st, "v", step.GlobalArray(2, 2), step.Box{Start: []uint64{0, 0}, Count: []uint64{2, 2}}, 4)
		},
		"kinds": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			switch rank {
			case 0:
				return putOne[int64](w, st, "v", step.GlobalArray(4), step.Box{Start: []uint64{0}, Count: []uint64{4}}, 4)
			case 1:
				return putOne[int64](w, st, "v", step.LocalArray(1), step.Box{Count: []uint64{4}}, 4)
			}
			v, err := sst.Define[int64](w, "v", step.GlobalValue())
			if err != nil {
				return err
			}
			return v.PutValue(st, 1)
		},
		"a string and a number": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			if rank == 0 {
				v, err := sst.Define[string](w, "v", step.GlobalValue())
				if err != nil {
					return err
				}
				return v.PutValue(st, "a text")
			}
			v, err := sst.Define[int64](w, "v", step.GlobalValue())
			if err != nil {
				return err
			}
			return v.PutValue(st, 1)
		},
		"blocks that overlap": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			return putOne[int64](w, st, "v", step.GlobalArray(8), step.Box{Start: []uint64{uint64(rank)}, Count: []uint64{4}}, 4)
		},
		"structs": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			fields := []step.StructField{{Name: "a", Type: step.Int64, Count: 1}}
			if rank > 0 {
				fields = append(fields, step.StructField{Name: fmt.Sprint("b", rank), Type: step.Float32, Offset: 8, Count: 1})
			}
			s := &step.StructType{Name: "s", Size: 16, Fields: fields}
			d, err := w.DefineUntyped("v", step.Struct, s, step.LocalArray(1))
			if err != nil {
				return err
			}
			return st.PutBytes(d, step.Box{Count: []uint64{2}}, make([]byte, 32))
		},
		"attributes": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			switch rank {
			case 0:
				return w.SetAttribute(step.NewAttribute("a", int64(1)))
			case 1:
				return w.SetAttribute(step.NewAttribute("a", "one"))
			}
			return w.SetAttribute(step.NewAttributeArray("a", []float64{1, 2, 3}))
		},
		"attributes and variables": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			if rank == 0 {
				return w.SetAttribute(step.NewAttribute("v", int64(1)))
			}
			return putOne[int64](w, st, "v", step.LocalArray(1), step.Box{Count: []uint64{4}}, 4)
		},
		"who puts": func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			if rank != 1 {
				return nil
			}
			return putOne[int64](w, st, "v", step.GlobalArray(4), step.Box{Start: []uint64{0}, Count: []uint64{4}}, 4)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, 3, sst.WriterConfig{})
			r := attachRanks(t, c.name, 2, sst.ReaderConfig{})
			wrote := async(func() []error {
				errs := c.putOnRanks(put)
				c.must(c.all(func(rank int) error { return c.write(bounded(t), rank) }))
				c.must(c.close())
				return errs
			})
			r.each(t, func(rank int, r *sst.Reader) error {
				if st, err := r.BeginStep(bounded(t)); err == nil {
					readAnything(t, st)
					st.End()
				} else {
					t.Logf("the step with the quarrel: %v", err)
				}
				st, err := r.BeginStep(bounded(t))
				if err != nil {
					return err
				}
				defer st.End()
				return verify(bounded(t), st)
			})
			for rank, err := range next(t, "the writers", wrote) {
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
		})
	}
}

// putOne defines a variable and puts one block of it.
func putOne[T step.Element](w *sst.Writer, st *sst.WriterStep, name string, shape step.Shape, box step.Box, n int) error {
	v, err := sst.Define[T](w, name, shape)
	if err != nil {
		return err
	}
	return v.Put(st, box, make([]T, n))
}

// readAnything reads all there is: it need not work, but come back.
func readAnything(t *testing.T, st *step.Step) {
	for _, v := range st.Variables() {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := v.Any(ctx, step.All); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", v.Name(), err)
			}
			t.Logf("%s: %v", v.Name(), err)
		}
		for i := range v.Blocks() {
			_, _ = v.Any(ctx, step.BlockIndex(i))
		}
		cancel()
	}
	for _, a := range st.Attributes() {
		_ = fmt.Sprint(a)
	}
}

// TestExtremes writes what is at the edge of what can be written: empty blocks,
// empty arrays, shapes near 2^64, very many variables.
func TestExtremes(t *testing.T) {
	for _, mode := range []string{"On", "Off"} {
		c := newCrew(t, 3, sst.WriterConfig{Params: sst.Params{QueueLimitBytes: 1 << 20}})
		r := attachRanks(t, c.name, 2, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode}})
		many := testutil.Count(t, 2000, 10_000)
		put := func(rank int, w *sst.Writer, st *sst.WriterStep) error {
			huge, err := sst.Define[int8](w, "huge", step.GlobalArray(math.MaxInt64/2))
			if err != nil {
				return err
			}
			two, err := sst.Define[int64](w, "two", step.GlobalArray(1<<30, 1<<20))
			if err != nil {
				return err
			}
			none, err := sst.Define[int64](w, "none", step.GlobalArray(0, 7))
			if err != nil {
				return err
			}
			gaps, err := sst.Define[int64](w, "gaps", step.GlobalArray(9))
			if err != nil {
				return err
			}
			if err := errors.Join(
				huge.Put(st, step.Box{Start: []uint64{math.MaxInt64/2 - uint64(rank) - 1}, Count: []uint64{1}}, []int8{int8(rank)}),
				two.Put(st, step.Box{Start: []uint64{uint64(rank), 1<<20 - 1}, Count: []uint64{1, 1}}, []int64{int64(rank)}),
				none.Put(st, step.Box{Start: []uint64{0, 0}, Count: []uint64{0, 7}}, nil),
				gaps.Put(st, step.Box{Start: []uint64{uint64(3 * rank)}, Count: []uint64{0}}, nil),
				gaps.Put(st, step.Box{Start: []uint64{uint64(3 * rank)}, Count: []uint64{3}}, []int64{1, 2, 3}),
			); err != nil {
				return err
			}
			for _, bad := range []step.Box{{Start: []uint64{math.MaxUint64}, Count: []uint64{2}}, {Start: []uint64{1}, Count: []uint64{math.MaxUint64}}, {Count: []uint64{math.MaxInt64}}} {
				if huge.Put(st, bad, nil) == nil {
					return fmt.Errorf("%v is accepted", bad)
				}
				if _, err := huge.Span(st, bad); err == nil {
					return fmt.Errorf("a span of %v is accepted", bad)
				}
			}
			for i := range many {
				v, err := sst.Define[int32](w, fmt.Sprintf("v%05d", i), step.LocalValue())
				if err != nil {
					return err
				}
				if err := v.PutValue(st, int32(i*10+rank)); err != nil {
					return err
				}
			}
			return nil
		}
		wrote := async(func() []error {
			errs := c.putOnRanks(put)
			c.must(c.all(func(rank int) error { return c.write(bounded(t), rank) }))
			c.must(c.close())
			return errs
		})
		r.each(t, func(rank int, r *sst.Reader) error {
			st, err := r.BeginStep(bounded(t))
			if err != nil {
				return err
			}
			if n := len(st.Variables()); n != many+4 {
				return fmt.Errorf("%d variables", n)
			}
			huge, err := step.Lookup[int8](st, "huge")
			if err != nil {
				return err
			}
			if got, err := huge.Get(bounded(t), step.Box{Start: []uint64{math.MaxInt64/2 - 3}, Count: []uint64{3}}, nil); err != nil || !slices.Equal(got, []int8{2, 1, 0}) {
				return fmt.Errorf("huge: %v, %w", got, err)
			}
			if _, err := huge.Get(bounded(t), step.All, nil); err == nil {
				return errors.New("an array of 2^62 bytes was read")
			}
			two, err := step.Lookup[int64](st, "two")
			if err != nil {
				return err
			}
			if got, err := two.Get(bounded(t), step.Box{Start: []uint64{0, 1<<20 - 1}, Count: []uint64{3, 1}}, nil); err != nil || !slices.Equal(got, []int64{0, 1, 2}) {
				return fmt.Errorf("two: %v, %w", got, err)
			}
			for name, want := range map[string][]int64{"none": nil, "gaps": {1, 2, 3, 1, 2, 3, 1, 2, 3}} {
				if got, err := step.Read[int64](bounded(t), st, name); err != nil || !slices.Equal(got, want) {
					return fmt.Errorf("%s: %v, %w", name, got, err)
				}
			}
			if got, err := step.Read[int32](bounded(t), st, fmt.Sprintf("v%05d", many-1)); err != nil || len(got) != 3 || got[2] != int32((many-1)*10+2) {
				return fmt.Errorf("the last value: %v, %w", got, err)
			}
			st.End()
			st, err = r.BeginStep(bounded(t))
			if err != nil {
				return err
			}
			defer st.End()
			return verify(bounded(t), st)
		})
		c.must(next(t, "the writers", wrote))
	}
}

// TestManyMembers has 64 ranks on each side, in one process.
func TestManyMembers(t *testing.T) {
	const n = 64
	ws, rs := quickSession(t), quickSession(t)
	c := newCrew(t, n, sst.WriterConfig{Session: ws, Params: sst.Params{QueueLimit: 1}})
	cohorts := cohort.Local(n)
	steps := testutil.Count(t, 5, 100)
	g, _ := newGroup(t.Context())
	for rank := range n {
		g.Go(func() error {
			r, err := sst.Open(bounded(t), c.name, sst.ReaderConfig{Session: rs, Cohort: cohorts[rank]})
			if err != nil {
				return err
			}
			_, err = drain(bounded(t), r)
			return errors.Join(err, r.Close())
		})
	}
	testutil.Eventually(t, "the reader is active", func() bool {
		readers := c.writers[0].Info().Readers
		return len(readers) == 1 && readers[0].Active
	})
	wrote := async(func() []error {
		return c.all(func(rank int) error {
			for range steps {
				if err := c.write(bounded(t), rank); err != nil {
					return err
				}
			}
			return c.writers[rank].Close()
		})
	})
	if err := next(t, "readers", async(g.Wait)); err != nil {
		t.Error(err)
	}
	c.must(next(t, "writers", wrote))
	for _, c := range cohorts {
		c.Close()
	}
}

// TestLimitsHold writes many steps to several slow readers, under limits that are
// as small as they can be: nothing is lost under Block, what is dropped under
// Discard is counted, and no more than the limits allow is held at any time.
func TestLimitsHold(t *testing.T) {
	steps := testutil.Count(t, 100, 1000)
	for _, p := range []sst.Params{
		{QueueLimit: 1}, {QueueLimit: 1, BlockAt: "BeginStep"}, {QueueLimitBytes: 1}, {QueueLimitBytes: 1, QueueFullPolicy: "Discard"},
		{QueueLimitBytes: 400, QueueFullPolicy: "Discard", QueueLimit: 3}, {QueueLimit: 1, QueueFullPolicy: "Discard", ReserveQueueLimit: 1, FirstTimestepPrecious: true},
	} {
		for carrier, join := range carriers {
			t.Run(p.String()+"/"+carrier, func(t *testing.T) { holdLimits(t, join, p, steps) })
		}
	}
}

// holdLimits is TestLimitsHold for one set of limits, with ranks that are joined so.
func holdLimits(t *testing.T, join func(*crew, int), p sst.Params, steps int) {
	c := newCrewOver(t, join, 2, sst.WriterConfig{Params: p})
	var readers []*readerRanks
	for i := range 3 {
		readers = append(readers, attachRanks(t, c.name, 1+i%2, sst.ReaderConfig{}))
	}
	testutil.Eventually(t, "all are active", func() bool {
		active := 0
		for _, r := range c.writers[0].Info().Readers {
			if r.Active {
				active++
			}
		}
		return active == len(readers)
	})
	wrote := async(func() []error {
		return c.all(func(rank int) error {
			for range steps {
				if err := c.write(bounded(t), rank); err != nil {
					return err
				}
				i := c.writers[rank].Info()
				most := 1 + 1
				if p.QueueLimit > 0 {
					most = p.QueueLimit + 1
				}
				if p.FirstTimestepPrecious {
					most++
				}
				if i.Held > most {
					return fmt.Errorf("%d steps are held", i.Held)
				}
			}
			return c.writers[rank].Close()
		})
	})
	g, _ := newGroup(t.Context())
	for _, x := range readers {
		for _, r := range x.readers {
			g.Go(func() error {
				seen, err := drain(bounded(t), r)
				if err != nil {
					return err
				}
				if got := len(seen) + int(r.Info().Skipped); got != steps {
					return fmt.Errorf("%d taken and %d skipped of %d", len(seen), r.Info().Skipped, steps)
				}
				if p.QueueFullPolicy == "" && len(seen) != steps {
					return fmt.Errorf("%d steps of %d", len(seen), steps)
				}
				return nil
			})
		}
	}
	if err := next(t, "readers", async(g.Wait)); err != nil {
		t.Error(err)
	}
	c.must(next(t, "writers", wrote))
}
