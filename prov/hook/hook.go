package hook

import (
	"context"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// Hook is a provider around another one.
type Hook struct {
	inner  provider.Provider
	c      Config
	bad    error // what is wrong with the configuration
	faults *faults
	stats  numbers

	mu      sync.Mutex
	domains map[*domain]struct{} // that are open
}

// Wrap makes a provider that does what p does, and what the configuration adds. If the configuration makes no sense,
// opening a domain says so.
func Wrap(p provider.Provider, c Config) *Hook {
	c.Rules = slices.Clone(c.Rules)
	h := &Hook{inner: p, c: c, bad: c.check(), domains: make(map[*domain]struct{})}
	h.faults = newFaults(c.Seed, c.Rules)
	h.stats.ops = make(map[provider.Kind]*OpStats)
	return h
}

// Name is that of the configuration, or of the wrapped provider.
func (h *Hook) Name() string {
	if h.c.Name != "" {
		return h.c.Name
	}
	return h.inner.Name()
}

// Discover describes the wrapped provider under the name of the hook.
func (h *Hook) Discover(ctx context.Context) ([]provider.Info, error) {
	infos, err := h.inner.Discover(ctx)
	list := slices.Clone(infos)
	for i := range list {
		list[i].Provider = h.Name()
	}
	return list, err
}

// OpenDomain opens a domain of the wrapped provider.
func (h *Hook) OpenDomain(info provider.Info, c provider.DomainConfig) (provider.Domain, error) {
	if h.bad != nil {
		return nil, h.opError("open domain", "", h.bad)
	}
	if err := h.call(OpenDomain, "open domain"); err != nil {
		return nil, err
	}
	info.Provider = h.inner.Name()
	c.Options = h.c.options(c.Options)
	if h.c.Logger != nil {
		c.Tracer = Tee(c.Tracer, Log(h.c.Logger))
	}
	c.Tracer = Tee(c.Tracer, h.c.Tracer)
	inner, err := h.inner.OpenDomain(info, c)
	if err != nil {
		return nil, err
	}
	d := &domain{
		Domain: inner, hook: h, tracer: Tee(c.Tracer, &provider.Tracer{}),
		killed: make(map[provider.Peer]provider.Address), ends: make(map[*endpoint]struct{}), queues: make(map[*queue]struct{}),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.domains[d] = struct{}{}
	return d, nil
}

// Kill makes the peers with an address look dead in every open domain, as a Rule with Kill does. It says how many there were.
func (h *Hook) Kill(a provider.Address) int {
	h.mu.Lock()
	domains := make([]*domain, 0, len(h.domains))
	for d := range h.domains {
		domains = append(domains, d)
	}
	h.mu.Unlock()
	n := 0
	for _, d := range domains {
		for _, p := range d.Domain.Peers() {
			if p.Address == a && p.State != "gone" && d.kill(p.Peer) {
				n++
			}
		}
	}
	return n
}

// Stats are the numbers since Wrap. They may be read at any time.
func (h *Hook) Stats() Stats { return Stats{Ops: h.stats.snapshot(), Acted: h.faults.counts()} }

// call asks the rules of a call that is no post.
func (h *Hook) call(p Point, op string) error {
	v := h.faults.at(p)
	pause(v.delay)
	if v.err != nil {
		return h.opError(op, "", v.err)
	}
	return nil
}

func (h *Hook) opError(op string, a provider.Address, err error) error {
	return provutil.OpError(op, h.Name(), a, err)
}
