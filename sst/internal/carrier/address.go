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
	listen := c.ListenAddr.Addr()
	if c.Interface != "" {
		addr, err = interfaceAddr(c.Interface)
		if err == nil && !listen.IsUnspecified() && listen != addr {
			err = fmt.Errorf("%w: interface %s has address %v, but listening is restricted to %v", ErrConfig, c.Interface, addr, listen)
		}
		return addr, false, err
	}
	if !listen.IsUnspecified() {
		return listen, true, nil
	}
	return hostAddr(), false, nil
}

// interfaceAddr returns the first IPv4 address of a named interface.
func interfaceAddr(name string) (netip.Addr, error) {
	ifc, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w: interface %q: %w", ErrConfig, name, err)
	}
	if a, ok := firstIPv4(*ifc); ok {
		return a, nil
	}
	return netip.Addr{}, fmt.Errorf("%w: interface %q has no IPv4 address", ErrConfig, name)
}

// firstIPv4 returns the first IPv4 address of an interface.
func firstIPv4(ifc net.Interface) (netip.Addr, bool) {
	addrs, err := ifc.Addrs()
	if err != nil {
		return netip.Addr{}, false
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Unmap().Is4() {
			return p.Addr().Unmap(), true
		}
	}
	return netip.Addr{}, false
}

// hostAddr guesses the address under which this host is known: the source
// address of its default route, else that of its first interface that is up and
// not loopback, else loopback.
func hostAddr() netip.Addr {
	if a, ok := routeAddr(); ok {
		return a
	}
	interfaces, _ := net.Interfaces()
	for _, ifc := range interfaces {
		if ifc.Flags&net.FlagUp == 0 || ifc.Flags&net.FlagLoopback != 0 {
			continue
		}
		if a, ok := firstIPv4(ifc); ok && !a.IsLinkLocalUnicast() {
			return a
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
