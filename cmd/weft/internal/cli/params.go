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

type paramsOptions struct {
	params  []string
	attach  bool
	json    bool
	timeout time.Duration
}

func newParams(env Env) *cobra.Command {
	var opt paramsOptions
	cmd := &cobra.Command{
		Use:        "params [-P Key=Value]... [--attach] [--json] [NAME]",
		SuggestFor: []string{"config", "options", "parameters", "settings"},
		Short:      "Show the engine parameters of a stream's writer, and those of a reader",
		Example: `  weft params
  weft params sim
  weft params --attach -P SpeculativePreloadMode=Off sim`,
		Long: `Show the engine parameters that are in effect: those of the writer of a stream,
and those that a reader started by this command would have, with -P as given.
"set" marks values that somebody gave, "default" the others.

A Weft writer is asked, which does not disturb it. An ADIOS2 writer tells its
parameters only to readers, when they attach. With --attach this command does
that: it attaches, looks, and leaves, and the writer goes on. Attaching does
something to a writer: it counts for RendezvousReaderCount, so a writer that waits
for one reader starts; and it may have to wait for the writer's next EndStep.
Without --attach, only the reader's parameters are shown, and the exit code is 1.

ADIOS2 does not tell whether a value was given: there, "set" marks what is not
its default.

Without a NAME, list all parameters that there are, with their defaults and what
they mean.`,
		Args: func(cmd *cobra.Command, list []string) error {
			if len(list) == 0 {
				return withoutName(cmd)
			}
			return names("NAME")(cmd, list)
		},
		RunE: func(cmd *cobra.Command, list []string) error {
			if len(list) == 0 {
				return listParams(env, opt.json)
			}
			return runParams(cmd.Context(), env, list[0], opt)
		},
	}
	readerParams(cmd, &opt.params)
	f := cmd.Flags()
	f.BoolVar(&opt.attach, "attach", false, "attach to an ADIOS2 writer, to learn its parameters")
	f.BoolVar(&opt.json, "json", false, "print one JSON object")
	f.DurationVar(&opt.timeout, "timeout", 0, "wait this long for the stream to appear, and to be answered (default: nothing is\nwaited for to appear, 10s for an answer, 60s to attach)")
	return cmd
}

// paramsObject is what --json prints; see docs/cli.md.
type paramsObject struct {
	Name   string       `json:"name"`
	Writer *writerPart  `json:"writer"` // null if it is not known
	Reader []paramValue `json:"reader"`
}

// writerPart is the side that is there.
type writerPart struct {
	Software string       `json:"software"` // "Weft", or what is known of the release
	Addr     string       `json:"addr"`
	Params   []paramValue `json:"params"`
}

type paramValue = sst.EffectiveParam

func runParams(ctx context.Context, env Env, name string, opt paramsOptions) error {
	p, err := parseReaderParams("--param", opt.params)
	if err != nil {
		return err
	}
	if opt.timeout < 0 {
		return usagef("--timeout is not negative")
	}
	if err := mustBeStream(ctx, env, name, opt.timeout); err != nil {
		return err
	}
	o := paramsObject{Name: name}
	if o.Reader, err = p.Effective(sst.ReaderSide); err != nil {
		return err
	}
	o.Writer, err = askParams(ctx, env, name, opt, p)
	if err != nil && !errors.Is(err, errOnlyReaders) {
		return err
	}
	out := newOutput(env.Stdout)
	if opt.json {
		b, marshalErr := json.Marshal(o)
		if marshalErr != nil {
			return marshalErr
		}
		out.bytes(append(b, '\n'))
	} else {
		o.writeText(out)
	}
	if flushErr := out.flush(); flushErr != nil {
		return flushErr
	}
	return err
}

// errOnlyReaders says why the writer's parameters are not shown.
var errOnlyReaders = errors.New("the writer is ADIOS2, which tells its parameters to readers only: --attach attaches as one, which counts for its rendezvous")

// askParams gets the writer's parameters: by asking, or by attaching.
func askParams(ctx context.Context, env Env, name string, opt paramsOptions, p sst.Params) (*writerPart, error) {
	log := newLogger(env.Stderr)
	session, err := newSession(ctx, log, iface(p))
	if err != nil {
		return nil, err
	}
	st, err := sst.QueryStat(ctx, name, sst.StatConfig{Session: session, Wait: opt.timeout, Timeout: opt.timeout})
	err = errors.Join(err, session.Close())
	switch {
	case err == nil:
		return &writerPart{Software: "Weft", Addr: st.Addr, Params: st.Params}, nil
	case !errors.Is(err, sst.ErrNoStat):
		return nil, err
	case !opt.attach:
		return nil, fmt.Errorf("%s: %w", name, errOnlyReaders)
	}
	src, err := openStream(ctx, log, name, sourceOptions{timeout: opt.timeout, params: p})
	if err != nil {
		return nil, err
	}
	s := src.(*streamSource)
	w := &writerPart{Software: s.Info().Release, Addr: s.Info().Writer, Params: s.WriterParams()}
	return w, s.Close()
}

func (o *paramsObject) writeText(out *output) {
	rows := [][]string{}
	add := func(list []paramValue) {
		for _, p := range list {
			mark, value := "default", p.Value
			if p.Set {
				mark = "set"
			}
			if value == "" {
				value = "-"
			}
			rows = append(rows, []string{printable(p.Name), printable(value), mark})
		}
	}
	if o.Writer != nil {
		add(o.Writer.Params)
	}
	writers := len(rows)
	add(o.Reader)
	lines := alignColumns(rows, 3)
	if o.Writer != nil {
		out.printf("writer: %s at %s\n", printable(o.Writer.Software), printable(o.Writer.Addr))
		for _, line := range lines[:writers] {
			out.text(line + "\n")
		}
	}
	out.text("reader: this command\n")
	for _, line := range lines[writers:] {
		out.text(line + "\n")
	}
}
