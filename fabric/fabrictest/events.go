package fabrictest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
)

// events counts what a tracer hears. Its zero value is ready; the tracer may be called from any
// goroutine.
type events struct {
	mu    *sync.Mutex
	count map[string]int
}

func (e *events) tracer() *provider.Tracer {
	e.mu, e.count = new(sync.Mutex), make(map[string]int)
	mu, count := e.mu, e.count
	hear := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		count[what]++
	}
	return &provider.Tracer{
		Post: func(k provider.Kind, op *provider.Op, err error) {
			switch {
			case op == nil:
				hear("post without operation")
			case err != nil:
				hear("refused " + k.String())
			default:
				hear("post " + k.String())
			}
		},
		Complete: func(c *provider.Completion) {
			if c.Err != nil {
				hear("error " + c.Kind.String())
				return
			}
			hear("complete " + c.Kind.String())
		},
		PeerUp:   func(provider.Peer, provider.Address) { hear("up") },
		PeerGone: func(provider.Peer, provider.Address, error) { hear("gone") },
		Sleep:    func() { hear("sleep") },
		Wake:     func() { hear("wake") },
	}
}

// String is "name=count", by name, with blanks between.
func (e *events) String() string {
	if e.mu == nil {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for name, n := range e.count {
		names = append(names, fmt.Sprintf("%s=%d", name, n))
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}
