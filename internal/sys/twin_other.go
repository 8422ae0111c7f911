//go:build !linux

package sys

// Twin is a second mapping of pages that are mapped already.
type Twin struct{}

// MapAgain says that it cannot.
func MapAgain([]byte) (*Twin, error) { return nil, ErrNotSupported }

// Bytes is the memory.
func (*Twin) Bytes() []byte { return nil }

// Fault takes the memory away.
func (*Twin) Fault() {}
