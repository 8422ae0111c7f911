package loop

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// Name is the name of the provider.
const Name = "loop"

// The bounds of the provider.
const (
	version    = "1"
	injectMax  = 4 << 10   // bytes with Inject
	eagerLimit = 4 << 10   // longer messages stay with their sender until a receive takes them
	pieceBytes = 256 << 10 // copied while a lock is held
	maxPeers   = 1 << 20
)

// Provider is a network of endpoints within the process. That of the list of providers is one; [New] makes others,
// whose endpoints do not see each other.
type Provider struct{ net network }

var _ provider.Provider = (*Provider)(nil)

func init() { provider.Register(New()) }

// New makes a network of its own, which is not in the list of providers: for tests that want one for themselves.
func New() *Provider { return &Provider{net: newNetwork()} }

// Name is "loop".
func (p *Provider) Name() string { return Name }

// Discover describes the one domain, which is always usable.
func (p *Provider) Discover(context.Context) ([]provider.Info, error) {
	return []provider.Info{describe()}, nil
}

func describe() provider.Info {
	caps := provider.Msg | provider.Tagged | provider.RMA | provider.Atomics | provider.RemoteCQData | provider.MultiRecv |
		provider.DirectedRecv | provider.Source | provider.Arena // and neither LocalComm nor RemoteComm: it reaches its own process
	views := viewsFeature()
	if views.On {
		caps |= provider.Views
	}
	return provider.Info{
		Provider: Name, Version: version, Domain: "process", Usable: true,
		Caps:     caps,
		Progress: []provider.Progress{provider.Auto, provider.Manual},
		Memory:   provider.MemoryMode{ProviderKey: true},
		Limits: provider.Limits{
			Inject: injectMax, Segments: 16, Remotes: 16, AtomicLen: maxAtomic, TagBits: 64, DataBytes: 8, KeyBytes: 8, Peers: maxPeers,
			IdlePeer: 1 << 10,
		},
		Address:  "loop://NAME",
		Features: []provider.Feature{views},
	}
}

// OpenDomain opens a domain of the network.
func (p *Provider) OpenDomain(info provider.Info, c provider.DomainConfig) (provider.Domain, error) {
	if info.Provider != "" && info.Provider != Name {
		return nil, p.fail("open domain", fmt.Errorf("the description is of %s: %w", info.Provider, provider.ErrInvalid))
	}
	if c.Progress != provider.Auto && c.Progress != provider.Manual {
		return nil, p.fail("open domain", fmt.Errorf("no progress mode has the number %d: %w", c.Progress, provider.ErrInvalid))
	}
	d := &domain{net: &p.net, info: describe(), eager: eagerLimit, limit: c.Memory}
	options := provutil.Options{"eager": provutil.SizeOption(&d.eager, 0, 1<<20)}
	if err := options.Set(c.Options); err != nil {
		return nil, p.fail("open domain", err)
	}
	d.open(c)
	return d, nil
}

// Kill makes the endpoint at an address die as if its process had been killed: at once and without a word. Its
// peers see it gone; its own operations end with ErrClosed, which a killed process would not see. False if
// nobody is there.
func (p *Provider) Kill(a provider.Address) bool {
	ep := p.net.find(a)
	if ep == nil {
		return false
	}
	ep.shut(errKilled)
	return true
}

var errKilled = fmt.Errorf("%w: it was killed", provider.ErrPeerGone)

func (p *Provider) fail(op string, err error) error {
	return provutil.OpError(op, Name, "", err)
}
