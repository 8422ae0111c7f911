//go:build !unix

package sys

import (
	"errors"
	"os"
	"time"
)

// CanReadNow says that ReadNow works on this system.
const CanReadNow = false

// ReadNow is not available here.
func ReadNow(uintptr, []byte) (n int, again bool, err error) { return 0, false, errors.ErrUnsupported }

// CanWriteNow says that WriteNow works on this system.
const CanWriteNow = false

// WriteNow is not available here.
func WriteNow(uintptr, []byte) (n int, again bool, err error) { return 0, false, errors.ErrUnsupported }

// ProcessorTime is not available here.
func ProcessorTime() time.Duration { return 0 }

// DupFile is not available here.
func DupFile(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }
