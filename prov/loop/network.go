package loop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
)

// scheme starts every address.
const scheme = "loop://"

// maxName bounds the name of an endpoint.
const maxName = 100

// network is where endpoints find each other. Its lock is below those of the domains, and above those of their mailboxes.
type network struct {
	mu    *sync.Mutex
	names map[provider.Address]*endpoint
	pairs map[[2]*endpoint]*pair
}

func newNetwork() network {
	return network{new(sync.Mutex), make(map[provider.Address]*endpoint), make(map[[2]*endpoint]*pair)}
}

// add makes an endpoint known under its name, or under a random one.
func (n *network) add(ep *endpoint, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		given := name
		if given == "" {
			given = fmt.Sprintf("%016x", rand.Uint64())
		}
		a := provider.Address(scheme + given)
		if n.names[a] == nil {
			n.names[a] = ep
			ep.address = a
			return nil
		}
		if name != "" {
			return fmt.Errorf("the name %s is taken: %w", name, provider.ErrBusy)
		}
	}
}

func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("a name of %d bytes, the limit is %d: %w", len(name), maxName, provider.ErrInvalid)
	}
	for _, r := range name {
		if r <= ' ' || r > '~' || strings.ContainsRune("/?#%", r) {
			return fmt.Errorf("name %q: letters, digits and punctuation but / ? # %%: %w", name, provider.ErrInvalid)
		}
	}
	return nil
}

// parse checks an address.
func parse(a provider.Address) error {
	name, ok := strings.CutPrefix(string(a), scheme)
	if !ok || name == "" {
		return fmt.Errorf("address %q is not loop://NAME: %w", a, provider.ErrInvalid)
	}
	return checkName(name)
}

func (n *network) find(a provider.Address) *endpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names[a]
}

// join makes the pair of an endpoint and the one at an address, or finds it. side is ours in it. The other side is told
// of a new one.
func (n *network) join(ep *endpoint, to provider.Address) (p *pair, side int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	other := n.names[to]
	if other == nil || n.names[ep.address] != ep {
		return nil, 0, fmt.Errorf("%w: no endpoint has this name", provider.ErrUnreachable)
	}
	for side, key := range [2][2]*endpoint{{ep, other}, {other, ep}} {
		if p := n.pairs[key]; p != nil {
			return p, side, nil
		}
	}
	p = &pair{ends: [2]*endpoint{ep, other}}
	for i := range p.lanes {
		p.lanes[i].limit = p.ends[1-i].depth // the receiver's
	}
	n.pairs[p.ends] = p
	if other != ep {
		other.domain.mail.put(event{kind: newPair, pair: p, side: 1})
	}
	return p, 0, nil
}

// remove makes an endpoint unknown and its pairs gone. Peers are told before its name is free, so that they hear of the
// end before they hear of a successor.
func (n *network) remove(ep *endpoint, why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, p := range n.pairs {
		for side, end := range p.ends {
			if end != ep {
				continue
			}
			delete(n.pairs, key)
			if !p.down.Load() {
				p.why = why
				p.down.Store(true)
			}
			if other := p.ends[1-side]; other != ep {
				other.domain.mail.put(event{kind: gone, pair: p, side: 1 - side, err: why})
			}
		}
	}
	if n.names[ep.address] == ep {
		delete(n.names, ep.address)
	}
}
