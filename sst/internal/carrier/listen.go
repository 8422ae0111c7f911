package carrier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// PortRange is a range of TCP ports, both ends included. The zero PortRange means
// that the system chooses.
type PortRange struct{ First, Last uint16 }

// IsZero reports whether the system chooses.
func (r PortRange) IsZero() bool { return r == PortRange{} }

// String returns the range as ADIOS2 writes it: first:last.
func (r PortRange) String() string { return fmt.Sprintf("%d:%d", r.First, r.Last) }

// parsePortRange reads a range in ADIOS2's form, in either order.
func parsePortRange(s string) (PortRange, error) {
	one, other, _ := strings.Cut(s, ":")
	a, errA := strconv.ParseUint(one, 10, 16)
	b, errB := strconv.ParseUint(other, 10, 16)
	if errA != nil || errB != nil || a == 0 || b == 0 {
		return PortRange{}, fmt.Errorf("%w: port range %q is not of the form 26000:26100", ErrConfig, s)
	}
	return PortRange{uint16(min(a, b)), uint16(max(a, b))}, nil
}

// listen opens the listener. Of a range it takes a port at random, so that the
// processes of a host seldom try the same one, and then those that follow.
func (c *Config) listen(ctx context.Context) (*net.TCPListener, error) {
	lc := net.ListenConfig{KeepAliveConfig: c.keepAlive()}
	if c.ListenPorts.IsZero() {
		return listenOn(ctx, &lc, c.ListenAddr)
	}
	n := int(c.ListenPorts.Last) - int(c.ListenPorts.First) + 1
	start := rand.IntN(n)
	for i := range n {
		port := c.ListenPorts.First + uint16((start+i)%n)
		l, err := listenOn(ctx, &lc, netip.AddrPortFrom(c.ListenAddr.Addr(), port))
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
			return l, err
		}
	}
	return nil, fmt.Errorf("carrier: listen on %v: every port of %v is taken or refused: %w", c.ListenAddr.Addr(), c.ListenPorts, syscall.EADDRINUSE)
}

func listenOn(ctx context.Context, lc *net.ListenConfig, at netip.AddrPort) (*net.TCPListener, error) {
	l, err := lc.Listen(ctx, "tcp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("carrier: listen: %w", err)
	}
	return l.(*net.TCPListener), nil
}
