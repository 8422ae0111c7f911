package carrier

import (
	"fmt"
	"net"
	"net/netip"
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

// hostAddr guesses the address under which this host is known: the source
// address of its default route, else that of its first interface that is up and
// not loopback, else loopback.
func hostAddr() netip.Addr {
	if a, ok := routeAddr(); ok {
		return a
	}
	all, _ := hostInterfaces()
	for _, ifc := range all {
		for _, a := range ifc.addrs {
			if ifc.up && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
				return a
			}
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// routeAddr asks the kernel which source address the default route has. The
// destination is a documentation address (RFC 5737); connecting a UDP socket
// sends nothing.
func routeAddr() (netip.Addr, bool) {
	conn, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return netip.Addr{}, false
	}
	defer conn.Close()
	a := addrPort(conn.LocalAddr()).Addr()
	return a, a.Is4() && !a.IsUnspecified() && !a.IsLoopback()
}

// addrPort turns a network address into a comparable one, IPv4 unmapped.
func addrPort(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.TCPAddr:
		p := a.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	case *net.UDPAddr:
		p := a.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}
