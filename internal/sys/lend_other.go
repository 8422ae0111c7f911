//go:build !linux

package sys

import "errors"

// CanLend says that a Lender works on this system.
const CanLend = false

// Lender is not available here.
type Lender struct{}

// NewLender is not available here.
func NewLender() (*Lender, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Lender) Close() {}

// WriteNow is not available here.
func (*Lender) WriteNow(uintptr, []byte) (n int, again bool, err error) {
	return 0, false, errors.ErrUnsupported
}
