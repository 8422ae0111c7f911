package fabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/suggest"
)

// Discover describes what the linked providers can do here, as far as it fits the hints. It opens nothing. What
// reaches furthest comes first: other nodes, then other processes, then this process alone; what is not usable
// comes last, and only with Hints.Unusable. If nothing fits, the error says of each provider why.
func Discover(ctx context.Context, h Hints) ([]Info, error) {
	providers, err := chosen(h.Provider)
	if err != nil {
		return nil, err
	}
	return discover(ctx, providers, h)
}

// DiscoverIn is Discover for a provider that is not linked under a name, such as one that package prov/hook has wrapped.
// Hints.Provider must be empty or its name.
func DiscoverIn(ctx context.Context, p provider.Provider, h Hints) ([]Info, error) {
	if h.Provider != "" && h.Provider != p.Name() {
		return nil, unknownProvider(h.Provider, []string{p.Name()})
	}
	return discover(ctx, []provider.Provider{p}, h)
}

func discover(ctx context.Context, providers []provider.Provider, h Hints) ([]Info, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	var infos []Info
	var refused []string
	for _, p := range providers {
		list, err := p.Discover(ctx)
		if ctx.Err() != nil {
			return nil, &OpError{Op: "discover", Provider: p.Name(), Err: context.Cause(ctx)}
		}
		if err != nil {
			list = []Info{{Provider: p.Name(), Why: err.Error()}}
		}
		for _, info := range list {
			if why := unfit(&info, h); why != "" {
				refused = append(refused, info.Provider+": "+why)
			} else {
				infos = append(infos, info)
			}
		}
	}
	if len(infos) == 0 {
		return nil, nothingFits(h, refused)
	}
	slices.SortStableFunc(infos, func(a, b Info) int { return cmp.Compare(rank(&a), rank(&b)) })
	return infos, nil
}

// unfit says why an offer does not meet the hints; "" if it does.
func unfit(info *Info, h Hints) string {
	if !info.Usable && !h.Unusable {
		return info.Why
	}
	// What cannot be used at all may not know what it could do.
	if lacks := h.Caps &^ info.Caps; lacks != 0 && (info.Usable || info.Caps != 0) {
		return "does not offer " + lacks.String()
	}
	return ""
}

// rank orders offers: the lowest is the best.
func rank(info *Info) int {
	switch {
	case !info.Usable:
		return 3
	case info.Caps.Has(RemoteComm):
		return 0
	case info.Caps.Has(LocalComm):
		return 1
	}
	return 2
}

func nothingFits(h Hints, refused []string) error {
	what := "nothing can be used here"
	if h.Caps != 0 {
		what = "nothing here offers " + h.Caps.String()
	}
	if len(refused) > 0 {
		what += ": " + strings.Join(refused, "; ")
	}
	return fmtNotSupported(what)
}

// errNoProvider is the mistake of everybody's first program.
var errNoProvider = errors.New(`fabric: no provider is linked: import _ "github.com/weft-fabric/weft/prov/all", or one of prov/*`)

// chosen lists the providers that are asked.
func chosen(name string) ([]provider.Provider, error) {
	all := provider.All()
	if len(all) == 0 {
		return nil, errNoProvider
	}
	if name == "" {
		return all, nil
	}
	if p, ok := provider.Lookup(name); ok {
		return []provider.Provider{p}, nil
	}
	names := make([]string, 0, len(all))
	for _, p := range all {
		names = append(names, p.Name())
	}
	return nil, unknownProvider(name, names)
}

// unknownProvider says what there is instead.
func unknownProvider(name string, names []string) error {
	hint := ""
	if near := suggest.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return invalid("no provider %q is linked, there are: %s%s", name, strings.Join(names, ", "), hint)
}
