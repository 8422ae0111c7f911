package hook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// domain passes on, by embedding, what it has nothing to add to: counters.
type domain struct {
	provider.Domain
	hook   *Hook
	tracer *provider.Tracer // never nil
	again  atomic.Uint64    // posts that a rule refused with ErrAgain

	mu     sync.Mutex
	killed map[provider.Peer]provider.Address
	ends   map[*endpoint]struct{}
	queues map[*queue]struct{}
}

func (d *domain) Info() provider.Info {
	info := d.Domain.Info()
	info.Provider = d.hook.Name()
	return info
}

func (d *domain) OpenCompletionQueue(c provider.CQConfig) (provider.CompletionQueue, error) {
	inner, err := d.Domain.OpenCompletionQueue(c)
	if err != nil {
		return nil, err
	}
	q := newQueue(d, inner)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queues[q] = struct{}{}
	return q, nil
}

func (d *domain) OpenEndpoint(c provider.EndpointConfig) (provider.Endpoint, error) {
	const op = "open endpoint"
	if err := d.hook.call(OpenEndpoint, op); err != nil {
		return nil, err
	}
	e := &endpoint{d: d}
	for _, pair := range []struct {
		given *provider.CompletionQueue
		own   **queue
	}{{&c.Send, &e.send}, {&c.Recv, &e.recv}} {
		if *pair.given == nil {
			continue // what that means is the provider's to say
		}
		q, ok := (*pair.given).(*queue)
		if !ok || q.d != d {
			return nil, d.hook.opError(op, "", fmt.Errorf("a completion queue is of another domain: %w", provider.ErrInvalid))
		}
		*pair.own, *pair.given = q, q.CompletionQueue
	}
	inner, err := d.Domain.OpenEndpoint(c)
	if err != nil {
		return nil, err
	}
	e.Endpoint = inner
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends[e] = struct{}{}
	return e, nil
}

func (d *domain) Insert(a provider.Address) (provider.Peer, error) {
	if err := d.hook.call(Insert, "insert"); err != nil {
		return 0, err
	}
	return d.Domain.Insert(a)
}

func (d *domain) Address(p provider.Peer) (provider.Address, error) {
	if a, dead := d.dead(p); dead {
		return a, nil
	}
	return d.Domain.Address(p)
}

func (d *domain) Remove(p provider.Peer) error {
	d.mu.Lock()
	_, dead := d.killed[p]
	delete(d.killed, p)
	d.mu.Unlock()
	if dead {
		return nil // the provider has forgotten it already
	}
	a, err := d.Domain.Address(p)
	if err == nil {
		d.dropHeld(p, a, provider.ErrCancelled)
	}
	return d.Domain.Remove(p)
}

// kill makes a peer look dead. False if it is not known, or was dead before.
func (d *domain) kill(p provider.Peer) bool {
	a, err := d.Domain.Address(p)
	if err != nil {
		return false
	}
	d.mu.Lock()
	_, before := d.killed[p]
	d.killed[p] = a // before Remove, whose completions are told as deaths
	d.mu.Unlock()
	if before {
		return false
	}
	why := d.gone("peer", a)
	d.dropHeld(p, a, errKilled)
	if err := d.Domain.Remove(p); err != nil {
		return false
	}
	if d.tracer.PeerGone != nil {
		d.tracer.PeerGone(p, a, why)
	}
	return true
}

// dead gives the address of a peer that was killed.
func (d *domain) dead(p provider.Peer) (provider.Address, bool) {
	if p == 0 {
		return "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a, dead := d.killed[p]
	return a, dead
}

// deadAt is dead for who has only the address.
func (d *domain) deadAt(a provider.Address) (provider.Address, bool) {
	if a == "" {
		return "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, killed := range d.killed {
		if killed == a {
			return a, true
		}
	}
	return "", false
}

func (d *domain) gone(op string, a provider.Address) error {
	return d.hook.opError(op, a, errKilled)
}

var errKilled = fmt.Errorf("%w: a hook killed it", provider.ErrPeerGone)

// dropHeld ends the dropped posts towards a peer.
func (d *domain) dropHeld(p provider.Peer, a provider.Address, why error) {
	for _, e := range d.open() {
		e.finish(a, why, func(op *post) bool { return op.peer == p })
	}
}

func (d *domain) open() []*endpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.ends))
}

func (d *domain) Alloc(n int, a provider.Access) (provider.Memory, error) {
	if err := d.hook.call(Alloc, "allocate"); err != nil {
		return nil, err
	}
	return d.Domain.Alloc(n, a)
}

func (d *domain) Register(k memmon.Kind, a provider.Access) (provider.Memory, error) {
	if err := d.hook.call(Register, "register"); err != nil {
		return nil, err
	}
	return d.Domain.Register(k, a)
}

func (d *domain) View(ctx context.Context, p provider.Peer, k provider.Key, offset uint64, n int) (provider.View, error) {
	if err := d.hook.call(View, "view"); err != nil {
		return nil, err
	}
	if a, dead := d.dead(p); dead {
		return nil, d.gone("view", a)
	}
	return d.Domain.View(ctx, p, k, offset, n)
}

// Stats are those of the provider, and what a rule has refused.
func (d *domain) Stats() provider.Stats {
	s := d.Domain.Stats()
	s.Again += d.again.Load()
	return s
}

func (d *domain) Peers() []provider.PeerStats {
	list := d.Domain.Peers()
	d.mu.Lock()
	defer d.mu.Unlock()
	for p, a := range d.killed {
		list = append(list, provider.PeerStats{Peer: p, Address: a, State: "gone", Why: d.gone("peer", a)})
	}
	return list
}

func (d *domain) Close() error {
	err := d.Domain.Close()
	for _, e := range d.open() {
		e.ended()
	}
	d.mu.Lock()
	queues := slices.Collect(maps.Keys(d.queues))
	d.mu.Unlock()
	for _, q := range queues {
		q.stopForwarding()
	}
	d.hook.mu.Lock()
	defer d.hook.mu.Unlock()
	delete(d.hook.domains, d)
	return err
}
