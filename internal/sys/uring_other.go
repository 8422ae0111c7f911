//go:build !linux

package sys

// Uring is not available here.
type Uring struct{}

// NewUring is not available here.
func NewUring(int, int, Features) (*Uring, error) { return nil, ErrNotSupported }

// SetBuffer is not available here.
func (*Uring) SetBuffer(int, []byte) error { return ErrNotSupported }

// ClearBuffer is not available here.
func (*Uring) ClearBuffer(int) error { return ErrNotSupported }

// Submit is not available here.
func (*Uring) Submit(UringOp) error { return ErrNotSupported }

// Wait is not available here.
func (*Uring) Wait() (UringResult, error) { return UringResult{}, ErrNotSupported }

// Close does nothing.
func (*Uring) Close() error { return nil }
