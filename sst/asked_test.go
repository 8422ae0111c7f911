package sst_test

import (
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestLargeBlocksAreAskedFor: a Weft reader that waits gets large blocks on request,
// into place, and small ones or those for which it has no time yet by themselves.
// What happens shows.
func TestLargeBlocksAreAskedFor(t *testing.T) {
	const large, small = 1 << 17, 1 << 10 // numbers
	for _, c := range []struct {
		name           string
		writer, reader string
		n              int
		asks           bool // while it waits
	}{
		{"large", "Auto", "Auto", large, true},
		{"small", "Auto", "Auto", small, false},
		{"the reader insists", "Auto", "On", large, false},
		{"the writer insists", "On", "Auto", large, false},
		{"the reader wants none", "On", "Off", small, true},
		{"the writer wants none", "Off", "On", small, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := streamName(t)
			w := create(t, name, sst.WriterConfig{Params: sst.Params{SpeculativePreloadMode: c.writer}})
			x := define(t, w, c.n)
			r := attach(t, name, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: c.reader, DataTransport: "evpath"}})
			if policy := w.Info().Policy; policy.AskFrom != map[string]uint64{"Auto": 1 << 20}[c.writer] || policy.Preload != (c.writer != "Off") {
				t.Errorf("%+v", policy)
			}
			testutil.Eventually(t, "the reader is active", func() bool { return w.Info().Readers[0].Active })
			x.must(t)
			back := func(n int64) {
				testutil.Eventually(t, "the reader waits again", func() bool { return w.Info().Readers[0].Released == n })
			}
			takes(t, r, c.asks, 1)
			back(1)
			x.must(t)
			takes(t, r, c.asks, 2)
			back(2)
			for range 3 {
				x.must(t)
			}
			never := c.reader == "Off" || c.writer == "Off"
			takes(t, r, c.asks, 3)
			takes(t, r, never, 4) // these came while there was something to do
			takes(t, r, never, 5)
			asked := 0
			if never {
				asked = 5
			} else if c.asks {
				asked = 3
			}
			if info := r.Info().Writers[0]; info.Requests != int64(asked) || info.Pushes != int64(5-asked) || info.Replied != uint64(8*c.n*asked) {
				t.Errorf("%+v, want %d requests", info, asked)
			}
		})
	}
}

// takes reads a step, and checks whether it had to be asked for.
func takes(t *testing.T, r *sst.Reader, asks bool, n uint64) {
	t.Helper()
	st, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if st.Number()+1 != n || r.Info().Preload == asks {
		t.Errorf("step %d, preloaded %v", st.Number(), r.Info().Preload)
	}
	v, err := step.Lookup[int64](st, "n")
	if err != nil {
		t.Fatal(err)
	}
	view, err := v.View(bounded(t), step.All)
	if err != nil {
		t.Fatal(err)
	}
	if got := view.Data(); got[0] != int64(st.Number())<<20 || got[len(got)-1] != got[0]+int64(len(got))-1 {
		t.Errorf("%v ... %v", got[0], got[len(got)-1])
	}
	st.End()
	view.Release()
}

// TestManyArraysArePushed: who might ask for each of many small arrays need not.
func TestManyArraysArePushed(t *testing.T) {
	name := streamName(t)
	w := create(t, name, sst.WriterConfig{})
	const vars, n = 64, 1 << 12
	var all []*sst.Variable[int64]
	for k := range vars {
		v, err := sst.Define[int64](w, "v"+string(rune('A'+k)), step.GlobalArray(n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	r := attach(t, name, sst.ReaderConfig{Params: sst.Params{DataTransport: "evpath"}})
	testutil.Eventually(t, "the reader is active", func() bool { return w.Info().Readers[0].Active })
	st, err := w.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if err := v.Put(st, step.All, make([]int64, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.End(bounded(t)); err != nil {
		t.Fatal(err)
	}
	got, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	defer got.End()
	if info := r.Info(); !info.Preload {
		t.Errorf("%d bytes in %d arrays came without: %+v", 8*vars*n, vars, info)
	}
}

// TestInsists: only a Weft writer can be told.
func TestInsists(t *testing.T) {
	for mark, want := range map[bool]int32{true: 2, false: 1} {
		p := newWriter(t, mark)
		open := p.opens(t, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: "On"}})
		if _, reg := p.accept(); reg.SpecPreload != want {
			t.Errorf("Weft %v: told %d", mark, reg.SpecPreload)
		}
		next(t, "Open", open).reader(t)
	}
}
