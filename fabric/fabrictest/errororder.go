package fabrictest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-fabric/weft/fabric/provider"
)

// outOfOrder says what is wrong if the error of an operation does not say things in the order that package provider asks for: what
// became of a peer stands before the reason, and that an argument is invalid, too long or no key after what it is about.
func outOfOrder(err error) string {
	oe, ok := errors.AsType[*provider.OpError](err)
	if !ok {
		return ""
	}
	head := (&provider.OpError{Op: oe.Op, Provider: oe.Provider, Addr: oe.Addr, Err: errors.New("")}).Error()
	_, text, _ := strings.Cut(err.Error(), head)
	if errors.Is(err, provider.ErrPeerGone) || errors.Is(err, provider.ErrUnreachable) || errors.Is(err, provider.ErrProtocol) {
		for _, s := range []error{provider.ErrPeerGone, provider.ErrUnreachable, provider.ErrProtocol} {
			if strings.HasPrefix(text, s.Error()) {
				return ""
			}
		}
		return fmt.Sprintf("what became of the peer does not come first in %q", err)
	}
	for _, s := range []error{provider.ErrInvalid, provider.ErrTooLong, provider.ErrKey} {
		if errors.Is(err, s) && !strings.HasSuffix(text, s.Error()) {
			return fmt.Sprintf("%q does not come last in %q", s, err)
		}
	}
	return ""
}
