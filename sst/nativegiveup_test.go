package sst_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// base is the memory in blocks of a session without steps: its probe.
const base = 4096

// filled is a step in an arena that is being filled, with a span handed out if that is
// asked for.
type filled struct {
	s    *sst.Session
	x    *numbers
	st   *sst.WriterStep
	span []int64
}

func newFilled(t *testing.T, span bool) *filled {
	t.Helper()
	f := &filled{s: quickSession(t)}
	name := streamName(t)
	f.x = define(t, create(t, name, sst.WriterConfig{Session: f.s}), viewValues)
	attach(t, name, sst.ReaderConfig{})
	var err error
	if f.st, err = f.x.w.BeginStep(bounded(t)); err != nil {
		t.Fatal(err)
	}
	box := step.Box{Count: []uint64{viewValues}}
	if !span {
		err = f.x.v.Put(f.st, box, make([]int64, viewValues))
	} else {
		f.span, err = f.x.v.Span(f.st, box)
	}
	if err != nil {
		t.Fatal(err)
	}
	if used(f.s) < 8*viewValues {
		t.Fatalf("the step is not in an arena: %d bytes are", used(f.s))
	}
	return f
}

// given is how a step is given up by somebody else than who fills it.
var givenUp = map[string]func(f *filled){
	"writer closes":  func(f *filled) { f.x.w.Close() },
	"writer aborts":  func(f *filled) { f.x.w.Abort(errors.New("no more")) },
	"session closes": func(f *filled) { f.s.Close() },
}

// TestNativeGivenUpSpan: a program that does not know yet that its step was given up
// writes to the span without harm. The memory goes with its next call.
func TestNativeGivenUpSpan(t *testing.T) {
	for name, end := range givenUp {
		for call, f := range map[string]func(st *sst.WriterStep, x *numbers) error{
			"End":   func(st *sst.WriterStep, _ *numbers) error { return st.End(t.Context()) },
			"Abort": func(st *sst.WriterStep, _ *numbers) error { st.Abort(); return sst.ErrOrder },
			"Put": func(st *sst.WriterStep, x *numbers) error {
				return x.v.Put(st, step.Box{Count: []uint64{viewValues}}, make([]int64, viewValues))
			},
		} {
			t.Run(name+" then "+call, func(t *testing.T) {
				w := newFilled(t, true)
				end(w)
				for i := range w.span {
					w.span[i] = int64(i)
				}
				if name != "session closes" && used(w.s) < 8*viewValues {
					t.Errorf("%d bytes are in use while the span is the program's", used(w.s))
				}
				wants(t, call, f(w.st, w.x), sst.ErrOrder)
				if used(w.s) > base {
					t.Errorf("%d bytes are in use after %s", used(w.s), call)
				}
				w.st.Abort() // once more
			})
		}
	}
}

// TestNativeGivenUpPut: what was only put is the writer's own, and goes at once.
func TestNativeGivenUpPut(t *testing.T) {
	for name, end := range givenUp {
		t.Run(name, func(t *testing.T) {
			w := newFilled(t, false)
			end(w)
			if used(w.s) > base {
				t.Errorf("%d bytes are in use", used(w.s))
			}
			wants(t, "End", w.st.End(t.Context()), sst.ErrOrder)
		})
	}
}

// TestNativeDroppedStep: a program that leaves with an error drops the step and its spans,
// and nothing is left of them. The test of the package looks for goroutines.
func TestNativeDroppedStep(t *testing.T) {
	for name, end := range givenUp {
		t.Run(name, func(t *testing.T) {
			w := newFilled(t, true)
			end(w)
			w.st, w.span = nil, nil
			testutil.Eventually(t, "the memory is given back", func() bool {
				runtime.GC()
				return used(w.s) <= base
			})
		})
	}
}

// TestNativeCloseWhileFilling is TestCloseWhileFilling with memory that must not be touched
// once it is given back.
func TestNativeCloseWhileFilling(t *testing.T) {
	for range 20 {
		s, name := quickSession(t), streamName(t)
		x := define(t, create(t, name, sst.WriterConfig{Session: s}), viewValues)
		r := attach(t, name, sst.ReaderConfig{})
		drained := async(func() error { _, err := drain(bounded(t), r); return err })
		started := make(chan struct{})
		filled := async(func() error {
			for first := true; ; first = false {
				err := x.write(t.Context())
				if first {
					close(started)
				}
				if err != nil {
					return err
				}
			}
		})
		<-started
		if err := x.w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		err := next(t, "writing", filled)
		if !errors.Is(err, sst.ErrClosed) && !errors.Is(err, sst.ErrOrder) && !errors.Is(err, step.ErrStepOpen) {
			t.Errorf("writing: %v", err)
		}
		next(t, "reading", drained)
		r.Close()
		if used(s) > base {
			t.Errorf("%d bytes are in use", used(s))
		}
	}
}
