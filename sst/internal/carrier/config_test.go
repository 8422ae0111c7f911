package carrier

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/wire/cm"
)

func TestConfigDefaults(t *testing.T) {
	c, err := Config{Handler: newRecorder()}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if c.HandshakeTimeout != 10*time.Second || c.MaxQueued != 65536 || c.Logger == nil || c.ListenAddr.String() != "0.0.0.0:0" {
		t.Errorf("%+v", c)
	}
	if k := c.keepAlive(); !k.Enable || k.Idle+time.Duration(k.Count)*k.Interval != 35*time.Second {
		t.Errorf("%+v", k)
	}
}

func TestConfigRefused(t *testing.T) {
	h := newRecorder()
	for name, config := range map[string]Config{
		"no handler":           {},
		"IPv6 listener":        {Handler: h, ListenAddr: netip.MustParseAddrPort("[::1]:0")},
		"IPv6 published":       {Handler: h, AdvertiseAddr: netip.MustParseAddr("fe80::1")},
		"nowhere published":    {Handler: h, AdvertiseAddr: netip.IPv4Unspecified()},
		"multicast published":  {Handler: h, AdvertiseAddr: netip.MustParseAddr("224.0.0.1")},
		"no such interface":    {Handler: h, Interface: "no-such-if0"},
		"interface not served": {Handler: h, Interface: "lo", ListenAddr: netip.MustParseAddrPort("127.0.0.9:0")},
	} {
		if c, err := NewCM(t.Context(), config); !errors.Is(err, ErrConfig) || c != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	taken := newHost(t)
	if _, err := NewCM(t.Context(), Config{Handler: h, ListenAddr: taken.addr()}); err == nil || errors.Is(err, ErrConfig) {
		t.Errorf("a port that is taken: %v", err)
	}
}

func publishedBy(t *testing.T, config Config) (*CM, netip.AddrPort) {
	t.Helper()
	config.Handler = newRecorder()
	c, err := NewCM(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	contact, err := cm.ParseContact(c.Contact().String())
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := contact.CMID(); !ok || id != c.id {
		t.Errorf("CM ID %#x, %v", id, ok)
	}
	if v, ok := contact.Mark(); !ok || v != cm.WeftVersion {
		t.Errorf("mark %d, %v", v, ok)
	}
	addr, err := contact.Addr()
	if err != nil || addr.Port() != c.port {
		t.Errorf("%v, %v", addr, err)
	}
	return c, addr
}

func TestPublishedAddress(t *testing.T) {
	for name, tt := range map[string]struct {
		config Config
		want   string
		fixed  bool
	}{
		"explicit":            {Config{AdvertiseAddr: netip.MustParseAddr("10.9.8.7")}, "10.9.8.7", true},
		"explicit, mapped":    {Config{AdvertiseAddr: netip.MustParseAddr("::ffff:10.9.8.7")}, "10.9.8.7", true},
		"explicit wins":       {Config{AdvertiseAddr: netip.MustParseAddr("10.9.8.7"), Interface: "lo"}, "10.9.8.7", true},
		"interface":           {Config{Interface: "lo"}, "127.0.0.1", false},
		"interface, all":      {Config{Interface: "lo", ListenAddr: netip.MustParseAddrPort("0.0.0.0:0")}, "127.0.0.1", false},
		"restricted listener": {Config{ListenAddr: netip.MustParseAddrPort("127.0.0.3:0")}, "127.0.0.3", true},
	} {
		c, addr := publishedBy(t, tt.config)
		if addr.Addr().String() != tt.want || c.fixed != tt.fixed {
			t.Errorf("%s: %v, fixed %v", name, addr, c.fixed)
		}
	}
	_, addr := publishedBy(t, Config{})
	if a := addr.Addr(); a.IsUnspecified() || !a.Is4() {
		t.Errorf("guessed %v", a)
	}
}

// TestGuessedAddressIsOurs: whatever the host looks like, it can be listened on.
func TestGuessedAddressIsOurs(t *testing.T) {
	a := hostAddr()
	ln, err := net.Listen("tcp4", netip.AddrPortFrom(a, 0).String())
	if err != nil {
		t.Fatalf("%v is not an address of this host: %v", a, err)
	}
	_ = ln.Close()
}

func TestContactFor(t *testing.T) {
	f := testFormat(t, "F")
	// Published under one address, reached from another: the peer is told the one
	// it sees.
	wide, _ := open(t, Config{ListenAddr: netip.MustParseAddrPort("0.0.0.0:0")})
	b, rb := open(t, Config{})
	l := dial(t, wide, b.Contact())
	_ = l.Send(record(f, 1, 1))
	seen := next(t, "record", rb.got).link.Info().Remote.Addr()
	addr, err := wide.ContactFor(l).Addr()
	if err != nil || addr.Addr() != seen || addr.Port() != wide.port {
		t.Errorf("%v, %v; the peer sees %v", addr, err, seen)
	}
	if id, _ := wide.ContactFor(l).CMID(); id != wide.id {
		t.Errorf("CM ID %#x", id)
	}
	// An address that was chosen stays.
	chosen, _ := open(t, Config{AdvertiseAddr: netip.MustParseAddr("10.9.8.7")})
	l = dial(t, chosen, b.Contact())
	if addr, _ := chosen.ContactFor(l).Addr(); addr.Addr().String() != "10.9.8.7" {
		t.Errorf("%v", addr)
	}
}

func TestContactIsACopy(t *testing.T) {
	c, _ := open(t, Config{})
	c.Contact()[0].Int = 1
	if a, err := c.Contact().Addr(); err != nil || a.Port() != c.port {
		t.Errorf("%v, %v", a, err)
	}
}

// TestAcceptsOnAllInterfaces: publishing one address closes no other.
func TestAcceptsOnAllInterfaces(t *testing.T) {
	c, _ := open(t, Config{Interface: "lo", ListenAddr: netip.MustParseAddrPort("0.0.0.0:0")})
	conn, err := net.Dial("tcp4", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.77"), c.port).String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestNewID(t *testing.T) {
	seen := map[uint32]bool{}
	for range 1000 {
		id := newID()
		if id == 0 || id == cm.ID210 || id > 1<<31-1 || seen[id] {
			t.Fatalf("ID %#x", id)
		}
		seen[id] = true
	}
}
