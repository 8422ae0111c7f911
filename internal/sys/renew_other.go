//go:build !linux

package sys

import "errors"

// AdviseHuge does nothing.
func AdviseHuge([]byte) {}

// NewPages is not available here.
func NewPages([]byte) error { return errors.ErrUnsupported }
