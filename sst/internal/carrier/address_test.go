package carrier

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// cluster is a host with several networks.
func cluster() []hostInterface {
	return []hostInterface{
		{name: "lo", up: true, addrs: addrs("127.0.0.1")},
		{name: "eth0", up: true, addrs: addrs("10.1.2.3", "10.9.0.1")},
		{name: "ib0", up: true, addrs: addrs("10.2.2.3")},
		{name: "ib10", up: true, addrs: addrs("10.3.2.3")},
		{name: "ib1", up: true, addrs: addrs("10.4.2.3")},
		{name: "tun0", up: true},
		{name: "tun01", up: true, addrs: addrs("10.5.0.1")},
		{name: "eth1", addrs: addrs("10.6.0.1")},
	}
}

func TestChooseAddr(t *testing.T) {
	for spec, want := range map[string]string{
		"lo":              "127.0.0.1",
		"eth0":            "10.1.2.3",
		"eth1":            "10.6.0.1", // down, but asked for
		"10.9.0.1":        "10.9.0.1",
		"::ffff:10.2.2.3": "10.2.2.3",
		"10.2.0.0/16":     "10.2.2.3",
		"10.9.0.77/24":    "10.9.0.1", // bits behind the prefix do not matter
		"10.9.0.1/32":     "10.9.0.1",
		"0.0.0.0/0":       "127.0.0.1",
		"ib":              "10.2.2.3", // the beginning of a name, the first
		"ib1":             "10.4.2.3", // a whole name goes before the beginning of another
		"e":               "10.1.2.3",
	} {
		if got, err := chooseAddr(spec, cluster()); err != nil || got.String() != want {
			t.Errorf("%q: %v, %v; want %s", spec, got, err, want)
		}
	}
}

func TestChooseAddrRefused(t *testing.T) {
	for spec, want := range map[string]string{
		"ib7":            "no interface of this name",
		"":               "no interface of this name",
		"tun0":           "no IPv4 address", // tun01 is not meant
		"192.168.1.1":    "not an IPv4 address of this host",
		"192.168.0.0/16": "no address lies in this prefix",
		"fe80::1":        "not an IPv4 address of this host",
		"fe80::/10":      "no address lies in this prefix",
	} {
		_, err := chooseAddr(spec, cluster())
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", spec, err)
			continue
		}
		for _, has := range []string{"lo 127.0.0.1", "eth0 10.1.2.3 10.9.0.1", "tun0 without IPv4", "eth1 (down) 10.6.0.1"} {
			if !strings.Contains(err.Error(), has) {
				t.Errorf("%q: the error does not list %q: %v", spec, has, err)
			}
		}
	}
	if _, err := chooseAddr("lo", nil); err == nil || !strings.Contains(err.Error(), "has none") {
		t.Errorf("no interface at all: %v", err)
	}
}

func TestHostInterfaces(t *testing.T) {
	all, err := hostInterfaces()
	if err != nil {
		t.Fatal(err)
	}
	wasDown := false
	for _, i := range all {
		if i.up && wasDown {
			t.Errorf("%v comes behind one that is down", i)
		}
		wasDown = wasDown || !i.up
	}
	if a, err := chooseAddr("127.0.0.0/8", all); err != nil || a != loopback {
		t.Errorf("%v, %v in %v", a, err, all)
	}
}

func TestInterfaceForms(t *testing.T) {
	for _, spec := range []string{"lo", "127.0.0.1", "127.0.0.0/8", "l"} {
		if _, addr := publishedBy(t, Config{Interface: spec}); addr.Addr() != loopback {
			t.Errorf("%q: %v", spec, addr)
		}
	}
}

func TestContactVia(t *testing.T) {
	c, _ := open(t, Config{AdvertisePort: 4000, ListenAddr: netip.MustParseAddrPort("0.0.0.0:0")})
	for _, spec := range []string{"lo", "127.0.0.1", "127.0.0.0/8"} {
		contact, err := c.ContactVia(spec)
		if err != nil {
			t.Fatal(err)
		}
		addr, err := contact.Addr()
		if err != nil || addr != netip.AddrPortFrom(loopback, 4000) {
			t.Errorf("%q: %v, %v", spec, addr, err)
		}
		if id, _ := contact.CMID(); id != c.id {
			t.Errorf("CM ID %#x", id)
		}
		if _, ok := contact.Mark(); !ok {
			t.Error("no mark")
		}
	}
	if contact, err := c.ContactVia(""); err != nil || contact.String() != c.Contact().String() {
		t.Errorf("no interface named: %v", err)
	}
	if _, err := c.ContactVia("no-such-if0"); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("%v", err)
	}
	tunnel, _ := open(t, Config{AdvertiseAddr: netip.MustParseAddr("10.9.8.7"), ListenAddr: netip.MustParseAddrPort("0.0.0.0:0")})
	if contact, err := tunnel.ContactVia("lo"); err != nil || contact.String() != tunnel.Contact().String() {
		t.Errorf("the advertised address does not win: %v", err)
	}
	bound, _ := open(t, Config{ListenAddr: netip.MustParseAddrPort("127.0.0.9:0")})
	if _, err := bound.ContactVia("lo"); !errors.Is(err, ErrConfig) {
		t.Errorf("an address on which nobody listens: %v", err)
	}
}

// TestAdvertisePort has a peer come through a tunnel that maps another port to
// ours, and sees that real peers get the published port in the preamble.
func TestAdvertisePort(t *testing.T) {
	h := newHost(t) // stands for the far end of the tunnel
	c, r := open(t, Config{AdvertiseAddr: loopback, AdvertisePort: h.addr().Port()})
	addr, err := c.Contact().Addr()
	if err != nil || addr != h.addr() {
		t.Fatalf("%v, %v", addr, err)
	}
	b, _ := open(t, Config{})
	wait := dialAsync(t.Context(), b, c.Contact())
	in, err := h.ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("tcp4", netip.AddrPortFrom(loopback, c.port).String())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 2)
	for _, p := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			// Not from socket to socket: package net keeps pipes for that, which are no leak.
			_, _ = io.Copy(struct{ io.Writer }{p[1]}, p[0])
			_ = p[1].Close()
			done <- struct{}{}
		}()
	}
	d := next(t, "link", wait)
	if d.err != nil {
		t.Fatal(d.err)
	}
	_ = d.link.Close()
	next(t, "end", r.lost)
	next(t, "tunnel", done)
	next(t, "tunnel", done)

	x := newHost(t)
	wait = dialAsync(t.Context(), c, x.contact(77))
	p, pre, _ := x.accept()
	if pre.Port != h.addr().Port() {
		t.Errorf("the preamble names port %d", pre.Port)
	}
	p.send(hello(77, true).Append(nil))
	next(t, "link", wait)
	_ = p.conn.Close()
	next(t, "end", r.lost)
}

func TestParsePortRange(t *testing.T) {
	for s, want := range map[string]PortRange{"26000:26100": {26000, 26100}, "7:5": {5, 7}, "9:9": {9, 9}} {
		if got, err := parsePortRange(s); err != nil || got != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "26000", ":", "1:", ":1", "0:9", "1:65536", "-1:5", "1:2:3", "a:b", "1:2 "} {
		if got, err := parsePortRange(s); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	if s := (PortRange{26000, 26100}).String(); s != "26000:26100" {
		t.Error(s)
	}
}

func TestListenPorts(t *testing.T) {
	first, _ := open(t, Config{})
	one := PortRange{first.port, first.port}
	if _, err := NewCM(t.Context(), Config{Handler: newRecorder(), ListenAddr: first.config.ListenAddr, ListenPorts: one}); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), one.String()) {
		t.Errorf("a range that is taken: %v", err)
	}
	// Around a port that is taken there is one that is not.
	r := PortRange{first.port - 40, first.port + 40}
	c, _ := open(t, Config{ListenPorts: r})
	if c.port < r.First || c.port > r.Last || c.port == first.port {
		t.Errorf("port %d of %v", c.port, r)
	}
	if a, err := c.Contact().Addr(); err != nil || a.Port() != c.port {
		t.Errorf("%v, %v", a, err)
	}
	for name, config := range map[string]Config{
		"backwards": {ListenPorts: PortRange{7, 5}},
		"from 0":    {ListenPorts: PortRange{0, 5}},
		"both":      {ListenPorts: PortRange{5, 7}, ListenAddr: netip.MustParseAddrPort("127.0.0.1:6")},
	} {
		config.Handler = newRecorder()
		if _, err := NewCM(t.Context(), config); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What fails for another reason is not tried on every port.
	if _, err := NewCM(t.Context(), Config{Handler: newRecorder(), ListenPorts: r, ListenAddr: netip.MustParseAddrPort("192.0.2.1:0")}); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("%v", err)
	}
}

func TestFromEnv(t *testing.T) {
	env := map[string]string{"X_IP": "10.1.1.1", "X_INTERFACE": "ib", "X_PORT_RANGE": "26100:26000", "Y_INTERFACE": "eth0", "B1_IP": "node7", "B2_PORT_RANGE": "many"}
	for k, v := range env {
		t.Setenv(k, v)
	}
	ip := netip.MustParseAddr("10.1.1.1")
	for name, tt := range map[string]struct {
		prefix     string
		have, want Config
	}{
		"nothing set":          {"Z_", Config{Interface: "lo"}, Config{Interface: "lo"}},
		"the address is first": {"X_", Config{}, Config{AdvertiseAddr: ip, ListenPorts: PortRange{26000, 26100}}},
		"interface":            {"Y_", Config{}, Config{Interface: "eth0"}},
		"what is said counts":  {"X_", Config{Interface: "lo", ListenPorts: PortRange{1, 2}}, Config{Interface: "lo", ListenPorts: PortRange{1, 2}}},
		"a port that is said":  {"X_", Config{Interface: "lo", ListenAddr: netip.MustParseAddrPort("127.0.0.1:80")}, Config{Interface: "lo", ListenAddr: netip.MustParseAddrPort("127.0.0.1:80")}},
	} {
		got, err := tt.have.FromEnv(tt.prefix)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for prefix, name := range map[string]string{"B1_": "B1_IP", "B2_": "B2_PORT_RANGE"} {
		if _, err := (Config{}).FromEnv(prefix); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}
