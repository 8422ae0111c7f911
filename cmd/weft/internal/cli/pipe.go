package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst"
)

// pipeQueue is the QueueLimit of the target unless one is given: a file is read
// faster than any reader takes it, and would fill the memory.
const pipeQueue = 4

func newPipe(env Env) *cobra.Command {
	var params []string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "pipe IN OUT [--param Key=Value]...",
		Short: "Send a BP5 file, or another stream, as a stream",
		Long: `Send the steps of IN, a BP5 file or a stream, to the readers of the stream OUT.
The target has as many writer ranks as the source, and the same variables and
attributes; compressed variables are sent decompressed. What cannot be read is
named on stderr and left out.

--param sets a parameter of the target, with the names of ADIOS2's SST engine.
Two defaults matter: RendezvousReaderCount=1 waits for one reader before the
first step; QueueLimit is 4 here, not unlimited.`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, list []string) error {
			return runPipe(cmd.Context(), env, list[0], list[1], params, timeout)
		},
	}
	cmd.Flags().StringArrayVar(&params, "param", nil, "parameter of the target stream, Key=Value")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "wait this long for the source, and for each of its steps")
	return cmd
}

func runPipe(ctx context.Context, env Env, in, out string, params []string, timeout time.Duration) (err error) {
	p, err := parseParams(params)
	if err != nil {
		return err
	}
	if err := checkTarget(in, out); err != nil {
		return err
	}
	log := newLogger(env.Stderr)
	session, err := sst.NewSession(ctx, sst.SessionConfig{Logger: log, NetworkInterface: iface(p)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSession(session, log)) }()
	src, err := openSource(ctx, env, in, sourceOptions{session: session, timeout: timeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	w, err := sst.Create(ctx, out, sst.WriterConfig{Session: session, Params: p, Ranks: src.Ranks()})
	if err != nil {
		return err
	}
	c := &copier{w: w, live: src.Live(), stderr: env.Stderr, vars: map[string]*pipeVar{}, attrs: map[string]string{}, told: map[string]bool{}}
	return finishPipe(ctx, w, c, c.run(ctx, src))
}

// finishPipe closes the target. Whatever ended the pipe, readers of the target
// get the steps that were sent, and then its end; unless the user is in a hurry.
func finishPipe(ctx context.Context, w *sst.Writer, c *copier, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // the session's Close ends the stream at once
	}
	if finishErr := w.Finish(ctx); finishErr != nil {
		return errors.Join(err, finishErr)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	if len(c.told) > 0 {
		return errReported
	}
	return nil
}

func parseParams(list []string) (sst.Params, error) {
	m := map[string]string{}
	for _, p := range list {
		key, value, ok := strings.Cut(p, "=")
		if !ok || key == "" {
			return sst.Params{}, usagef("--param %s: want Key=Value", p)
		}
		m[key] = value
	}
	p, err := sst.ParseParams(m)
	if err != nil {
		return p, usageError{err}
	}
	if p.QueueLimit == 0 {
		p.QueueLimit = pipeQueue
	}
	return p, nil
}

// iface is the interface that the session publishes.
func iface(p sst.Params) string {
	if p.ControlInterface != "" {
		return p.ControlInterface
	}
	return p.NetworkInterface
}

// checkTarget refuses targets that are meant as files.
func checkTarget(in, out string) error {
	info, err := os.Stat(out)
	switch {
	case strings.HasSuffix(out, "/") || err == nil && info.IsDir():
		return usagef("%s is a folder: pipe writes streams, not BP5 files", out)
	case strings.HasSuffix(out, ".bp"):
		return usagef("%s looks like a BP5 file: pipe writes streams, not files; a stream of that name is %s%s", out, out, contactSuffix)
	case strings.TrimSuffix(in, contactSuffix) == strings.TrimSuffix(out, contactSuffix):
		return usagef("%s is both source and target", in)
	}
	return nil
}

// run copies steps until the source ends.
func (c *copier) run(ctx context.Context, src source) error {
	for {
		st, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		err = c.step(ctx, st)
		if err := errors.Join(err, st.End()); err != nil {
			return err
		}
	}
}
