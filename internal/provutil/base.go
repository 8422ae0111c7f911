package provutil

import (
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
)

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
