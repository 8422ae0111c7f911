package cohort

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// candidates returns the addresses under which other hosts, and this one, may
// reach a port of this host, the likely ones first. Who dials tries one after the
// other, without waiting for the end of each, and knows the right one by its
// greeting, so that one too many does no harm: that of a bridge, say, which exists
// on every host.
func candidates(port int, node string) []string {
	var hosts []string
	add := func(host string) {
		if host != "" && !slices.Contains(hosts, host) && len(hosts) < maxAddresses {
			hosts = append(hosts, host)
		}
	}
	for _, network := range []string{"udp4", "udp6"} {
		add(routeAddr(network))
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if ip := p.Addr().Unmap(); !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && len(hosts) < maxAddresses-2 {
			add(ip.String())
		}
	}
	add(node)
	add("127.0.0.1")
	for i, h := range hosts {
		hosts[i] = net.JoinHostPort(h, strconv.Itoa(port))
	}
	return hosts
}

// routeAddr asks the kernel which source address the default route has. The
// destinations are documentation addresses (RFC 5737, RFC 3849); connecting a UDP
// socket sends nothing.
func routeAddr(network string) string {
	to := "192.0.2.1:9"
	if network == "udp6" {
		to = "[2001:db8::1]:9"
	}
	conn, err := net.Dial(network, to)
	if err != nil {
		return ""
	}
	defer conn.Close()
	a, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok || a.IP.IsUnspecified() || a.IP.IsLoopback() || a.IP.IsLinkLocalUnicast() {
		return ""
	}
	return a.IP.String()
}
