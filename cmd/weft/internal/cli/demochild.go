package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

// Names of the hidden commands that the demo starts itself as.
const (
	demoWriterName = "demo-writer"
	demoReaderName = "demo-reader"
)

// sweeps is the number of time steps between two steps of the stream.
const sweeps = 60

func newDemoWriter(env Env) *cobra.Command {
	return newDemoChild(env, demoWriterName, runDemoWriter)
}

func newDemoReader(env Env) *cobra.Command {
	return newDemoChild(env, demoReaderName, runDemoReader)
}

type demoRun func(ctx context.Context, env Env, opt demoOptions, session *sst.Session, dir string) error

func newDemoChild(env Env, name string, run demoRun) *cobra.Command {
	var opt demoOptions
	cmd := &cobra.Command{
		Use:    name + " DIR",
		Short:  "Part of weft demo",
		Hidden: true,
		Args:   names("DIR"),
		RunE: func(cmd *cobra.Command, list []string) (err error) {
			if err := opt.check(); err != nil {
				return err
			}
			ctx := untilEOF(cmd.Context(), env.Stdin)
			session, err := sst.NewSession(ctx, sst.SessionConfig{Logger: newLogger(env.Stderr), NetworkInterface: "lo"})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, session.Close()) }()
			err = run(ctx, env, opt, session, list[0])
			if ctx.Err() != nil {
				return errReported // the parent tells
			}
			return err
		},
	}
	opt.flags(cmd)
	return cmd
}

// untilEOF ends the context when the input ends: the parent is gone, or wants
// us to go.
func untilEOF(ctx context.Context, r io.Reader) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, r) // how it ends makes no difference
		cancel(errInterrupted)
	}()
	return ctx
}

// runDemoWriter simulates, and writes each step.
func runDemoWriter(ctx context.Context, _ Env, opt demoOptions, session *sst.Session, dir string) error {
	w, err := sst.Create(ctx, streamName(dir), sst.WriterConfig{Session: session, Params: opt.params(sst.Params{QueueLimit: 2})})
	if err != nil {
		return err
	}
	n := uint64(opt.size)
	T, err := sst.Define[float64](w, "T", step.GlobalArray(n, n))
	if err != nil {
		return err
	}
	t, err := sst.Define[float64](w, "t", step.GlobalValue())
	if err != nil {
		return err
	}
	plate := newHeat(opt.size)
	for range opt.steps {
		st, err := w.BeginStep(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(T.Put(st, step.All, plate.u), t.PutValue(st, plate.t)); err != nil {
			return err
		}
		if err := st.End(ctx); err != nil {
			return err
		}
		plate.advance(sweeps)
		if err := pause(ctx, opt.interval); err != nil {
			return err
		}
	}
	return errors.Join(w.Finish(ctx), w.Close())
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// runDemoReader reads, compares, and reports on stdout.
func runDemoReader(ctx context.Context, env Env, opt demoOptions, session *sst.Session, dir string) (err error) {
	r, err := sst.Open(ctx, streamName(dir), sst.ReaderConfig{Session: session, Params: opt.params(sst.Params{OpenTimeoutSecs: 30})})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	out := json.NewEncoder(env.Stdout)
	field := make([]float64, opt.size*opt.size)
	for st, err := range r.Steps(ctx) {
		if err != nil {
			return err
		}
		rep, err := examine(ctx, st, field, opt.size)
		if err != nil {
			return err
		}
		rep.Plane = r.Info().Plane
		if err := out.Encode(rep); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// examine reads one step and compares it: where it lies, if it can be looked at there.
func examine(ctx context.Context, st *step.Step, field []float64, n int) (report, error) {
	T, err := step.Lookup[float64](st, "T")
	if err != nil {
		return report{}, err
	}
	t, err := step.Lookup[float64](st, "t")
	if err != nil {
		return report{}, err
	}
	got := field
	view, err := T.View(ctx, step.All)
	switch {
	case err == nil:
		defer view.Release()
		got = view.Data()
	case errors.Is(err, step.ErrNoView):
		if got, err = T.Get(ctx, step.All, field); err != nil {
			return report{}, err
		}
	default:
		return report{}, err
	}
	if len(got) != n*n {
		return report{}, fmt.Errorf("step %d has %d points, not %d", st.Number(), len(got), n*n)
	}
	now, err := t.Value(ctx)
	if err != nil {
		return report{}, err
	}
	d := deviation(got, n, now)
	if math.IsNaN(d) || math.IsInf(d, 0) {
		d = -1
	}
	return report{Step: st.Number(), Bytes: 8 * len(got), Deviation: d, Picture: newPicture(got, n)}, nil
}
