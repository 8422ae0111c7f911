package provutil

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// NoEndpoint refuses each operation of an endpoint with ErrNotSupported. A provider embeds it and implements what
// it can do.
type NoEndpoint struct {
	Provider string // its name, for the errors
}

func unsupported(name, what string) error {
	return OpError(what, name, "", provider.ErrNotSupported)
}

func unsupportedKind(name string, kind provider.Kind) error { return unsupported(name, kind.String()) }

// Send is not supported.
func (n NoEndpoint) Send(provider.Op) error { return unsupportedKind(n.Provider, provider.SendDone) }

// Recv is not supported.
func (n NoEndpoint) Recv(provider.Op) error { return unsupportedKind(n.Provider, provider.RecvDone) }

// SendTagged is not supported.
func (n NoEndpoint) SendTagged(provider.Op) error {
	return unsupportedKind(n.Provider, provider.TSendDone)
}

// RecvTagged is not supported.
func (n NoEndpoint) RecvTagged(provider.Op) error {
	return unsupportedKind(n.Provider, provider.TRecvDone)
}

// Read is not supported.
func (n NoEndpoint) Read(provider.Op) error { return unsupportedKind(n.Provider, provider.ReadDone) }

// Write is not supported.
func (n NoEndpoint) Write(provider.Op) error { return unsupportedKind(n.Provider, provider.WriteDone) }

// Atomic is not supported.
func (n NoEndpoint) Atomic(provider.Atomic) error {
	return unsupportedKind(n.Provider, provider.AtomicDone)
}

// Cancel finds nothing.
func (n NoEndpoint) Cancel(uint64) bool { return false }

// NoMemory refuses the memory calls of a domain with ErrNotSupported; to embed.
type NoMemory struct {
	Provider string // its name, for the errors
}

// Alloc is not supported.
func (n NoMemory) Alloc(int, provider.Access) (provider.Memory, error) {
	return nil, unsupported(n.Provider, "allocate")
}

// Register is not supported.
func (n NoMemory) Register(memmon.Kind, provider.Access) (provider.Memory, error) {
	return nil, unsupported(n.Provider, "register")
}

// View is not supported.
func (n NoMemory) View(context.Context, provider.Peer, provider.Key, uint64, int) (provider.View, error) {
	return nil, unsupported(n.Provider, "view")
}

// OwnCQ gives the CQ behind q if it belongs to c, and ErrInvalid if it is somebody else's. nil is nil.
func OwnCQ(c *Core, q provider.CompletionQueue) (*CQ, error) {
	if q == nil {
		return nil, nil
	}
	own, ok := q.(*CQ)
	if !ok || own.core != c {
		return nil, fmt.Errorf("completion queue of another domain: %w", provider.ErrInvalid)
	}
	return own, nil
}

// OwnCounter is OwnCQ for counters.
func OwnCounter(c *Core, n provider.Counter) (*Counter, error) {
	if n == nil {
		return nil, nil
	}
	own, ok := n.(*Counter)
	if !ok || own.core != c {
		return nil, fmt.Errorf("counter of another domain: %w", provider.ErrInvalid)
	}
	return own, nil
}
