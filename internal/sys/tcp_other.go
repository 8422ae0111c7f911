//go:build !linux

package sys

import (
	"errors"
	"syscall"
)

// QuickAck is not available here.
func QuickAck(syscall.RawConn) error { return errors.ErrUnsupported }
