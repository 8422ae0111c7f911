package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/interop/zoo"
	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/sst/cohort"
)

// rankWriter is one rank of a Weft writer of the zoo. It says what peers/writer.py
// says, from every rank, and "INFO {json}" after its last step.
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
	s, end, err := r.o.session(ctx, p, r.cohort.Rank(), r.o.Inside != nil)
	if err != nil {
		return err
	}
	defer end()
	within := r.readInside(ctx, s)
	if err := r.write(ctx, s, p); err != nil {
		return err
	}
	return <-within
}

// readInside begins to read the stream in this process, if that is wanted here. What it
// returns tells how that ended.
func (r rankWriter) readInside(ctx context.Context, s *sst.Session) <-chan error {
	out := make(chan error, 1)
	if r.o.Inside == nil || r.cohort.Rank() != 0 {
		out <- nil
		return out
	}
	reader := &rankReader{name: r.name, o: *r.o.Inside, cohort: cohort.Solo(), ctl: r.ctl, session: s, inside: true}
	go func() { out <- reader.run(ctx) }()
	return out
}

func (r rankWriter) write(ctx context.Context, s *sst.Session, p sst.Params) error {
	w, err := sst.Create(ctx, r.name, writerConfig(s, p, r.cohort, r.o))
	if err != nil {
		return err
	}
	defer w.Close()
	if r.cohort.Rank() == 0 || len(r.ctl.members) == 1 {
		r.ctl.setStats(func(s *RankStats) {
			info := w.Info()
			s.Bytes, s.Held, s.Readers, s.Planes = info.Bytes, info.Held, len(info.Readers), planesOf(info.Readers)
		})
		defer r.ctl.setStats(nil)
	}
	say("READY")
	if err := r.steps(ctx, w); err != nil {
		return err
	}
	say("INFO", mustJSON(w.Info()))
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

// planesOf lists the readers of a writer as "software plane", sorted.
func planesOf(readers []sst.AttachedReader) (list []string) {
	for _, r := range readers {
		software := "ADIOS2"
		if r.Release == "Weft" {
			software = r.Release
		}
		list = append(list, software+" "+r.Plane)
	}
	slices.Sort(list)
	return list
}

// steps is how many there are to be.
func (o WriterOptions) steps() int {
	if o.Steps == 0 {
		return 10
	}
	return o.Steps
}
