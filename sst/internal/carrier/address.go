package carrier

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-fabric/weft/sst/internal/tcp"
)

// published returns the address that peers are told to dial. fixed says that it
// holds for all peers: somebody chose it, or we listen nowhere else; otherwise a
// peer may be told another one, the one under which it sees us.
func (c *Config) published() (addr netip.Addr, fixed bool, err error) {
	if c.AdvertiseAddr.IsValid() {
		return c.AdvertiseAddr, true, nil
	}
	if c.Interface != "" {
		addr, err = c.viaInterface(c.Interface)
		return addr, false, err
	}
	if listen := c.ListenAddr.Addr(); !listen.IsUnspecified() {
		return listen, true, nil
	}
	return hostAddr(), false, nil
}

// viaInterface returns the address of the interface that spec stands for, if
// peers are accepted there.
func (c *Config) viaInterface(spec string) (netip.Addr, error) {
	all, err := hostInterfaces()
	if err != nil {
		return netip.Addr{}, err
	}
	addr, err := chooseAddr(spec, all)
	if err != nil {
		return netip.Addr{}, err
	}
	if listen := c.ListenAddr.Addr(); !listen.IsUnspecified() && listen != addr {
		return netip.Addr{}, fmt.Errorf("%w: interface %q has address %v, but listening is restricted to %v", ErrConfig, spec, addr, listen)
	}
	return addr, nil
}

// hostAddr guesses the IPv4 address under which this host is known: the source
// address of its default route, else that of its first interface that is up and
// not loopback, else loopback.
func hostAddr() netip.Addr {
	all := tcp.HostAddrs()
	if i := slices.IndexFunc(all, netip.Addr.Is4); i >= 0 {
		return all[i]
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
