package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst"
	"github.com/weft-fabric/weft/step"
)

type dumpOptions struct {
	vars, params []string
	start, count string
	steps        int
	follow       bool
	timeout      time.Duration
	json         bool
	observe      observing
}

func newDump(env Env) *cobra.Command {
	var opt dumpOptions
	cmd := &cobra.Command{
		Use:        "dump [-v VAR]... [--start a,b --count c,d] [--steps N] [--follow] [--timeout D] [--json] NAME",
		SuggestFor: []string{"cat", "print", "read", "bpdump"},
		Short:      "Print the data of a BP5 file or of a running stream, step by step",
		Example: `  weft dump -v T --start 0,0 --count 1,-1 run.bp
  weft dump --json --steps 10 sim`,
		Long: `Print the data of all steps, or of the first N that come. From a file, dump reads
what is there, or with --follow what comes until the writer closes it. From a
stream, it reads the steps from the next one on; the writer goes on when dump
leaves. Attaching to a stream counts for the writer's RendezvousReaderCount, and
a slow dump holds up a writer with a queue limit. With --observe it does neither,
and misses steps instead; only Weft writers know that.

-v takes a name, or a pattern: * is any characters, / too, ? is one, [a-c] one of
several. For several variables give it several times: a comma is part of a name.

--start and --count select a part of each array that is printed, of each block of
a local array. They have a number for each dimension, separated by commas; single
values are printed whole. Indexes count from 0. A negative start counts from the
end: -1 is the last. A count of -1 is the rest. Without --start the part begins at
0, without --count it is the rest. An array with another number of dimensions, or
too small, is named on stderr, and the exit code is 1.`,
		Args: names("NAME"),
	}
	observe := observeFlag(cmd, observeNever, "only look at the stream: nobody waits for it, and it misses steps that it is too slow for;\nWeft writers only")
	cmd.RunE = func(cmd *cobra.Command, list []string) error {
		opt.observe = observe()
		return runDump(cmd.Context(), env, list[0], opt)
	}
	readerParams(cmd, &opt.params)
	f := cmd.Flags()
	f.StringArrayVarP(&opt.vars, "var", "v", nil, "variable to print, name or pattern; may be given several times (default: all)")
	f.StringVar(&opt.start, "start", "", "first index in each dimension, from 0; negative counts from the end (default: 0)")
	f.StringVar(&opt.count, "count", "", "number of elements in each dimension; -1 is the rest (default: the rest)")
	f.IntVar(&opt.steps, "steps", 0, "leave after this many steps (default: all)")
	f.BoolVar(&opt.follow, "follow", false, "wait for more steps of a file that is being written")
	f.DurationVar(&opt.timeout, "timeout", 0, "give up when nothing comes for this long, such as 5s (default: nothing is waited\nfor to appear, 60s to attach to a stream, the next step without end)")
	f.BoolVar(&opt.json, "json", false, "print one JSON object a step")
	return cmd
}

// dumper prints steps.
type dumper struct {
	env   Env
	opt   dumpOptions
	cut   slice
	out   *output
	name  string
	found map[string]bool // patterns that matched
	steps int             // seen
	first uint64          // number of the first of them
	all   bool            // there are no more
	bad   bool            // stderr was told of something
	told  map[string]bool // what it was told of variables, once each
	attrs map[string]string
}

func runDump(ctx context.Context, env Env, name string, opt dumpOptions) (err error) {
	d := &dumper{env: env, opt: opt, name: name, out: newOutput(env.Stdout), found: map[string]bool{}, told: map[string]bool{}, attrs: map[string]string{}}
	if err := d.check(); err != nil {
		return err
	}
	p, err := parseReaderParams("--param", opt.params)
	if err != nil {
		return err
	}
	src, err := openSource(ctx, env, name, sourceOptions{follow: opt.follow, timeout: opt.timeout, params: p, observe: opt.observe})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if err := d.run(ctx, src); err != nil {
		return err
	}
	if !opt.follow {
		sayUnfinished(env.Stderr, name, src)
	}
	d.sumUp(src.Live())
	if d.bad {
		return errReported
	}
	return nil
}

func (d *dumper) check() (err error) {
	if d.cut, err = parseSlice(d.opt.start, d.opt.count); err != nil {
		return err
	}
	for _, p := range d.opt.vars {
		if p == "" {
			return usagef("-v: the name is empty")
		}
		if _, err := path.Match(p, ""); err != nil {
			return usagef("-v %s: %w", p, err)
		}
	}
	if d.opt.steps < 0 || d.opt.timeout < 0 {
		return usagef("--steps and --timeout are not negative")
	}
	return nil
}

func (d *dumper) run(ctx context.Context, src source) error {
	for n := 0; d.opt.steps == 0 || n < d.opt.steps; n++ {
		st, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			d.all = true
			return nil
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		err = d.step(ctx, st)
		if err := errors.Join(err, st.End()); err != nil {
			return err
		}
	}
	return nil
}

// step prints one step. Only errors of the output and the end of ctx stop it.
func (d *dumper) step(ctx context.Context, st *step.Step) error {
	var vars []*step.Variable
	for _, v := range st.Variables() {
		if d.wanted(v.Name()) {
			vars = append(vars, v)
		}
	}
	if d.steps == 0 {
		d.first = st.Number()
		d.sayMissing(st)
	}
	d.steps++
	show := d.stepText
	if d.opt.json {
		show = d.stepJSON
	}
	err := show(ctx, st, vars)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		err = d.out.flush()
	}
	return err
}

func (d *dumper) wanted(name string) bool {
	if len(d.opt.vars) == 0 {
		return true
	}
	any := false
	for _, p := range d.opt.vars {
		if matches(p, name) {
			d.found[p], any = true, true
		}
	}
	return any
}

// complain names what is wrong with a variable on stderr, once and not in every
// step; the rest goes on.
func (d *dumper) complain(st *step.Step, err error) {
	if !errors.Is(err, sst.ErrStepGone) { // who only looks misses what it is too slow for
		d.bad = true
	}
	// Some errors know their step, and all would differ.
	text := strings.TrimPrefix(message(err), fmt.Sprintf("step %d: ", st.Number()))
	if d.told[text] {
		return
	}
	d.told[text] = true
	fmt.Fprintf(d.env.Stderr, "weft: %s: step %d: %s\n", printable(d.name), st.Number(), text)
}
