package tcp

import (
	"net"
	"net/netip"
	"testing"
)

// TestHostAddrs: whatever the host looks like, each address is its own, once, and
// one that others can use.
func TestHostAddrs(t *testing.T) {
	got := HostAddrs()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[netip.Addr]bool{}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			ours[p.Addr().Unmap()] = true
		}
	}
	for _, a := range got {
		if !ours[a] || a.IsLoopback() || a.Is6() && a.IsLinkLocalUnicast() {
			t.Errorf("%v in %v; this host has %v", a, got, all)
		}
		delete(ours, a)
	}
}

// TestHostAddrsRoutesFirst: who has a default route is known by its address.
func TestHostAddrsRoutesFirst(t *testing.T) {
	all := HostAddrs()
	for _, to := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		a := sourceFor(to)
		if !a.IsValid() {
			t.Logf("no route for %s", to)
			continue
		}
		if len(all) == 0 || all[0] != a {
			t.Fatalf("%v does not go on with %v", all, a)
		}
		all = all[1:]
	}
}

func TestSourceForNobody(t *testing.T) {
	for name, to := range map[string]string{"loopback": "127.0.0.1:9", "no port": "192.0.2.1"} {
		if a := sourceFor(to); a.IsValid() {
			t.Errorf("%s: %v", name, a)
		}
	}
}

func TestAddrPort(t *testing.T) {
	want := netip.MustParseAddrPort("10.1.2.3:4000")
	mapped := net.ParseIP("::ffff:10.1.2.3")
	for name, a := range map[string]net.Addr{
		"TCP":         &net.TCPAddr{IP: mapped.To4(), Port: 4000},
		"TCP, mapped": &net.TCPAddr{IP: mapped.To16(), Port: 4000},
		"UDP":         &net.UDPAddr{IP: mapped.To16(), Port: 4000},
	} {
		if got := AddrPort(a); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, a := range map[string]net.Addr{"nil": nil, "a pipe": &net.UnixAddr{Name: "x", Net: "unix"}} {
		if got := AddrPort(a); got.IsValid() || got.Port() != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
