package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst/cohort"
)

// Values of --cohort.
const (
	cohortAuto     = "auto"
	cohortSolo     = "solo"
	cohortLauncher = "launcher"
)

func cohortFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "cohort", cohortAuto, `"auto": the processes of a launcher (Open MPI, MPICH, Slurm, WEFT_ variables) work
together, without one this process is alone; "solo": it is alone in any case;
"launcher": there must be one`)
}

// launch finds out whether a launcher has started this process.
func (e Env) launch(mode string) (cohort.Launch, error) {
	alone := cohort.Launch{Size: 1}
	if mode == cohortSolo {
		return alone, nil
	}
	if mode != cohortAuto && mode != cohortLauncher {
		return alone, usagef("--cohort %q: want %s, %s or %s", mode, cohortAuto, cohortSolo, cohortLauncher)
	}
	l, err := cohort.Detect(e.Environ)
	if err != nil {
		return alone, usageError{err}
	}
	if l.Launcher == "" && mode == cohortLauncher {
		return alone, usagef("--cohort %s: no variables of a launcher are there", mode)
	}
	return l, nil
}

// joinCohort connects the processes of a launcher; it returns nil for a process
// that is alone. The run folder is where the streams are.
func joinCohort(ctx context.Context, env Env, l cohort.Launch, dir string) (cohort.Cohort, error) {
	if l.Size == 1 {
		return nil, nil
	}
	forming := &gate{Handler: newLogger(env.Stderr).Handler(), open: new(atomic.Bool)}
	forming.open.Store(true)
	defer forming.open.Store(false)
	c, err := cohort.FromLauncher(ctx, cohort.LauncherConfig{Environ: env.Environ, Dir: dir, Name: "weft", Logger: slog.New(forming)})
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, &interruptedWait{err}
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), c.Close())
	case errors.Is(err, cohort.ErrConfig):
		return nil, usageError{err}
	}
	return c, err
}

// gate is a slog.Handler that can be shut: once a team is formed, it says itself
// which rank has gone, and once.
type gate struct {
	slog.Handler
	open *atomic.Bool
}

// Enabled implements slog.Handler.
func (g *gate) Enabled(ctx context.Context, level slog.Level) bool {
	return g.open.Load() && g.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (g *gate) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &gate{g.Handler.WithAttrs(attrs), g.open}
}

// WithGroup implements slog.Handler.
func (g *gate) WithGroup(name string) slog.Handler { return &gate{g.Handler.WithGroup(name), g.open} }

// folderOf is the folder of a stream.
func folderOf(name string) string { return filepath.Dir(name) }

// first keeps an error that every rank finds by itself for one to say.
func first(l cohort.Launch, err error) error {
	if err == nil || l.Rank <= 0 {
		return err
	}
	return toldError{codeOf(err)}
}

// forRank returns env for a rank of many: what goes to stderr names it, but for
// rank 0, which speaks for all.
func (e Env) forRank(rank int) Env {
	if rank > 0 {
		e.Stderr = &rankWriter{w: e.Stderr, rank: rank}
	}
	return e
}

// rankWriter puts a rank into lines that begin with the name of the program.
type rankWriter struct {
	w    io.Writer
	rank int
}

func (r *rankWriter) Write(b []byte) (int, error) {
	const program = "weft: "
	if rest, ok := bytes.CutPrefix(b, []byte(program)); ok {
		if _, err := r.w.Write(fmt.Appendf(nil, "%srank %d: %s", program, r.rank, rest)); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return r.w.Write(b)
}
