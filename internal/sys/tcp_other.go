//go:build !linux

package sys

import (
	"errors"
	"syscall"
)

// QuickAcker is not available here.
type QuickAcker struct{}

// NewQuickAcker fails.
func NewQuickAcker(syscall.RawConn) (*QuickAcker, error) { return nil, errors.ErrUnsupported }

// Acknowledge fails.
func (*QuickAcker) Acknowledge() error { return errors.ErrUnsupported }
