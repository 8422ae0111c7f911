package provutil

import (
	"errors"

	"github.com/weft-fabric/weft/fabric/provider"
)

// OpError says of an error what was tried, through which provider, and towards whom; "" is nobody. An error that
// says so already stays as it is, so that no error says it twice. nil stays nil.
func OpError(op, name string, a provider.Address, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*provider.OpError](err); ok {
		return err
	}
	return &provider.OpError{Op: op, Provider: name, Addr: a, Err: err}
}
