package carrier

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// hostInterface is a network interface and its IPv4 addresses.
type hostInterface struct {
	name  string
	up    bool
	addrs []netip.Addr
}

// String lists the addresses behind the name.
func (i hostInterface) String() string {
	words := []string{i.name}
	if !i.up {
		words[0] += " (down)"
	}
	if len(i.addrs) == 0 {
		return words[0] + " without IPv4"
	}
	for _, a := range i.addrs {
		words = append(words, a.String())
	}
	return strings.Join(words, " ")
}

// hostInterfaces returns the interfaces of this host, those that are up first.
func hostInterfaces() ([]hostInterface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("%w: interfaces of this host: %w", ErrConfig, err)
	}
	out := make([]hostInterface, len(all))
	for i, ifc := range all {
		out[i] = hostInterface{name: ifc.Name, up: ifc.Flags&net.FlagUp != 0, addrs: ipv4Of(ifc)}
	}
	slices.SortStableFunc(out, func(x, y hostInterface) int { return cmp.Compare(down(x), down(y)) })
	return out, nil
}

func down(i hostInterface) int {
	if i.up {
		return 0
	}
	return 1
}

// ipv4Of returns the IPv4 addresses of an interface.
func ipv4Of(ifc net.Interface) []netip.Addr {
	addrs, err := ifc.Addrs()
	if err != nil {
		return nil // it has gone meanwhile
	}
	var out []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap().Is4() {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}

// chooseAddr returns the address of all that spec stands for: the name of an
// interface, one of its addresses, a prefix such as 10.1.0.0/16 that its address
// lies in, or, as ADIOS2 has it, the beginning of its name. The first that fits
// counts. The error says what there is.
func chooseAddr(spec string, all []hostInterface) (netip.Addr, error) {
	fits, what := interfaceSpec(spec)
	without := false
	for _, rule := range fits {
		for _, i := range all {
			for _, a := range i.addrs {
				if rule(i.name, a) {
					return a, nil
				}
			}
			without = without || i.name == spec && len(i.addrs) == 0
		}
		if without { // no other interface is meant
			what = "it has no IPv4 address"
			break
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: interface %q: %s; this host has %s", ErrConfig, spec, what, listInterfaces(all))
}

// interfaceSpec returns what an interface must be, the best rule first, and the
// text of an error if none is.
func interfaceSpec(spec string) (rules []func(name string, a netip.Addr) bool, what string) {
	if p, err := netip.ParsePrefix(spec); err == nil {
		p = p.Masked()
		return append(rules, func(_ string, a netip.Addr) bool { return p.Contains(a) }), "no address lies in this prefix"
	}
	if want, err := netip.ParseAddr(spec); err == nil {
		want = want.Unmap()
		return append(rules, func(_ string, a netip.Addr) bool { return a == want }), "not an IPv4 address of this host, which an advertised address need not be"
	}
	exact := func(name string, _ netip.Addr) bool { return name == spec }
	begins := func(name string, _ netip.Addr) bool { return spec != "" && strings.HasPrefix(name, spec) }
	return append(rules, exact, begins), "no interface of this name, and no address or prefix"
}

// listInterfaces is the part of an error that says what there is.
func listInterfaces(all []hostInterface) string {
	if len(all) == 0 {
		return "none"
	}
	texts := make([]string, len(all))
	for i, ifc := range all {
		texts[i] = ifc.String()
	}
	return strings.Join(texts, ", ")
}
