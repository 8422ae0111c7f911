package sst

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/sst/internal/carrier"
)

// contactVia is the contact of an endpoint with the address of a named interface.
func contactVia(c *carrier.CM, iface string) (cm.Contact, error) {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, err
	}
	addrs, err := i.Addrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap().Is4() {
			return c.Contact().WithAddr(p.Addr().Unmap())
		}
	}
	return nil, fmt.Errorf("interface %q has no IPv4 address", iface)
}
