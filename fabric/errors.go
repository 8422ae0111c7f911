package fabric

import (
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
func fmtNotSupported(why string) error { return fmt.Errorf("%w: %s", ErrNotSupported, why) }
