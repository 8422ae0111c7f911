package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst"
)

type statOptions struct {
	interval time.Duration
	count    int
	forever  bool // without --count
	json     bool
	timeout  time.Duration
}

func newStat(env Env) *cobra.Command {
	var opt statOptions
	cmd := &cobra.Command{
		Use:        "stat [--interval D] [--count N] [--json] NAME",
		SuggestFor: []string{"stats", "status", "top", "watch", "monitor"},
		Short:      "Show what the Weft writer of a stream is doing, and who reads",
		Example: `  weft stat sim
  weft stat --json --count 10 --interval 5s sim`,
		Long: `Ask the writer of a stream what it is doing: steps and bytes, its queue, and its
readers with what each holds. In a terminal the view is kept up to date until the
stream ends, or Ctrl-C. Elsewhere one snapshot is printed, or as many as --count
says.

Asking is not attaching: no rendezvous counts it, no step waits for it, the
simulation is not involved. Only Weft writers can be asked. ADIOS2 has no such
thing; it is not even connected to.

Rates are those between two snapshots. The exit code is 0 if the stream ends in
an orderly way, 1 if the writer dies.`,
		Args: names("NAME"),
		RunE: func(cmd *cobra.Command, list []string) error {
			opt.forever = !cmd.Flags().Changed("count")
			return runStat(cmd.Context(), env, list[0], opt)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&opt.interval, "interval", time.Second, "time between snapshots")
	f.IntVar(&opt.count, "count", 1, "leave after this many snapshots, 0 for never (default: 1, in a terminal never)")
	f.BoolVar(&opt.json, "json", false, "print one JSON object a snapshot, each on one line")
	f.DurationVar(&opt.timeout, "timeout", 0, "wait this long for the stream to appear, and for each answer\n(default: nothing is waited for to appear, 10s for an answer)")
	f.Lookup("count").DefValue = "0" // lest cobra adds a default to the text
	return cmd
}

// minInterval keeps a watcher from being a load.
const minInterval = 50 * time.Millisecond

func (o *statOptions) check(env Env) error {
	if o.interval < minInterval {
		return usagef("--interval is at least %v", minInterval)
	}
	if o.count < 0 || o.timeout < 0 {
		return usagef("--count and --timeout are not negative")
	}
	if o.forever && env.Size != nil && !o.json {
		o.count = 0
	}
	return nil
}

func runStat(ctx context.Context, env Env, name string, opt statOptions) (err error) {
	if err := opt.check(env); err != nil {
		return err
	}
	w := &watcher{name: name, opt: opt}
	if err := mustBeStream(ctx, env, name, opt.timeout); err != nil {
		return err
	}
	w.session, err = newSession(ctx, newLogger(env.Stderr), "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.session.Close()) }()
	show := newStatOutput(env, name, opt)
	err = w.run(ctx, show)
	switch {
	case errors.Is(err, errStreamEnded):
		fmt.Fprintf(env.Stderr, "weft: %s: the stream has ended\n", printable(name))
		return nil
	case ctx.Err() != nil && env.Size != nil && !opt.json:
		return nil // whoever watches leaves by Ctrl-C
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// mustBeStream waits for the name of a stream, and refuses files.
func mustBeStream(ctx context.Context, env Env, name string, timeout time.Duration) error {
	if err := checkName(name); err != nil {
		return err
	}
	live, err := awaitName(ctx, newLogger(env.Stderr), name, sourceOptions{timeout: timeout})
	if err == nil && !live {
		err = usagef("%s is no stream: only who writes one can be asked", name)
	}
	return err
}

// watcher asks one writer again and again.
type watcher struct {
	name    string
	opt     statOptions
	session *sst.Session
	asked   bool // and answered, once at least
}

// errStreamEnded says that the writer has closed the stream.
var errStreamEnded = errors.New("the stream has ended")

// statOutput shows a snapshot.
type statOutput interface{ show(st sst.Stat) error }

func (w *watcher) run(ctx context.Context, out statOutput) error {
	tick := time.NewTicker(w.opt.interval)
	defer tick.Stop()
	for n := 0; w.opt.count == 0 || n < w.opt.count; n++ {
		if n > 0 {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		st, err := w.ask(ctx)
		if err == nil {
			err = out.show(st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ask gets a snapshot. A writer that ends removes its contact file first, so of
// one that is suddenly gone a second look tells whether it has ended or died.
func (w *watcher) ask(ctx context.Context) (sst.Stat, error) {
	st, err := w.askOnce(ctx)
	if w.asked && (errors.Is(err, sst.ErrStale) || errors.Is(err, sst.ErrWriterFailed)) {
		st, err = w.askOnce(ctx)
	}
	switch {
	case err == nil:
		w.asked = true
	case !w.asked || ctx.Err() != nil:
	case errors.Is(err, sst.ErrNoStream) || errors.Is(err, sst.ErrClosed):
		err = errStreamEnded
	case errors.Is(err, sst.ErrStale) || errors.Is(err, sst.ErrWriterFailed):
		err = fmt.Errorf("the writer is gone, without having ended the stream: %w", err)
	}
	return st, err
}

func (w *watcher) askOnce(ctx context.Context) (sst.Stat, error) {
	cfg := sst.StatConfig{Session: w.session, Timeout: w.opt.timeout}
	if !w.asked {
		cfg.Wait = w.opt.timeout
	}
	return sst.QueryStat(ctx, w.name, cfg)
}

// newStatOutput chooses how to show snapshots.
func newStatOutput(env Env, name string, opt statOptions) statOutput {
	switch {
	case opt.json:
		return &statJSON{out: newOutput(env.Stdout), name: name}
	case env.Size != nil:
		return &statLive{screen: screen{w: env.Stdout, size: env.Size}, view: statView{name: name}}
	}
	return &statPlain{out: newOutput(env.Stdout), view: statView{name: name}}
}

// statPlain prints snapshots one below the other.
type statPlain struct {
	out   *output
	view  statView
	count int
}

func (p *statPlain) show(st sst.Stat) error {
	if p.count++; p.count > 1 {
		p.out.text("\n")
	}
	for _, line := range p.view.lines(st) {
		p.out.text(line + "\n")
	}
	return p.out.flush()
}

// statLive keeps the view of a terminal up to date.
type statLive struct {
	screen screen
	view   statView
}

func (l *statLive) show(st sst.Stat) error { return l.screen.draw(l.view.lines(st)) }

// statJSON prints snapshots for programs.
type statJSON struct {
	out  *output
	name string
	last *sst.Stat
}

// statObject is a snapshot as --json prints it; see docs/cli.md.
type statObject struct {
	Name string `json:"name"`
	sst.Stat
	Rates *rates `json:"rates"` // since the snapshot before; null in the first
}

func (j *statJSON) show(st sst.Stat) error {
	o := statObject{Name: j.name, Stat: st}
	if j.last != nil {
		o.Rates = ratesBetween(*j.last, st)
	}
	j.last = &st
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	j.out.bytes(append(b, '\n'))
	return j.out.flush()
}
