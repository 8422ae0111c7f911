package shm

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
)

// fail names the operation, the provider and the peer.
func fail(op string, a provider.Address, err error) error { return provutil.OpError(op, Name, a, err) }

// systemError adds what a program can test for to what the kernel said.
func systemError(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.ENOSPC),
		errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w: %w", provider.ErrNoMemory, err)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%w: nobody listens there: %w", provider.ErrUnreachable, err)
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET): // it closed between our call and our first word
		return fmt.Errorf("%w: it has gone before it answered: %w", provider.ErrUnreachable, err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: another endpoint has this name: %w", provider.ErrBusy, err)
	}
	return err
}

// statusError is the error that a status of the peer stands for.
func statusError(status uint16) error {
	switch status {
	case statusOK:
		return nil
	case statusKey:
		return fmt.Errorf("the peer refuses the key, the range or the access: %w", provider.ErrKey)
	case statusNotSupported:
		return fmt.Errorf("the peer does not support it for this memory: %w", provider.ErrNotSupported)
	case statusLimit:
		return fmt.Errorf("the peer has no room for it: %w", provider.ErrNoMemory)
	}
	return provider.ErrPeerGone
}
