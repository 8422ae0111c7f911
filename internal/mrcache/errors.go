package mrcache

import (
	"errors"
	"syscall"
)

var (
	// ErrEmpty refuses memory of no bytes.
	ErrEmpty = errors.New("mrcache: no memory to register")
	// ErrRemapped says that memory became other memory while it was registered: what the operation sent or wrote is not to be trusted.
	ErrRemapped = errors.New("mrcache: the memory changed while it was in use")
	// ErrClosed ends the use of a cache that was closed.
	ErrClosed = errors.New("mrcache: closed")
	// ErrConfig is a configuration that makes no sense.
	ErrConfig = errors.New("mrcache: configuration")
)

// IsShortage says whether registering failed because too much is registered, or for want of memory.
func IsShortage(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EAGAIN)
}
