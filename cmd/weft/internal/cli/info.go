package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/internal/host"
	_ "github.com/weft-fabric/weft/prov/all" // all that this build has is shown
)

type infoOptions struct {
	provider string
	options  []string
	verbose  bool
	json     bool
}

func newInfo(env Env) *cobra.Command {
	var opt infoOptions
	cmd := &cobra.Command{
		Use:        "info [-p PROVIDER [-o KEY=VALUE]...] [-v] [--json]",
		SuggestFor: []string{"fi_info", "providers", "caps", "provider"},
		Short:      "Show the ways to communicate that work on this machine, and what bounds them",
		Example: `  weft info
  weft info -v -p shm
  weft info -p '^loop'`,
		Long: `Show the providers of this build: whether each can be used here, or why not, whom it
reaches, what it can do, how its operations progress, and how to wait for them.
Below, what of the machine bounds them: memory that may be locked, room in the
memory cgroup, huge pages.

A provider counts as usable after it has been opened. -v shows all that fi_info
shows of libfabric's providers, and which features of the kernel are used.

--option opens the providers that -p names with options of theirs, as a program would.
The features that are shown are those of the kernel, also if an option disables one.

-p takes the names of providers, several as "shm;loop", or with ^ in front those that
are not shown, as "^loop". With it, the exit code is 1 if none of what is shown can be
used here.`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("provider") && opt.provider == "" {
				return usagef("-p is empty: it takes names of providers")
			}
			if len(opt.options) > 0 && (opt.provider == "" || strings.HasPrefix(opt.provider, "^")) {
				return usagef("--option is for the providers that -p names, as in -p shm")
			}
			return runInfo(cmd.Context(), env, opt)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opt.provider, "provider", "p", "", "these providers only, as \"a;b\", or all but these, as \"^a;b\"")
	optionFlag(cmd, &opt.options)
	completeProviders(cmd, "provider")
	f.BoolVarP(&opt.verbose, "verbose", "v", false, "everything that is known")
	f.BoolVar(&opt.json, "json", false, "print one JSON object")
	return cmd
}

// infoObject is what --json prints; see docs/cli.md.
type infoObject struct {
	Providers []providerInfo `json:"providers"`
	Host      host.Facts     `json:"host"`
}

// providerInfo is what a provider says, and what was found by opening it.
type providerInfo struct {
	Provider string        `json:"provider"`
	Version  string        `json:"version"`
	Domain   string        `json:"domain"`
	Usable   bool          `json:"usable"`
	Why      string        `json:"why"`
	Address  string        `json:"address"`
	Reach    string        `json:"reach"`
	Endpoint string        `json:"endpoint"` // the type of its endpoints
	Caps     []string      `json:"caps"`
	Progress []string      `json:"progress"` // the first is its default
	Wait     []string      `json:"wait"`
	Memory   []string      `json:"mr_mode"`
	Limits   limitsInfo    `json:"limits"`
	Features []featureInfo `json:"features"`
}

// limitsInfo has null where there is no limit.
type limitsInfo struct {
	Message   *uint64 `json:"message"`
	RMA       *uint64 `json:"rma"`
	Inject    *uint64 `json:"inject"`
	AtomicLen *uint64 `json:"atomic"`
	Segments  *uint64 `json:"segments"`
	Remotes   *uint64 `json:"remote_segments"`
	TagBits   *uint64 `json:"tag_bits"`
	DataBytes *uint64 `json:"data_bytes"`
	KeyBytes  *uint64 `json:"key_bytes"`
	Peers     *uint64 `json:"peers"`
	IdlePeer  uint64  `json:"idle_peer_bytes"`
}

type featureInfo struct {
	Name   string `json:"name"`
	On     bool   `json:"on"`
	Detail string `json:"detail"`
}

func runInfo(ctx context.Context, env Env, opt infoOptions) error {
	filter, err := parseFilter(opt.provider)
	if err != nil {
		return err
	}
	options, err := parseOptions(opt.options)
	if err != nil {
		return err
	}
	infos, err := fabric.Discover(ctx, fabric.Hints{Unusable: true})
	if err != nil {
		return err
	}
	if infos, err = filter.apply(infos); err != nil {
		return err
	}
	o := infoObject{Host: host.Read(os.DirFS(env.root()))}
	for i := range infos {
		p, err := probe(&infos[i], options)
		if err != nil {
			return err
		}
		o.Providers = append(o.Providers, p)
	}
	out := newOutput(env.Stdout)
	switch {
	case opt.json:
		b, err := jsonLine(o)
		if err != nil {
			return err
		}
		out.bytes(b)
	case opt.verbose:
		o.writeAll(out)
	default:
		o.writeTable(out)
	}
	if err := out.flush(); err != nil {
		return err
	}
	if usable := func(p providerInfo) bool { return p.Usable }; opt.provider != "" && !slices.ContainsFunc(o.Providers, usable) {
		var whys []string
		for _, p := range o.Providers {
			whys = append(whys, fmt.Sprintf("%s cannot be used here: %s", p.Provider, p.Why))
		}
		return errors.New(strings.Join(whys, "; "))
	}
	return nil
}

// probe opens what a provider offers, to see whether that works and which ways of waiting there are. An error is one of the options.
func probe(info *fabric.Info, options map[string]string) (providerInfo, error) {
	p := describe(info)
	if !info.Usable {
		return p, nil
	}
	c := fabric.DomainConfig{Options: options}
	if len(info.Progress) > 0 {
		c.Progress = info.Progress[0]
	}
	d, err := fabric.OpenDomain(*info, c)
	if len(options) > 0 && errors.Is(err, fabric.ErrInvalid) {
		return p, usageError{err}
	}
	if err == nil {
		p.Wait, err = waitKinds(d)
		err = errors.Join(err, d.Close())
	}
	if err != nil {
		p.Usable, p.Why = false, oneLine(strings.TrimPrefix(err.Error(), info.Provider+": "))
	}
	return p, nil
}

// waitKinds lists the ways to wait for a completion.
func waitKinds(d *fabric.Domain) ([]string, error) {
	q, err := d.OpenCompletionQueue(fabric.CQConfig{})
	if err != nil {
		return nil, err
	}
	list := []string{"call"}
	if q.Ready() != nil {
		list = append(list, "channel")
	}
	switch _, err := q.Descriptor(); {
	case err == nil:
		list = append(list, "descriptor")
	case !errors.Is(err, fabric.ErrNotSupported):
		return nil, err
	}
	return list, nil
}

// endpointType is libfabric's name of what all endpoints here are: reliable, of messages, and without connections that a program
// would see (FI_EP_RDM).
const endpointType = "rdm"

// describe turns a description into words.
func describe(info *fabric.Info) providerInfo {
	p := providerInfo{
		Provider: info.Provider, Version: info.Version, Domain: info.Domain, Usable: info.Usable, Why: oneLine(info.Why), Address: info.Address,
		Reach: "process", Endpoint: endpointType, Caps: capNames(info.Caps), Progress: []string{}, Wait: []string{}, Memory: append([]string{}, info.Memory.Bits()...),
		Features: []featureInfo{},
	}
	switch {
	case info.Caps == 0:
		p.Reach = ""
	case info.Caps.Has(fabric.RemoteComm):
		p.Reach = "network"
	case info.Caps.Has(fabric.LocalComm):
		p.Reach = "node"
	}
	for _, mode := range info.Progress {
		p.Progress = append(p.Progress, mode.String())
	}
	for _, f := range info.Features {
		p.Features = append(p.Features, featureInfo(f))
	}
	l := info.Limits
	p.Limits = limitsInfo{
		Message: limited(l.Message), RMA: limited(l.RMA), Inject: limited(l.Inject), AtomicLen: limited(l.AtomicLen),
		Segments: limited(l.Segments), Remotes: limited(l.Remotes), TagBits: limited(l.TagBits), DataBytes: limited(l.DataBytes),
		KeyBytes: limited(l.KeyBytes), Peers: limited(l.Peers), IdlePeer: l.IdlePeer,
	}
	return p
}

// limited is nil for no limit.
func limited[T uint64 | int](n T) *uint64 {
	if n == 0 {
		return nil
	}
	v := uint64(n)
	return &v
}

// capNames lists what a provider can do.
func capNames(c fabric.Caps) []string {
	list := []string{}
	for i := range 64 {
		if bit := fabric.Caps(1) << i; c.Has(bit) {
			list = append(list, bit.String())
		}
	}
	return list
}
