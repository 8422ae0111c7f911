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
		return graded(provider.ErrNoMemory, err)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return graded(provider.ErrUnreachable, fmt.Errorf("nobody listens there (names are per user and network namespace; the option folder spans these): %w", err))
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET): // it closed between our call and our first word
		return graded(provider.ErrUnreachable, fmt.Errorf("it has closed or died before it answered: %w", err))
	case errors.Is(err, syscall.EADDRINUSE):
		if errors.Is(err, provider.ErrBusy) {
			return err
		}
		return fmt.Errorf("another endpoint has this name: %w: %w", err, provider.ErrBusy)
	}
	return err
}

// graded makes as of err, unless it is that already: an error says each thing once.
func graded(as, err error) error {
	if errors.Is(err, as) {
		return err
	}
	return fmt.Errorf("%w: %w", as, err)
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
