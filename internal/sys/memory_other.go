//go:build !linux

package sys

import "errors"

// MemoryLimit is not available here.
func MemoryLimit() (uint64, error) { return 0, errors.ErrUnsupported }
