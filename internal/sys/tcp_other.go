//go:build !linux

package sys

import (
	"errors"
	"syscall"
	"time"
)

// QuickAcker is not available here.
type QuickAcker struct{}

// NewQuickAcker fails.
func NewQuickAcker(syscall.RawConn) (*QuickAcker, error) { return nil, errors.ErrUnsupported }

// Acknowledge fails.
func (*QuickAcker) Acknowledge() error { return errors.ErrUnsupported }

// LimitRetries fails.
func LimitRetries(syscall.RawConn, time.Duration) error { return errors.ErrUnsupported }

// SetCongestion fails.
func SetCongestion(syscall.RawConn, string) error { return errors.ErrUnsupported }

// Unanswered fails.
func Unanswered(syscall.RawConn) (TCPUnanswered, error) {
	return TCPUnanswered{}, errors.ErrUnsupported
}
