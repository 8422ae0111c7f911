//go:build !unix

package sys

import "errors"

// CanReadNow says that ReadNow works on this system.
const CanReadNow = false

// ReadNow is not available here.
func ReadNow(uintptr, []byte) (n int, again bool, err error) { return 0, false, errors.ErrUnsupported }
