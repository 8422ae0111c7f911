//go:build !linux

package sys

// Anonymous is not available here.
type Anonymous struct{}

// MapAnonymous is not available here.
func MapAnonymous(int) (*Anonymous, error) { return nil, ErrNotSupported }

// MapAnonymousAt is not available here.
func MapAnonymousAt(uint64, int) (a *Anonymous, taken bool, err error) {
	return nil, false, ErrNotSupported
}

// Bytes is nothing.
func (*Anonymous) Bytes() []byte { return nil }

// MapOver is not available here.
func (*Anonymous) MapOver() error { return ErrNotSupported }

// Move is not available here.
func (*Anonymous) Move() error { return ErrNotSupported }

// Free is not available here.
func (*Anonymous) Free() error { return ErrNotSupported }

// Forbid is not available here.
func (*Anonymous) Forbid() error { return ErrNotSupported }

// Close does nothing.
func (*Anonymous) Close() error { return nil }

// Claim is not available here.
func Claim(uint64, *FD, int) (b []byte, taken bool, err error) { return nil, false, ErrNotSupported }

// BytesAt is nothing.
func BytesAt(uint64, int) []byte { return nil }
