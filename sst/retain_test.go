package sst_test

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// TestRetain holds a window of steps while later ones come and go, on one rank
// and on several; each is read again at its end.
func TestRetain(t *testing.T) {
	const steps, window = 20, 3
	for _, ranks := range []int{1, 3} {
		for _, mode := range []string{"On", "Off"} {
			t.Run(fmt.Sprintf("%d ranks, preload %s", ranks, mode), func(t *testing.T) {
				name := streamName(t)
				x := define(t, create(t, name, sst.WriterConfig{Ranks: 2}), 50)
				c := attachRanks(t, name, ranks, sst.ReaderConfig{Params: sst.Params{SpeculativePreloadMode: mode}})
				for range steps {
					if err := writeRanks(bounded(t), x, 2); err != nil {
						t.Fatal(err)
					}
				}
				done := async(x.w.Close)
				c.each(t, func(_ int, r *sst.Reader) error { return slide(t, r, steps, window) })
				if err := next(t, "Close of the writer", done); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// slide reads a stream with a window of steps that stay open.
func slide(t *testing.T, r *sst.Reader, steps, window int) error {
	var held []*step.Step
	seen := 0
	for st, err := range r.Steps(bounded(t)) {
		if err != nil {
			return err
		}
		if err := r.Retain(st); err != nil {
			return err
		}
		held = append(held, st)
		if info := r.Info(); info.Held != len(held) || info.Retained != len(held) {
			return fmt.Errorf("%d steps are held: %+v", len(held), info)
		}
		if len(held) > window {
			// Not always the oldest: they end in any order.
			i := seen % len(held)
			if err := verify(bounded(t), held[i]); err != nil {
				return err
			}
			if err := held[i].End(); err != nil {
				return err
			}
			held = append(held[:i], held[i+1:]...)
		}
		seen++
	}
	for _, st := range held {
		if err := verify(bounded(t), st); err != nil {
			return fmt.Errorf("after the end of the stream: %w", err)
		}
		st.End()
	}
	if seen != steps {
		return fmt.Errorf("%d steps, want %d", seen, steps)
	}
	return nil
}

// TestRetainHoldsTheWriter: retained steps count for the writer's queue.
func TestRetainHoldsTheWriter(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{Params: sst.Params{QueueLimit: 2}}), 8)
	r := attach(t, name, sst.ReaderConfig{})
	var held []*step.Step
	for range 2 {
		x.must(t)
		st, err := r.BeginStep(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Retain(st); err != nil {
			t.Fatal(err)
		}
		held = append(held, st)
	}
	wrote := async(func() error { return x.write(bounded(t)) })
	testutil.Eventually(t, "the step is made", func() bool { return x.w.Info().NextStep == 2 })
	select {
	case err := <-wrote:
		t.Fatalf("the writer went on: %v", err)
	default:
	}
	held[1].End() // a Weft writer takes them in any order
	if err := next(t, "End", wrote); err != nil {
		t.Error(err)
	}
	if err := verify(bounded(t), held[0]); err != nil {
		t.Error(err)
	}
}

// TestRetainWhat refuses what is not an open step of the reader.
func TestRetainWhat(t *testing.T) {
	name := streamName(t)
	x := define(t, create(t, name, sst.WriterConfig{}), 8)
	a, b := attach(t, name, sst.ReaderConfig{}), attach(t, name, sst.ReaderConfig{})
	x.must(t)
	x.must(t)
	ours, err := a.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := b.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "a step of another reader", a.Retain(theirs), sst.ErrOrder)
	_, err = a.BeginStep(bounded(t))
	wants(t, "BeginStep while a step is open", err, sst.ErrOrder)
	for range 2 {
		if err := a.Retain(ours); err != nil {
			t.Error(err)
		}
	}
	second, err := a.BeginStep(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	second.End()
	wants(t, "a step that has ended", a.Retain(second), sst.ErrOrder)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := verify(bounded(t), ours); !isErr(err, sst.ErrClosed) {
		t.Errorf("reading a retained step after Close: %v", err)
	}
	if err := ours.End(); err != nil {
		t.Error(err)
	}
	wants(t, "after Close", a.Retain(ours), sst.ErrOrder)
}
