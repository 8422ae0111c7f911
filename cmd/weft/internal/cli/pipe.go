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
		Use:        "pipe IN OUT [--param Key=Value]...",
		SuggestFor: []string{"send", "stream", "replay", "convert", "copy"},
		Short:      "Send a BP5 file, or another stream, as a stream",
		Example: `  weft pipe run.bp replay
  weft pipe sim copy --param RendezvousReaderCount=2`,
		Long: `Send the steps of IN, a BP5 file or a stream, to the readers of the stream OUT.
The target has as many writer ranks as the source, and the same variables and
attributes; compressed variables are sent decompressed. What cannot be read is
named on stderr and left out.

--param sets a parameter of the target, with the names of ADIOS2's SST engine.
Two defaults matter: RendezvousReaderCount=1 waits for one reader before the
first step; QueueLimit is 4 here, not unlimited. Of a file that is being written,
pipe sends the steps that are there.`,
		Args: names("IN", "OUT"),
		RunE: func(cmd *cobra.Command, list []string) error {
			return runPipe(cmd.Context(), env, list[0], list[1], params, timeout)
		},
	}
	cmd.Flags().StringArrayVar(&params, "param", nil, "parameter of the target stream, Key=Value")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "wait this long for the source to appear, to attach to it, and for each of its steps,\nsuch as 30s (default: nothing is waited for to appear, 60s to attach, steps without end)")
	return cmd
}

func runPipe(ctx context.Context, env Env, in, out string, params []string, timeout time.Duration) (err error) {
	p, err := targetParams(params)
	if err != nil {
		return err
	}
	if err := checkTarget(in, out); err != nil {
		return err
	}
	log := newLogger(env.Stderr)
	session, err := sst.NewSession(ctx, sst.SessionConfig{Logger: log, NetworkInterface: iface(p), HandshakeGrace: handshakeGrace})
	if err != nil {
		return err
	}
	opening := true
	defer func() { err = errors.Join(err, closeSession(session, log, opening)) }()
	src, err := openSource(ctx, env, in, sourceOptions{session: session, timeout: timeout})
	if err != nil {
		return err
	}
	opening = false
	defer func() { err = errors.Join(err, src.Close()) }()
	w, err := createTarget(ctx, env, out, sst.WriterConfig{Session: session, Params: p, Ranks: src.Ranks()})
	if err != nil {
		return err
	}
	served := &served{w: w, name: out, readers: map[string]bool{}}
	defer served.say(env.Stderr)
	c := &copier{w: w, served: served, live: src.Live(), stderr: env.Stderr, vars: map[string]*pipeVar{}, attrs: map[string]string{}, told: map[string]bool{}}
	err = c.run(ctx, src)
	if err == nil {
		sayUnfinished(env.Stderr, in, src)
	}
	return finishPipe(ctx, w, c, err)
}

// createTarget opens the target, and says what to start if no reader comes.
func createTarget(ctx context.Context, env Env, out string, cfg sst.WriterConfig) (*sst.Writer, error) {
	const soon = time.Second
	text := fmt.Sprintf("weft: no reader yet: start one, e.g. weft dump %s\n", printable(out))
	if n := cfg.Params.RendezvousReaderCount; n != nil && *n != 1 {
		text = fmt.Sprintf("weft: waiting for %d readers: start them, e.g. weft dump %s\n", *n, printable(out))
	}
	t := time.AfterFunc(soon, func() { fmt.Fprint(env.Stderr, text) })
	defer t.Stop()
	return sst.Create(ctx, out, cfg)
}

// served counts what the readers of the target got.
type served struct {
	w       *sst.Writer
	name    string
	steps   int
	readers map[string]bool // by address
}

// look notes who is attached.
func (s *served) look() {
	for _, r := range s.w.Info().Readers {
		if r.Sent > 0 {
			s.readers[r.Addr] = true
		}
	}
}

// sent notes a step.
func (s *served) sent() {
	s.steps++
	s.look()
}

func (s *served) say(stderr io.Writer) {
	fmt.Fprintf(stderr, "weft: %s: %s sent, to %s\n", printable(s.name), plural(s.steps, "step"), plural(len(s.readers), "reader"))
}

// finishPipe closes the target. Whatever ended the pipe, readers of the target
// get the steps that were sent, and then its end; unless the user is in a hurry.
func finishPipe(ctx context.Context, w *sst.Writer, c *copier, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // the session's Close ends the stream at once
	}
	c.served.look()
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

// targetParams reads the parameters of the target.
func targetParams(list []string) (sst.Params, error) {
	p, err := parseParamList("--param", list)
	if err == nil && p.QueueLimit == 0 {
		p.QueueLimit = pipeQueue
	}
	return p, err
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
		if err == nil {
			c.served.sent()
		}
		if err := errors.Join(err, st.End()); err != nil {
			return err
		}
	}
}
