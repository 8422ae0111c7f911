package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
)

type lsOptions struct {
	long, attrs, verbose, json bool
	params                     []string
	observe                    observing
	timeout                    time.Duration
}

func newLs(env Env) *cobra.Command {
	var opt lsOptions
	cmd := &cobra.Command{
		Use:        "ls [-l] [-a] [-v] [--json] NAME",
		SuggestFor: []string{"list", "bpls", "show", "info"},
		Short:      "List the variables of a BP5 file or of the next step of a stream",
		Example: `  weft ls -l run.bp
  weft ls --timeout 30s sim`,
		Long: `List variables as bpls does: type, name, number of steps, and shape. A dimension
that changes from step to step shows as "__".

On a stream, ls attaches, shows the newest or the next step and leaves; the
writer goes on. A Weft writer is only observed: nobody waits for ls. With
--observe=false, and with an ADIOS2 writer in any case, ls is a reader, which does
something to the writer: it counts for RendezvousReaderCount, so a writer that
waits for one starts; and while it is attached it holds steps, and takes its turn
where steps are dealt round-robin. Ctrl-C while ls attaches waits until the writer
has answered: leaving at once can HANG OR CRASH an ADIOS2 writer.

Minimum and maximum (-l) are those that the writer recorded. ADIOS2 records none
in streams; there, the data of the step is read instead.`,
		Args: names("NAME"),
	}
	observe := observeFlag(cmd, observeWeft, "only look at the stream: nobody waits for it; Weft writers only (default: for Weft writers)")
	cmd.RunE = func(cmd *cobra.Command, list []string) error {
		opt.observe = observe()
		return runLs(cmd.Context(), env, list[0], opt)
	}
	readerParams(cmd, &opt.params)
	f := cmd.Flags()
	f.BoolVarP(&opt.long, "long", "l", false, "show values, minimum and maximum")
	f.BoolVarP(&opt.attrs, "attrs", "a", false, "list attributes too")
	f.BoolVarP(&opt.verbose, "verbose", "v", false, "show what the file or stream is")
	f.BoolVar(&opt.json, "json", false, "print one JSON object")
	f.DurationVar(&opt.timeout, "timeout", 0, "wait this long for the file or stream to appear, to attach, and for the next step;\nan attachment that has begun is finished even if that takes longer (default: nothing\nis waited for to appear, 60s to attach, the next step without end)")
	return cmd
}

func runLs(ctx context.Context, env Env, name string, opt lsOptions) (err error) {
	p, err := parseReaderParams("--param", opt.params)
	if err != nil {
		return err
	}
	src, err := openSource(ctx, env, name, sourceOptions{timeout: opt.timeout, params: p, observe: opt.observe})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	list, scanErr := collect(ctx, src, opt)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out := newOutput(env.Stdout)
	if opt.json {
		list.writeJSON(out, name, opt)
	} else {
		list.writeText(out, opt, src)
	}
	if err := out.flush(); err != nil {
		return err
	}
	if scanErr == nil {
		sayUnfinished(env.Stderr, name, src)
	}
	return scanErr
}

// collect goes through the steps: all of a file, the next one of a stream. What
// was seen before an error is listed too.
func collect(ctx context.Context, src source, opt lsOptions) (*listing, error) {
	list := newListing()
	for {
		st, err := src.Next(ctx)
		switch {
		case errors.Is(err, io.EOF) && list.steps == 0 && src.Live():
			return list, errors.New("the stream ended before another step came")
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return list, err
		}
		list.add(ctx, st, opt.long && src.Live())
		if err := st.End(); err != nil || src.Live() {
			return list, err
		}
	}
}
