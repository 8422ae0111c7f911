package cli

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/ping"
)

// pingSide are the flags that both sides have.
type pingSide struct {
	provider, wait, progress, pin string
	options                       []string
}

type pingOptions struct {
	pingSide
	op, size        string
	iters           int
	pause           time.Duration
	listen, connect string
	json            bool
}

// anyName is the value of --listen without one: what the help shows between = and ].
const anyName = "<name>"

// nameFlag is a string whose help is --listen[=<name>].
type nameFlag string

func (n *nameFlag) String() string     { return string(*n) }
func (n *nameFlag) Set(s string) error { *n = nameFlag(s); return nil }
func (n *nameFlag) Type() string       { return "" }

// loopName is the provider whose other side cannot be another process.
const loopName = "loop"

func newPing(env Env) *cobra.Command {
	var opt pingOptions
	cmd := &cobra.Command{
		Use:        "ping [flags]",
		SuggestFor: []string{"pingpong", "fi_pingpong", "latency", "bandwidth", "perf"},
		Short:      "Measure latency and rates of a provider, between two processes of this machine",
		Example: `  weft ping
  weft ping --op read --size 4K,1M,64M
  weft ping --size 8 --wait sleep --pin same --json
  weft ping --size 8 --wait sleep --pin apart --pause 1ms
  weft ping --listen=here          # in one terminal, and in another one:
  weft ping --connect here --op view --size 1M
  weft ping --listen --option folder=/shared   # between containers: both see the folder`,
		Long: `Start a second process and measure what operations between the two cost: latency, MB/s,
operations a second, and the processor time of both sides. With loop the other side is in
this process. All data are checked; a difference is an error.

Each size is measured in two phases of --iters operations. Latency: one operation after the
other; of message, tagged and write it is half a round trip to the peer's program and
back, of read and view the whole operation. MB/s and ops/s: as many at once as fit into
128 MiB, 64 at most. A view is only looked at for the latency, and read to its last byte for the rate.

--wait says how both sides wait: spin polls and never sleeps, sleep sleeps at once;
without it they poll for a short time and then sleep, as programs do.

Without a pause hardly anybody falls asleep. --pause is a time in which nothing is done before each
operation of the latency phase, of ` + orList(ping.Answered) + `: the peer sleeps when it comes. It is
not part of the latency, and MB/s and ops/s are measured without it.

--listen makes this process the other side of one that is started with --connect. Each has its own
--wait, --progress and --option, --pin must be the same; what is measured says the one that connects.

--option sets options of the provider, such as folder, by which containers meet that share nothing
but a folder; docs/prov has them all.

The exit code is 1 if the peer dies or data are wrong.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if opt.listen == anyName && len(args) > 0 {
				return usagef("a name is given as --listen=%s", args[0])
			}
			return names()(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := func(flag string) bool { return cmd.Flags().Changed(flag) }
			return runPing(cmd.Context(), env, &opt, given)
		},
	}
	opt.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&opt.op, "op", string(ping.Message), "operation: "+orList(ping.Ops))
	f.StringVar(&opt.size, "size", "8,1K,64K,1M", "bytes of an operation, as 8, 64K, 1M or 1G; several are measured one after the other")
	f.IntVar(&opt.iters, "iters", 0, "operations of each phase; 0 is 20000, and fewer of large ones or with --pause")
	f.DurationVar(&opt.pause, "pause", 0, "do nothing before each operation of the latency phase, such as 1ms, up to "+ping.MaxPause.String())
	f.Var((*nameFlag)(&opt.listen), "listen", "be the other side of a --connect, under a name or a random one")
	f.Lookup("listen").NoOptDefVal = anyName
	f.StringVar(&opt.connect, "connect", "", "measure with the process that listens at this `address`, or under this name")
	f.BoolVar(&opt.json, "json", false, "print one JSON object a size")
	completeWords(cmd, "op", ping.Ops...)
	return cmd
}

func (o *pingSide) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.provider, "provider", "shm", "provider, of those that weft info shows")
	f.StringVar(&o.wait, "wait", "", "how to wait: "+orList(ping.Waits))
	f.StringVar(&o.progress, "progress", "auto", "who moves operations on: auto or manual")
	f.StringVar(&o.pin, "pin", "", "put both processes on one processor (same), or on two (apart)")
	optionFlag(cmd, &o.options)
	completeProviders(cmd, "provider")
	completeWords(cmd, "wait", ping.Waits...)
	completeWords(cmd, "progress", fabric.Auto.String(), fabric.Manual.String())
	completeWords(cmd, "pin", ping.Pins...)
}

// args is the command line of a peer process.
func (o *pingSide) args() []string {
	list := []string{pingPeerName, "--provider", o.provider, "--wait=" + o.wait, "--progress", o.progress, "--pin=" + o.pin}
	for _, option := range o.options {
		list = append(list, "--option="+option)
	}
	return list
}

// config checks the flags.
func (o *pingSide) config() (ping.Config, error) {
	c := ping.Config{Provider: o.provider, Wait: ping.Wait(o.wait), Pin: ping.Pin(o.pin)}
	if o.wait != "" && !slices.Contains(ping.Waits, c.Wait) {
		return c, usagef("--wait is %s, not %q", orList(ping.Waits), o.wait)
	}
	if o.pin != "" && !slices.Contains(ping.Pins, c.Pin) {
		return c, usagef("--pin is %s, not %q", orList(ping.Pins), o.pin)
	}
	switch o.progress {
	case fabric.Auto.String():
	case fabric.Manual.String():
		c.Progress = fabric.Manual
	default:
		return c, usagef("--progress is auto or manual, not %q", o.progress)
	}
	var err error
	c.Options, err = parseOptions(o.options)
	return c, err
}

// work checks what is to be measured.
func (o *pingOptions) work() (ping.Work, error) {
	w := ping.Work{Op: ping.Op(o.op), Iters: o.iters, Pause: o.pause}
	if !slices.Contains(ping.Ops, w.Op) {
		return w, usagef("--op is %s, not %q", orList(ping.Ops), o.op)
	}
	var err error
	if w.Sizes, err = ping.ParseSizes(o.size); err != nil {
		return w, usagef("--size: %s", strings.TrimPrefix(err.Error(), "ping: "))
	}
	if w.Op != ping.Message && w.Op != ping.Tagged && slices.Contains(w.Sizes, 0) {
		return w, usagef("--size %s: a %s has 1 byte at least; only messages have none", o.size, w.Op)
	}
	if w.Iters < 0 || w.Iters > ping.MaxIters {
		return w, usagef("--iters %d: a number from 1 to %d, or 0 for the usual", w.Iters, ping.MaxIters)
	}
	if w.Pause < 0 || w.Pause > ping.MaxPause {
		return w, usagef("--pause %v: a time up to %v, or 0 for none", w.Pause, ping.MaxPause)
	}
	if w.Pause > 0 && !slices.Contains(ping.Answered, w.Op) {
		return w, usagef("--pause is for %s: the peer does not wait for a %s", orList(ping.Answered), w.Op)
	}
	return w, nil
}

// orList is "a, b or c".
func orList[T ~string](list []T) string {
	words := make([]string, 0, len(list))
	for _, v := range list {
		words = append(words, string(v))
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// runPing finds out which side this is.
func runPing(ctx context.Context, env Env, opt *pingOptions, given func(string) bool) error {
	env.Stderr = shared(env.Stderr)
	if err := opt.settle(given); err != nil {
		return err
	}
	c, err := opt.config()
	if err != nil {
		return err
	}
	w, err := opt.work()
	if err != nil {
		return err
	}
	if err := ping.CheckDescriptors(descriptors(c.Provider)); err != nil {
		return pingError(ctx, err) // before anything is started that would wait for what cannot be
	}
	if err := usable(ctx, c.Provider); err != nil {
		return pingError(ctx, err) // here, before another process finds out
	}
	if len(c.Options) > 0 {
		if err := ping.Check(ctx, c); err != nil {
			return pingError(ctx, err) // here as well
		}
	}
	local, peer, pin := 0, 0, c.Pin
	if pin != ping.Anywhere {
		if local, peer, err = ping.CPUs(pin); err != nil {
			return err
		}
		here := local
		if opt.listen != "" {
			here = peer
		}
		restore, err := ping.PinProcess(here)
		if err != nil {
			return err
		}
		defer func() { _ = restore() }() // the process ends
	}
	out := newPingOutput(env, opt, c)
	c.Begun, c.Logger = out.head, newLogger(env.Stderr)
	switch {
	case opt.listen != "":
		err = pingListen(ctx, out, opt, c)
	case opt.connect != "":
		err = ping.Measure(ctx, c, w, fabric.Address(opt.connect), out.result)
	case opt.provider == loopName:
		err = pingInside(ctx, c, w, out)
	default:
		start := func(start func() error) error { return start() }
		if pin != ping.Anywhere {
			start = func(start func() error) error { return ping.StartOn(peer, start) }
		}
		err = pingProcess(ctx, env, opt, start, c, w, out)
	}
	return pingError(ctx, err)
}

// descriptors is how many files a side has to open. Loop has none of the kernel's, but the runtime does.
func descriptors(provider string) int {
	const runtimes = 4
	if provider == loopName {
		return runtimes
	}
	return ping.Descriptors
}

// usable says why a provider cannot be used, if so.
func usable(ctx context.Context, name string) error {
	all, err := fabric.Discover(ctx, fabric.Hints{Unusable: true})
	if err != nil {
		return err
	}
	f := providerFilter{names: []string{name}}
	if _, err := f.apply(all); err != nil {
		return err
	}
	_, err = fabric.Discover(ctx, fabric.Hints{Provider: name})
	return err
}

// settle makes one setting of flags that belong together.
func (o *pingOptions) settle(given func(string) bool) error {
	for _, f := range [][2]string{{"wait", o.wait}, {"pin", o.pin}, {"connect", o.connect}} {
		if given(f[0]) && f[1] == "" {
			return usagef("--%s is empty", f[0])
		}
	}
	switch {
	case given("listen") && o.listen == "":
		return usagef("--listen= has no name: --listen alone takes a random one")
	case o.listen != "" && o.connect != "":
		return usagef("--listen or --connect, not both")
	case o.listen != "" && (given("op") || given("size") || given("iters") || given("pause")):
		return usagef("--op, --size, --iters and --pause are for the side with --connect")
	case o.provider == "":
		return usagef("--provider is empty")
	}
	if o.connect != "" {
		if !strings.ContainsAny(o.connect, ":/?") {
			o.connect = o.provider + "://" + url.PathEscape(o.connect) // a name, as --listen takes it
		}
		scheme, _, ok := strings.Cut(o.connect, "://")
		if !ok || scheme == "" {
			return usagef("--connect %q is no address, nor a name: they look like shm://NAME", o.connect)
		}
		if given("provider") && o.provider != scheme {
			return usagef("--connect %s is no address of provider %s", o.connect, o.provider)
		}
		o.provider = scheme
	}
	if o.provider != loopName {
		return nil
	}
	if o.listen != "" || o.connect != "" {
		return usagef("loop does not reach other processes: leave --listen and --connect away")
	}
	if o.pin == string(ping.Apart) {
		return usagef("with loop both sides are in one process, which --pin apart cannot put on two processors")
	}
	return nil
}

// pingError is what the user gets to know.
func pingError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ping.ErrConfig):
		return usageError{trimmed{err, "ping: "}}
	}
	return trimmed{err, "ping: "}
}

// trimmed is an error without the name of its package.
type trimmed struct {
	error
	prefix string
}

func (t trimmed) Error() string { return strings.TrimPrefix(t.error.Error(), t.prefix) }
func (t trimmed) Unwrap() error { return t.error }

// pingInside measures with a peer in this process.
func pingInside(ctx context.Context, c ping.Config, w ping.Work, out *pingOutput) error {
	c.Inside = true
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	at := make(chan fabric.Address, 1)
	served := make(chan error, 1)
	quiet := c
	quiet.Logger = nil // one side tells of waits
	go func() {
		err := ping.Serve(ctx, quiet, func(a fabric.Address) error { at <- a; return nil })
		if err != nil && !ping.OfOther(err) {
			cancel(err)
		}
		served <- err
	}()
	select {
	case err := <-served:
		return err
	case a := <-at:
		err := ping.Measure(ctx, c, w, a, out.result)
		if err != nil {
			cancel(err)
		}
		if peer := <-served; err != nil && !ping.OfOther(err) || peer == nil || ping.OfOther(peer) {
			return err
		}
		return context.Cause(ctx) // what went wrong first
	}
}

// pingListen is the other side of a --connect.
func pingListen(ctx context.Context, out *pingOutput, opt *pingOptions, c ping.Config) error {
	if opt.listen != anyName {
		c.Name = opt.listen
	}
	return ping.Serve(ctx, c, func(a fabric.Address) error {
		if opt.json {
			return out.object(struct {
				Address fabric.Address `json:"address"`
			}{a})
		}
		out.printf("listening, for: weft ping --connect '%s'\n", a)
		return out.flush()
	})
}

var errNoPeer = errors.New("the peer process ended before it listened")
