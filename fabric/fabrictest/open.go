package fabrictest

import (
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/fabric/provider"
)

// The suite speaks to a provider through these names only: what a program calls.
type (
	domain         = *fabric.Domain
	endpoint       = *fabric.Endpoint
	endpointConfig = fabric.EndpointConfig
	counters       = fabric.Counters
	queue          = *fabric.CompletionQueue
	counter        = *fabric.Counter
	memory         = *fabric.Memory
	view           = *fabric.View
)

// opener opens domains of the provider that is tested.
type opener struct {
	p       provider.Provider
	info    provider.Info
	options map[string]string

	patience time.Duration // bounds waits
	again    bool          // see Config
}

func (o opener) open(c provider.DomainConfig) (domain, error) {
	merged := make(map[string]string, len(o.options)+len(c.Options))
	for _, from := range []map[string]string{o.options, c.Options} {
		for name, value := range from {
			merged[name] = value
		}
	}
	c.Options = merged
	return fabric.OpenDomainIn(o.p, o.info, c)
}
