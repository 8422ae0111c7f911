package sst_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// each makes one step in which every rank puts what f says.
func (c *crew) each(f func(rank int, st *sst.WriterStep) error) {
	c.t.Helper()
	c.must(c.all(func(rank int) error {
		st, err := c.writers[rank].BeginStep(bounded(c.t))
		if err != nil {
			return err
		}
		if err := f(rank, st); err != nil {
			return err
		}
		return st.End(bounded(c.t))
	}))
}

// defined declares a variable on every rank.
func defined[T step.Element](c *crew, name string, shape step.Shape) []*sst.Variable[T] {
	c.t.Helper()
	vars := make([]*sst.Variable[T], len(c.writers))
	c.must(c.all(func(rank int) (err error) {
		vars[rank], err = sst.Define[T](c.writers[rank], name, shape)
		return err
	}))
	return vars
}

// TestF72ZeroSizeBlocks is field report F72: all ranks put a block, but only one,
// or none, has data in it.
func TestF72ZeroSizeBlocks(t *testing.T) {
	for _, mode := range []string{"On", "Off"} {
		c := newCrew(t, 3, sst.WriterConfig{Params: sst.Params{StatsLevel: 1}})
		r := attach(t, c.name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode}})
		v, w := defined[float64](c, "v", step.GlobalArray(2, 3)), defined[int32](c, "w", step.GlobalArray(0))
		want := []float64{1, 2, 3, 4, 5, 6}
		for full := range 3 {
			c.each(func(rank int, st *sst.WriterStep) error {
				if err := w[rank].Put(st, step.Box{Start: []uint64{0}, Count: []uint64{0}}, nil); err != nil {
					return err
				}
				if rank == full {
					return v[rank].Put(st, step.Box{Start: []uint64{0, 0}, Count: []uint64{2, 3}}, want)
				}
				return v[rank].Put(st, step.Box{Start: []uint64{0, 0}, Count: []uint64{0, 3}}, nil)
			})
			st, err := r.BeginStep(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			got, err := step.Read[float64](bounded(t), st, "v")
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("full rank %d: %v\n%s", full, err, d)
			}
			if none, err := step.Read[int32](bounded(t), st, "w"); err != nil || len(none) != 0 {
				t.Errorf("full rank %d: %d values of nothing, %v", full, len(none), err)
			}
			st.End()
		}
		r.Close()
		c.must(c.close())
	}
}

// TestF74DenseBlocks is field report F74: block numbers have no hole where a rank
// has put nothing.
func TestF74DenseBlocks(t *testing.T) {
	c := newCrew(t, 4, sst.WriterConfig{})
	r := attach(t, c.name, sst.ReaderConfig{})
	v := defined[int64](c, "v", step.LocalArray(1))
	for _, put := range [][]int{{0, 1, 2, 3}, {1, 3}, {0, 3}, {2}} {
		c.each(func(rank int, st *sst.WriterStep) error {
			for _, p := range put {
				if p == rank {
					return v[rank].Put(st, step.Box{Count: []uint64{2}}, []int64{int64(rank), -int64(rank)})
				}
			}
			return nil
		})
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		x, err := step.Lookup[int64](st, "v")
		if err != nil {
			t.Fatal(err)
		}
		blocks := x.Blocks()
		if len(blocks) != len(put) {
			t.Errorf("%d blocks of ranks %v", len(blocks), put)
		}
		for i, rank := range put {
			got, err := x.Get(bounded(t), step.BlockIndex(i), nil)
			if d := cmp.Diff([]int64{int64(rank), -int64(rank)}, got); err != nil || d != "" || blocks[i].Rank != rank {
				t.Errorf("block %d, of rank %d, want %d: %v\n%s", i, blocks[i].Rank, rank, err, d)
			}
		}
		if _, err := x.Get(bounded(t), step.BlockIndex(len(put)), nil); err == nil {
			t.Error("a block beyond the last is read")
		}
		st.End()
	}
	r.Close()
	c.must(c.close())
}

// TestF80ValueOfAnyRank is field report F80: a global value may be put by any ranks;
// its type is that of its definition.
func TestF80ValueOfAnyRank(t *testing.T) {
	c := newCrew(t, 3, sst.WriterConfig{})
	r := attach(t, c.name, sst.ReaderConfig{})
	times, names := defined[float64](c, "time", step.GlobalValue()), defined[string](c, "name", step.GlobalValue())
	for n, ranks := range [][]bool{{true, false, false}, {false, true, false}, {false, false, true}, {true, true, true}, {false, true, true}} {
		c.each(func(rank int, st *sst.WriterStep) error {
			if !ranks[rank] {
				return nil
			}
			if err := times[rank].PutValue(st, float64(n)+0.5); err != nil {
				return err
			}
			return names[rank].PutValue(st, fmt.Sprint("step ", n))
		})
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := step.Read[float64](bounded(t), st, "time"); err != nil || len(got) != 1 || got[0] != float64(n)+0.5 {
			t.Errorf("step %d: time %v, %v", n, got, err)
		}
		if got, err := step.Read[string](bounded(t), st, "name"); err != nil || len(got) != 1 || got[0] != fmt.Sprint("step ", n) {
			t.Errorf("step %d: name %q, %v", n, got, err)
		}
		_, err = step.Lookup[float32](st, "time")
		wants(t, "another type", err, step.ErrType)
		st.End()
	}
	r.Close()
	c.must(c.close())
}
