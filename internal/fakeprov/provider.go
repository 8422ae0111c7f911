package fakeprov

import (
	"context"
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// Caps is what the provider does.
const Caps = provider.Msg | provider.Tagged | provider.RMA | provider.RemoteCQData | provider.Source | provider.Arena | provider.Views

// Provider is a network of its own: its endpoints reach each other.
type Provider struct {
	// Offer is what Discover describes. Changing it does not change what the provider does. Set it before first use.
	Offer provider.Info
	// Broken is what Discover fails with, if not nil.
	Broken error
	// Opened hears of the configuration of each domain, if not nil.
	Opened func(provider.DomainConfig)
	// Card moves the bytes of local buffers, if not nil. Set it before first use, and say in Offer that it needs them registered.
	Card Card

	name    string
	mu      sync.Mutex // guards everything below, of all domains
	ends    map[provider.Address]*endpoint
	serial  int
	nextKey provider.Key
}

// New makes a provider.
func New(name string) *Provider {
	return &Provider{
		name: name,
		ends: make(map[provider.Address]*endpoint),
		Offer: provider.Info{
			Provider: name, Version: "1", Domain: "process", Usable: true, Caps: Caps, Address: name + "://NAME",
			Progress: []provider.Progress{provider.Auto, provider.Manual}, Memory: provider.MemoryMode{ProviderKey: true},
			Limits: provider.Limits{Message: 1 << 20, RMA: 1 << 30, Inject: 64, Segments: 4, Remotes: 1, TagBits: 48, DataBytes: 8, KeyBytes: 8},
		},
	}
}

// Name is the name it was made with.
func (p *Provider) Name() string { return p.name }

// Discover describes Offer.
func (p *Provider) Discover(context.Context) ([]provider.Info, error) {
	if p.Broken != nil {
		return nil, p.Broken
	}
	return []provider.Info{p.Offer}, nil
}

// OpenDomain opens a domain.
func (p *Provider) OpenDomain(info provider.Info, c provider.DomainConfig) (provider.Domain, error) {
	if p.Opened != nil {
		p.Opened(c)
	}
	return &domain{
		net: p, info: info, tracer: c.Tracer, addrs: make(map[provider.Peer]provider.Address),
		peers: make(map[provider.Address]provider.Peer), mems: make(map[provider.Key]*memory),
	}, nil
}

type domain struct {
	net    *Provider
	info   provider.Info
	tracer *provider.Tracer
	addrs  map[provider.Peer]provider.Address
	peers  map[provider.Address]provider.Peer
	next   provider.Peer
	mems   map[provider.Key]*memory
	stats  provider.Stats
	closed bool
}

func (d *domain) Info() provider.Info { return d.info }

func (d *domain) OpenCompletionQueue(c provider.CQConfig) (provider.CompletionQueue, error) {
	q := &queue{d: d, size: c.Size, changed: make(chan struct{}), ready: make(chan struct{}, 1)}
	if q.size == 0 {
		q.size = 4096
	}
	return q, nil
}

func (d *domain) OpenCounter() (provider.Counter, error) {
	return &counter{d: d, changed: make(chan struct{})}, nil
}

func (d *domain) OpenEndpoint(c provider.EndpointConfig) (provider.Endpoint, error) {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	if c.Name == "" {
		d.net.serial++
		c.Name = fmt.Sprint("ep", d.net.serial)
	}
	e := &endpoint{d: d, addr: provider.Address(d.net.name + "://" + c.Name), send: c.Send.(*queue), recv: c.Recv.(*queue), counters: c.Counters}
	if _, taken := d.net.ends[e.addr]; taken {
		return nil, fmt.Errorf("%s: %w", e.addr, provider.ErrBusy)
	}
	d.net.ends[e.addr] = e
	return e, nil
}

func (d *domain) Insert(a provider.Address) (provider.Peer, error) {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	return d.peer(a), nil
}

// peer makes or finds the number of an address.
func (d *domain) peer(a provider.Address) provider.Peer {
	if p, ok := d.peers[a]; ok {
		return p
	}
	d.next++
	d.peers[a], d.addrs[d.next] = d.next, a
	return d.next
}

func (d *domain) Address(p provider.Peer) (provider.Address, error) {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	if a, ok := d.addrs[p]; ok {
		return a, nil
	}
	return "", fmt.Errorf("no peer %v: %w", p, provider.ErrInvalid)
}

func (d *domain) Remove(p provider.Peer) error {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	a, ok := d.addrs[p]
	if !ok {
		return fmt.Errorf("no peer %v: %w", p, provider.ErrInvalid)
	}
	delete(d.addrs, p)
	delete(d.peers, a)
	return nil
}

func (d *domain) Alloc(n int, a provider.Access) (provider.Memory, error) {
	return d.register(make([]byte, n), a)
}

func (d *domain) Register(k memmon.Kind, a provider.Access) (provider.Memory, error) {
	return d.register(k.Bytes(), a)
}

func (d *domain) register(b []byte, a provider.Access) (provider.Memory, error) {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	d.net.nextKey++
	m := &memory{d: d, bytes: b, key: d.net.nextKey, access: a}
	d.mems[m.key] = m
	return m, nil
}

func (d *domain) View(_ context.Context, p provider.Peer, k provider.Key, offset uint64, n int) (provider.View, error) {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	b, err := d.reach(p, k, offset, uint64(n), provider.PeerRead)
	if err != nil {
		return nil, err
	}
	d.stats.Views++
	return &view{d: d, bytes: b}, nil
}

// reach finds memory of a peer.
func (d *domain) reach(p provider.Peer, k provider.Key, offset, n uint64, a provider.Access) ([]byte, error) {
	e, err := d.end(p)
	if err != nil {
		return nil, err
	}
	m, ok := e.d.mems[k]
	if !ok || !m.access.Has(a) || offset > uint64(len(m.bytes)) || n > uint64(len(m.bytes))-offset {
		return nil, provider.ErrKey
	}
	return m.bytes[offset : offset+n], nil
}

// end finds the endpoint of a peer.
func (d *domain) end(p provider.Peer) (*endpoint, error) {
	if e, ok := d.net.ends[d.addrs[p]]; ok {
		return e, nil
	}
	return nil, &provider.OpError{Op: "connect", Provider: d.net.name, Addr: d.addrs[p], Err: provider.ErrUnreachable}
}

func (d *domain) Stats() provider.Stats {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	return d.stats
}

func (d *domain) Peers() []provider.PeerStats {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	var list []provider.PeerStats
	for p, a := range d.addrs {
		list = append(list, provider.PeerStats{Peer: p, Address: a, State: "connected", Path: "copy"})
	}
	return list
}

func (d *domain) Close() error {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	d.closed = true
	for _, e := range d.net.ends {
		if e.d == d {
			e.close()
		}
	}
	return nil
}

type memory struct {
	d      *domain
	bytes  []byte
	key    provider.Key
	access provider.Access
}

func (m *memory) Bytes() []byte                { return m.bytes }
func (m *memory) Key() provider.Key            { return m.key }
func (m *memory) Access() provider.Access      { return m.access }
func (m *memory) Refresh(uint64, uint64) error { return nil }
func (m *memory) Close() error {
	m.d.net.mu.Lock()
	defer m.d.net.mu.Unlock()
	delete(m.d.mems, m.key)
	return nil
}

type view struct {
	d     *domain
	bytes []byte
	once  sync.Once
}

func (v *view) Bytes() []byte { return v.bytes }
func (v *view) Release() {
	v.once.Do(func() {
		v.d.net.mu.Lock()
		defer v.d.net.mu.Unlock()
		v.d.stats.Views--
	})
}
