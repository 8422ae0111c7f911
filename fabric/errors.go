package fabric

import (
	"context"
	"errors"
	"fmt"
)

// asOpError puts an error into the form that all have, unless it has it.
func asOpError(op, provider string, a Address, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*OpError](err); ok {
		return err
	}
	return &OpError{Op: op, Provider: provider, Addr: a, Err: err}
}

func (d *Domain) fail(op string, err error) error { return asOpError(op, d.name, "", err) }

// failPeer is fail for what concerns a peer, whose address is asked for only then.
func (d *Domain) failPeer(op string, p Peer, err error) error {
	if err == nil {
		return nil
	}
	var a Address
	if p != 0 {
		a, _ = d.inner.Address(p) // a peer that is not known has no address to tell
	}
	return asOpError(op, d.name, a, err)
}

// fmtNotSupported says what cannot be done here.
func fmtNotSupported(why string) error { return fmt.Errorf("%s: %w", why, ErrNotSupported) }

// closed says which object was closed.
func closed(what string) error { return fmt.Errorf("the %s: %w", what, ErrClosed) }

// invalid says what makes no sense.
func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args[:len(args):len(args)], ErrInvalid)...)
}

// errNoContext refuses a wait that nothing could end.
var errNoContext = invalid("the context is nil")

// ends are the errors by which a call of an object ends in the ordinary run of things, made before: they allocate nothing.
type ends struct {
	closed, signal, cancelled, late *OpError
}

func (d *Domain) endings(op string) ends {
	made := func(err error) *OpError { return &OpError{Op: op, Provider: d.name, Err: err} }
	return ends{made(ErrClosed), made(ErrSignal), made(context.Canceled), made(context.DeadlineExceeded)}
}

// of gives an error the form that all have.
func (e *ends) of(err error) error {
	switch err {
	case nil:
		return nil
	case ErrClosed: //nolint:errorlint // only the bare ones lack the form
		return e.closed
	case ErrSignal:
		return e.signal
	case context.Canceled:
		return e.cancelled
	case context.DeadlineExceeded:
		return e.late
	}
	return asOpError(e.closed.Op, e.closed.Provider, "", err)
}
