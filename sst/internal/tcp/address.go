package tcp

import (
	"net"
	"net/netip"
	"slices"
)

// HostAddrs returns the addresses under which other hosts may know this one, the
// likely ones first: the source addresses of its default routes, IPv4 before
// IPv6, then those of its interfaces that are up. Loopback is not among them, so
// that there may be none.
func HostAddrs() []netip.Addr {
	var out []netip.Addr
	for _, to := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		if a := sourceFor(to); a.IsValid() {
			out = append(out, a)
		}
	}
	for _, a := range interfaceAddrs() {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// sourceFor asks the kernel which source address a packet to a destination has,
// that of the default route for the documentation addresses (RFC 5737, RFC 3849):
// connecting a UDP socket sends nothing. The zero Addr means none of use.
func sourceFor(to string) netip.Addr {
	conn, err := net.Dial("udp", to)
	if err != nil {
		return netip.Addr{} // no route
	}
	defer conn.Close()
	a := AddrPort(conn.LocalAddr()).Addr()
	// A link-local IPv6 address says nothing without the zone, which is each
	// host's own.
	if a.IsUnspecified() || a.IsLoopback() || a.Is6() && a.IsLinkLocalUnicast() {
		return netip.Addr{}
	}
	return a
}

// interfaceAddrs returns the addresses of the interfaces that are up, but for
// loopback and those that hold on one link only.
func interfaceAddrs() []netip.Addr {
	all, _ := net.Interfaces() // none are as good as an error: we guess
	var out []netip.Addr
	for _, ifc := range all {
		if ifc.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, _ := ifc.Addrs() // an error means that it has gone meanwhile
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if ip := p.Addr().Unmap(); err == nil && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
				out = append(out, ip)
			}
		}
	}
	return out
}

// AddrPort turns a network address into a comparable one, IPv4 unmapped. What is
// neither TCP nor UDP gives the zero AddrPort.
func AddrPort(a net.Addr) netip.AddrPort {
	var p netip.AddrPort
	switch a := a.(type) {
	case *net.TCPAddr:
		p = a.AddrPort()
	case *net.UDPAddr:
		p = a.AddrPort()
	}
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}
