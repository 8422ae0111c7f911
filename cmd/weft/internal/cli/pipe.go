package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst"
)

// pipeQueue is the QueueLimit of the target unless one is given: a file is read
// faster than any reader takes it, and would fill the memory.
const pipeQueue = 4

type pipeOptions struct {
	params       []string // of the target
	sourceParams []string
	follow       bool
	timeout      time.Duration
	cohort       string
}

func newPipe(env Env) *cobra.Command {
	var opt pipeOptions
	cmd := &cobra.Command{
		Use:        "pipe IN OUT [-P Key=Value]... [--source-param Key=Value]... [--follow]",
		SuggestFor: []string{"send", "stream", "replay", "convert", "copy"},
		Short:      "Send a BP5 file, or another stream, as a stream",
		Example: `  weft pipe run.bp replay
  weft pipe sim copy --param RendezvousReaderCount=2
  mpirun -n 3 weft pipe run.bp replay`,
		Long: `Send the steps of IN, a BP5 file or a stream, to the readers of the stream OUT.
The target has as many writer ranks as the source, and the same variables and
attributes; compressed variables are sent decompressed. What cannot be read is
named on stderr and left out.

--param sets a parameter of the target, --source-param one of the reader of a
source that is a stream, with the names of ADIOS2's SST engine. Two defaults
matter: RendezvousReaderCount=1 waits for one reader before the first step;
QueueLimit is 4 here, not 0 (unlimited). Of a file that is being written, pipe sends
the steps that are there; with --follow also those that come, until its writer
closes it.

Started by mpirun, srun or another launcher, the processes are the ranks of one
writer, and of one reader if IN is a stream: each reads and serves its share of
the source's ranks. Rank 0 speaks for all. If a rank fails, all end, and the exit
code of each is not 0.`,
		Args: names("IN", "OUT"),
		RunE: func(cmd *cobra.Command, list []string) error {
			return runPipe(cmd.Context(), env, list[0], list[1], opt)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&opt.params, "param", "P", nil, "parameter of the target stream, Key=Value")
	f.StringArrayVar(&opt.sourceParams, "source-param", nil, "parameter of the reader of a source that is a stream, Key=Value")
	f.BoolVar(&opt.follow, "follow", false, "wait for more steps of a file that is being written")
	f.DurationVar(&opt.timeout, "timeout", 0, "wait this long for the source to appear, to attach to it, and for each of its steps,\nsuch as 30s (default: nothing is waited for to appear, 60s to attach, steps without end)")
	cohortFlag(cmd, &opt.cohort)
	return cmd
}

func runPipe(ctx context.Context, env Env, in, out string, opt pipeOptions) error {
	launch, err := env.launch(opt.cohort)
	if err != nil {
		return err
	}
	p := &pipe{in: in, out: out, opt: opt}
	if err := p.check(); err != nil {
		return first(launch, err) // all ranks have the same command line
	}
	c, err := joinCohort(ctx, env.forRank(launch.Rank), launch, folderOf(out))
	if err != nil {
		return err
	}
	work, team, err := newTeam(ctx, c, env.Stderr)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	p.env, p.team = env.forRank(team.rank), team
	err = p.run(work)
	return team.end(work, err, p.served == nil)
}

// pipe is one run of the command.
type pipe struct {
	env     Env
	in, out string
	opt     pipeOptions
	target  sst.Params
	source  sst.Params
	team    *team
	served  *served // nil until the target is there
}

// check looks at what was typed.
func (p *pipe) check() (err error) {
	if p.target, err = targetParams(p.opt.params); err != nil {
		return err
	}
	if p.source, err = parseReaderParams("--source-param", p.opt.sourceParams); err != nil {
		return err
	}
	return checkTarget(p.in, p.out)
}

// run opens both ends and copies.
func (p *pipe) run(ctx context.Context) (err error) {
	log := newLogger(p.env.Stderr)
	session, err := newSession(ctx, log, cmp.Or(iface(p.target), iface(p.source)))
	if err != nil {
		return err
	}
	opening := true
	defer func() { err = errors.Join(err, closeSession(session, log, opening)) }()
	src, err := openSource(ctx, p.env, p.in, sourceOptions{
		session: session, timeout: p.opt.timeout, follow: p.opt.follow, params: p.source, cohort: p.team.streams(),
	})
	if err != nil {
		return err
	}
	opening = false
	defer func() { err = errors.Join(err, src.Close()) }()
	what, err := p.agree(ctx, src)
	if err != nil {
		return err
	}
	mine := p.team.shareOf(what.Ranks)
	w, err := p.createTarget(ctx, targetConfig(session, p.target, p.team.streams(), mine.count(), p.env.Stdout))
	if err != nil {
		return err
	}
	p.served = &served{w: w, name: p.out, readers: map[string]bool{}}
	if p.team.leads() {
		defer p.served.say(p.env.Stderr)
	}
	c := &copier{w: w, served: p.served, live: src.Live(), team: p.team, mine: mine, stderr: p.env.Stderr, vars: map[string]*pipeVar{}, attrs: map[string]string{}, told: map[string]bool{}}
	err = c.run(ctx, src, what.Steps)
	if err == nil && p.team.leads() && !p.opt.follow {
		sayUnfinished(p.env.Stderr, p.in, src)
	}
	return finishPipe(ctx, w, c, err)
}

// agree makes all ranks copy the same steps. The processes have opened a file
// on their own: of one that is being written they may see different parts.
func (p *pipe) agree(ctx context.Context, src source) (plan, error) {
	mine := plan{Ranks: src.Ranks(), Steps: -1}
	f, isFile := src.(*fileSource)
	if isFile && !p.opt.follow {
		mine.Steps = f.NumSteps()
	}
	theirs, err := p.team.agree(ctx, mine)
	switch {
	case err != nil:
		return mine, err
	case theirs == mine: // to the end, which may be an error
		theirs.Steps = -1
	case isFile && (theirs.Ranks != mine.Ranks || mine.Steps < theirs.Steps):
		return mine, fmt.Errorf("%s: rank 0 sees %s of %s here, this process %s of %s: is it the same file?", p.in,
			plural(theirs.Steps, "step"), plural(theirs.Ranks, "rank"), plural(mine.Steps, "step"), plural(mine.Ranks, "rank"))
	}
	return theirs, nil
}

// createTarget opens the target, and says what to start if no reader comes.
func (p *pipe) createTarget(ctx context.Context, cfg sst.WriterConfig) (*sst.Writer, error) {
	const soon = time.Second
	text := fmt.Sprintf("weft: no reader yet: start one, e.g. weft dump %s\n", printable(p.out))
	if n := cfg.Params.RendezvousReaderCount; n != nil && *n != 1 {
		text = fmt.Sprintf("weft: waiting for %d readers: start them, e.g. weft dump %s\n", *n, printable(p.out))
	}
	if p.team.leads() {
		t := time.AfterFunc(soon, func() { fmt.Fprint(p.env.Stderr, text) })
		defer t.Stop()
	}
	return sst.Create(ctx, p.out, cfg)
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
	defer func() {
		if ctx.Err() != nil && !c.team.alone() {
			// A rank has failed, or the launcher ends the job because one has: what readers got is not all.
			w.Abort(context.Cause(ctx))
		}
	}()
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
	if err != nil {
		return p, err
	}
	if !slices.ContainsFunc(list, func(arg string) bool { return strings.HasPrefix(arg, "QueueLimit=") }) {
		p.QueueLimit = pipeQueue
	}
	if _, err := p.Effective(sst.WriterSide); err != nil {
		return p, usageError{err}
	}
	return p, nil
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
