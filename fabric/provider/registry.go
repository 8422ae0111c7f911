package provider

import (
	"maps"
	"slices"
	"sync"
)

var linked = struct {
	sync.Mutex
	by map[string]Provider
}{by: make(map[string]Provider)}

// Register adds a provider, from an init function of its package. It panics if the provider is nil
// or its name is taken: both are mistakes of the program.
func Register(p Provider) {
	if p == nil {
		panic("provider: Register of nil")
	}
	linked.Lock()
	defer linked.Unlock()
	if _, taken := linked.by[p.Name()]; taken {
		panic("provider: Register of " + p.Name() + " twice")
	}
	linked.by[p.Name()] = p
}

// Lookup finds a provider by its name.
func Lookup(name string) (Provider, bool) {
	linked.Lock()
	defer linked.Unlock()
	p, ok := linked.by[name]
	return p, ok
}

// All lists the providers by name.
func All() []Provider {
	linked.Lock()
	defer linked.Unlock()
	var all []Provider
	for _, name := range slices.Sorted(maps.Keys(linked.by)) {
		all = append(all, linked.by[name])
	}
	return all
}
