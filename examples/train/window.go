package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// span is the number of steps that make a sample.
const span = 3

// window holds successive steps that are looked at, the oldest first.
type window []frame

// frame is a retained step and the view of a field in it.
type frame struct {
	step  *step.Step
	shape []uint64
	field step.View[float64]
}

// add retains a step and looks at a variable in it. If it does not follow the
// last one, because the writer dropped some, those before are of no use.
func (w *window) add(ctx context.Context, r *sst.Reader, st *step.Step, variable string) error {
	v, err := step.Lookup[float64](st, variable)
	if err != nil {
		return err
	}
	if v.Dims() != 2 {
		return fmt.Errorf("%s has %d dimensions, not 2", variable, v.Dims())
	}
	if err := r.Retain(st); err != nil {
		return err
	}
	view, err := v.View(ctx, step.All)
	if err != nil {
		return err
	}
	f := frame{st, v.Shape(), view}
	if n := len(*w); n > 0 && !f.follows((*w)[n-1]) {
		err = w.end(n)
	}
	*w = append(*w, f)
	return err
}

// follows reports whether f is the next step of the same field.
func (f frame) follows(last frame) bool {
	return f.step.Number() == last.step.Number()+1 && slices.Equal(f.shape, last.shape)
}

// end gives the n oldest steps back to the writer.
func (w *window) end(n int) error {
	old := (*w)[:n]
	*w = (*w)[n:]
	var errs []error
	for _, f := range old {
		f.field.Release()
		errs = append(errs, f.step.End())
	}
	return errors.Join(errs...)
}

// samples returns what a full window shows: no copy is made.
func (w window) samples() samples {
	return samples{w[0].field.Data(), w[1].field.Data(), w[2].field.Data(), int(w[0].shape[1])}
}

// checkQueue refuses a writer that would wait for us while we wait for it.
func checkQueue(params []sst.EffectiveParam) error {
	for _, p := range params {
		if p.Name != "QueueLimit" {
			continue
		}
		if n, err := strconv.Atoi(p.Value); err == nil && n > 0 && n < span {
			return fmt.Errorf("the writer keeps %d steps (QueueLimit), and %d are learned from at a time", n, span)
		}
	}
	return nil
}
