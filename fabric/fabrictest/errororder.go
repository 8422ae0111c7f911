package fabrictest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-fabric/weft/fabric/provider"
)

// outOfOrder says of the error of an operation if it does not say things in the order that package provider asks for: what
// became of a peer before the reason, what makes no sense or goes too far before that it does.
func outOfOrder(err error) error {
	oe, ok := errors.AsType[*provider.OpError](err)
	if !ok {
		return nil
	}
	head := (&provider.OpError{Op: oe.Op, Provider: oe.Provider, Addr: oe.Addr, Err: errors.New("")}).Error()
	_, text, _ := strings.Cut(err.Error(), head)
	if errors.Is(err, provider.ErrPeerGone) || errors.Is(err, provider.ErrUnreachable) || errors.Is(err, provider.ErrProtocol) {
		for _, s := range []error{provider.ErrPeerGone, provider.ErrUnreachable, provider.ErrProtocol} {
			if strings.HasPrefix(text, s.Error()) {
				return nil
			}
		}
		return fmt.Errorf("what became of the peer does not come first in %q", err)
	}
	for _, s := range []error{provider.ErrInvalid, provider.ErrTooLong, provider.ErrKey} {
		if errors.Is(err, s) && !strings.HasSuffix(text, s.Error()) {
			return fmt.Errorf("%q does not come last in %q", s, err)
		}
	}
	return nil
}
