package interop

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// rankWriter is one rank of a Weft writer of the zoo. It says what peers/writer.py
// says, from every rank.
type rankWriter struct {
	name   string
	o      WriterOptions
	cohort cohort.Cohort
	ctl    member
}

func (r rankWriter) run(ctx context.Context) error {
	p, err := sst.ParseParams(r.o.Params)
	if err != nil {
		return err
	}
	say("OPENING", r.name)
	w, err := sst.Create(ctx, r.name, writerConfig(p, r.cohort))
	if err != nil {
		return err
	}
	defer w.Close()
	if r.cohort.Rank() == 0 || len(r.ctl.members) == 1 {
		r.ctl.setStats(func(s *RankStats) {
			info := w.Info()
			s.Bytes, s.Held, s.Readers = info.Bytes, info.Held, len(info.Readers)
		})
		defer r.ctl.setStats(nil)
	}
	say("READY")
	if err := r.steps(ctx, w); err != nil {
		return err
	}
	if r.o.Hold {
		say("HOLD")
		r.ctl.passNext()
	}
	if err := w.Close(); err != nil {
		return err
	}
	say("DONE")
	return nil
}

func (r rankWriter) steps(ctx context.Context, w *sst.Writer) error {
	z := r.zoo(w)
	for n := range r.o.steps() {
		if r.o.StepWait && !r.ctl.passNext() || r.ctl.leaving() {
			return nil
		}
		err := z.Step(ctx, n)
		if errors.Is(err, sst.ErrStepAborted) && r.ctl.leaveComes() {
			return nil // another rank has heard it a step earlier
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", n, err)
		}
		if !r.o.Quiet {
			say("STEP", n)
		}
		r.ctl.pause(r.o.StepDelay)
	}
	return nil
}

func (r rankWriter) zoo(w *sst.Writer) *ZooWriter {
	z := &ZooWriter{W: w, Ranks: r.cohort.Size(), First: r.cohort.Rank(), Own: 1, NoAttributes: r.o.NoAttributes}
	check := zoo.Check{Prefixes: r.o.Vars}
	z.Skip = func(v zoo.Var) bool { return !check.Wants(v.Name) || r.o.NoLongDouble && v.Type == "long double" }
	return z
}

// steps is how many there are to be.
func (o WriterOptions) steps() int {
	if o.Steps == 0 {
		return 10
	}
	return o.Steps
}
