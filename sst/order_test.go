package sst_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestF82SelectionOutside is field report F82.
func TestF82SelectionOutside(t *testing.T) {
	name := streamName(t)
	w := create(t, name, sst.WriterConfig{})
	v, err := sst.Define[int64](w, "n", step.GlobalArray(10))
	if err != nil {
		t.Fatal(err)
	}
	r := attach(t, name, sst.ReaderConfig{})
	st, err := w.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []step.Box{{Start: []uint64{8}, Count: []uint64{5}}, {Start: []uint64{12}, Count: []uint64{1}}, {Count: []uint64{1, 1}}} {
		n := uint64(1)
		for _, c := range bad.Count {
			n *= c
		}
		if err := v.Put(st, bad, make([]int64, n)); err == nil {
			t.Errorf("Put of %v into 10 is accepted", bad)
		}
		if _, err := v.Span(st, bad); err == nil {
			t.Errorf("Span of %v of 10 is accepted", bad)
		}
	}
	if err := v.Put(st, step.Box{Count: []uint64{10}}, make([]int64, 9)); err == nil {
		t.Error("9 values for 10 are accepted")
	}
	if err := v.Put(st, step.Box{Count: []uint64{10}}, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}); err != nil {
		t.Fatal(err)
	}
	if err := st.End(bounded(t)); err != nil {
		t.Fatal(err)
	}
	got, err := r.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	in, err := step.Lookup[int64](got, "n")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []step.Box{{Start: []uint64{8}, Count: []uint64{5}}, {Start: []uint64{12}, Count: []uint64{1}}, {Start: []uint64{1<<64 - 1}, Count: []uint64{2}}} {
		_, err := in.Get(bounded(t), bad, nil)
		wants(t, fmt.Sprint("Get of ", bad), err, step.ErrSelection)
	}
	if ten, err := in.Get(bounded(t), step.All, nil); err != nil || len(ten) != 10 || ten[9] != 9 {
		t.Errorf("%v, %v", ten, err)
	}
	_, err = step.Lookup[float64](got, "n")
	wants(t, "another type", err, step.ErrType)
	got.End()
}

// TestF83WriterOrder is field report F83 for the writing side: each call in each
// state is right, or an error that says so, and the stream goes on.
func TestF83WriterOrder(t *testing.T) {
	ctx := bounded(t)
	type writer struct {
		w    *sst.Writer
		v    *sst.Variable[int64]
		st   *sst.WriterStep // the open step, or the last one
		open bool
	}
	put := func(x *writer) error { return x.v.PutValue(x.st, 1) }
	calls := map[string]func(x *writer) error{
		"BeginStep": func(x *writer) error {
			st, err := x.w.BeginStep(ctx)
			if err == nil {
				x.st, x.open = st, true
			}
			return err
		},
		"Put":      put,
		"PutBytes": func(x *writer) error { return x.st.PutBytes(x.v.Definition, step.Box{}, make([]byte, 8)) },
		"EndStep": func(x *writer) error {
			x.open = false
			return x.st.End(ctx)
		},
		"Finish": func(x *writer) error { return x.w.Finish(ctx) },
		"Close":  func(x *writer) error { return x.w.Close() },
	}
	states := map[string]struct {
		enter func(t *testing.T, x *writer)
		right map[string]bool // Close is right everywhere
		goes  bool            // the stream can still be used afterwards
	}{
		"new": {func(*testing.T, *writer) {}, map[string]bool{"BeginStep": true, "Finish": true}, true},
		"in a step": {func(t *testing.T, x *writer) {
			if err := calls["BeginStep"](x); err != nil {
				t.Fatal(err)
			}
		}, map[string]bool{"Put": true, "PutBytes": true, "EndStep": true}, true},
		"after a step": {func(t *testing.T, x *writer) {
			for _, name := range []string{"BeginStep", "Put", "EndStep"} {
				if err := calls[name](x); err != nil {
					t.Fatal(err)
				}
			}
		}, map[string]bool{"BeginStep": true, "Finish": true}, true},
		"after an abort": {func(t *testing.T, x *writer) {
			if err := calls["BeginStep"](x); err != nil {
				t.Fatal(err)
			}
			x.st.Abort()
			x.st.Abort()
			x.open = false
		}, map[string]bool{"BeginStep": true, "Finish": true}, true},
		"finished": {func(t *testing.T, x *writer) {
			if err := x.w.Finish(ctx); err != nil {
				t.Fatal(err)
			}
		}, map[string]bool{"Finish": true}, false},
		"closed": {func(t *testing.T, x *writer) {
			if err := x.w.Close(); err != nil {
				t.Fatal(err)
			}
		}, nil, false},
		"closed in a step": {func(t *testing.T, x *writer) {
			if err := calls["BeginStep"](x); err != nil {
				t.Fatal(err)
			}
			if err := x.w.Close(); err != nil {
				t.Fatal(err)
			}
		}, nil, false},
	}
	s := quickSession(t)
	for state, c := range states {
		for call, do := range calls {
			t.Run(state+": "+call, func(t *testing.T) {
				x := &writer{w: create(t, streamName(t), sst.WriterConfig{Session: s})}
				v, err := sst.Define[int64](x.w, "v", step.GlobalValue())
				if err != nil {
					t.Fatal(err)
				}
				x.v = v
				c.enter(t, x)
				if x.st == nil && (call == "Put" || call == "PutBytes" || call == "EndStep") {
					return // there is nothing to call it on
				}
				err = do(x)
				switch {
				case c.right[call] || call == "Close":
					if err != nil {
						t.Error(err)
					}
				case err == nil:
					t.Error("no error")
				default:
					if !isOrder(err) {
						t.Errorf("%v is neither ErrOrder nor ErrClosed", err)
					}
				}
				if c.goes && call != "Close" && call != "Finish" {
					goesOn(t, x.w, x.st, x.open, x.v)
				}
			})
		}
	}
}

func isOrder(err error) bool {
	for _, want := range []error{sst.ErrOrder, sst.ErrClosed, step.ErrStepEnded} {
		if isErr(err, want) {
			return true
		}
	}
	return false
}

// goesOn ends what is open and makes one more step.
func goesOn(t *testing.T, w *sst.Writer, st *sst.WriterStep, open bool, v *sst.Variable[int64]) {
	t.Helper()
	if open {
		if err := st.End(bounded(t)); err != nil {
			t.Errorf("ending the open step: %v", err)
		}
	}
	st, err := w.BeginStep(bounded(t))
	if err != nil {
		t.Fatalf("the next step: %v", err)
	}
	if err := v.PutValue(st, 2); err != nil {
		t.Error(err)
	}
	if err := st.End(bounded(t)); err != nil {
		t.Error(err)
	}
}

// TestF83ReaderOrder is the same for the reading side.
func TestF83ReaderOrder(t *testing.T) {
	ctx := bounded(t)
	type reader struct {
		r  *sst.Reader
		st *step.Step
	}
	calls := map[string]func(x *reader) error{
		"BeginStep": func(x *reader) error {
			st, err := x.r.BeginStep(ctx)
			if err == nil {
				st.End()
			}
			return err
		},
		"Get":     func(x *reader) error { _, err := step.Read[int64](ctx, x.st, "n"); return err },
		"EndStep": func(x *reader) error { return x.st.End() },
		"Close":   func(x *reader) error { return x.r.Close() },
	}
	begin := func(t *testing.T, x *reader) {
		t.Helper()
		st, err := x.r.BeginStep(ctx)
		if err != nil {
			t.Fatal(err)
		}
		x.st = st
	}
	states := map[string]struct {
		enter func(t *testing.T, x *reader)
		right map[string]bool
		eof   bool // BeginStep says that it is the end
	}{
		"in a step":    {begin, map[string]bool{"Get": true}, false},
		"after a step": {func(t *testing.T, x *reader) { begin(t, x); x.st.End() }, map[string]bool{"BeginStep": true}, false},
		"at the end": {func(t *testing.T, x *reader) {
			for range 2 {
				begin(t, x)
				x.st.End()
			}
			beginEOF(t, x.r)
		}, nil, true},
		"closed":           {func(t *testing.T, x *reader) { begin(t, x); x.st.End(); x.r.Close() }, nil, false},
		"closed in a step": {func(t *testing.T, x *reader) { begin(t, x); x.r.Close() }, nil, false},
	}
	ws, rs := quickSession(t), quickSession(t)
	for state, c := range states {
		for call, do := range calls {
			for _, mode := range []string{"On", "Off"} {
				t.Run(state+": "+call+", preload "+mode, func(t *testing.T) {
					name := streamName(t)
					w := define(t, create(t, name, sst.WriterConfig{Session: ws}), 4)
					x := &reader{r: attach(t, name, sst.ReaderConfig{Session: rs, Params: sst.Params{SpeculativePreloadMode: mode}})}
					w.must(t)
					w.must(t)
					done := async(w.w.Close)
					c.enter(t, x)
					err := do(x)
					switch {
					case call == "BeginStep" && c.eof:
						if err != io.EOF {
							t.Errorf("got %v, want io.EOF", err)
						}
					case c.right[call] || call == "Close" || call == "EndStep":
						if err != nil {
							t.Error(err)
						}
					case err == nil:
						t.Error("no error")
					case !isOrder(err):
						t.Errorf("%v is neither ErrOrder nor ErrClosed", err)
					}
					x.st.End()
					x.r.Close()
					if err := next(t, "Close of the writer", done); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestStepsOfOthers mixes handles of two streams.
func TestStepsOfOthers(t *testing.T) {
	a, b := create(t, streamName(t), sst.WriterConfig{}), create(t, streamName(t), sst.WriterConfig{})
	v, err := sst.Define[int64](a, "v", step.GlobalValue())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sst.Define[int64](a, "v", step.GlobalValue()); err == nil {
		t.Error("a name can be defined twice")
	}
	st, err := b.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "a variable of another stream", v.PutValue(st, 1), sst.ErrOrder)
	st.Abort()
}

// TestBeginStepIsCancelled ends the wait for a step, and only that.
func TestBeginStepIsCancelled(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 4)
	r := attach(t, name, sst.ReaderConfig{})
	ctx, cancel := context.WithCancel(bounded(t))
	done := async(func() error { _, err := r.BeginStep(ctx); return err })
	cancel()
	wants(t, "BeginStep", next(t, "BeginStep", done), context.Canceled)
	x.must(t)
	end := async(x.w.Close)
	if seen, err := drain(bounded(t), r); err != nil || len(seen) != 1 {
		t.Errorf("afterwards: %v, %v", seen, err)
	}
	if err := next(t, "Close", end); err != nil {
		t.Error(err)
	}
}
