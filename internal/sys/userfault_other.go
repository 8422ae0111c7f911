//go:build !linux || !(amd64 || arm64)

package sys

// EventWords are not written here.
type EventWords struct {
	Begun, Done *uint64
	Slots       []uint64
	Wake        Eventfd
}

// CanUserfault says that nobody can.
func CanUserfault() error { return ErrNotSupported }

// Userfault is not available here.
type Userfault struct{}

// NewUserfault is not available here.
func NewUserfault(EventWords) (*Userfault, error) { return nil, ErrNotSupported }

// Err says that nothing is watched.
func (*Userfault) Err() error { return ErrNotSupported }

// Watch is not available here.
func (*Userfault) Watch(addr, n uint64) error { return ErrNotSupported }

// Unwatch is not available here.
func (*Userfault) Unwatch(addr, n uint64) error { return ErrNotSupported }

// Watched is false.
func (*Userfault) Watched(addr, n uint64) (is, busy bool) { return false, false }

// End is not available here.
func (*Userfault) End() error { return ErrNotSupported }

// Close does nothing.
func (*Userfault) Close() error { return nil }
