package sst_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/sst"
)

// TestSessionAddress: where a session listens and what it publishes can be said,
// as firewalls and tunnels want it.
func TestSessionAddress(t *testing.T) {
	lo := netip.MustParseAddr("127.0.0.1")
	ports := sst.PortRange{First: 20000, Last: 60000}
	s := newSession(t, sst.SessionConfig{ListenAddr: netip.AddrPortFrom(lo, 0), ListenPorts: ports, Logger: quiet})
	a := netip.MustParseAddrPort(s.Addr())
	if a.Addr() != lo || a.Port() < ports.First || a.Port() > ports.Last {
		t.Errorf("%v is published, not an address of %v in %v", a, lo, ports)
	}
	s = newSession(t, sst.SessionConfig{AdvertiseAddr: netip.MustParseAddr("192.0.2.7"), AdvertisePort: 4000, Logger: quiet})
	if s.Addr() != "192.0.2.7:4000" {
		t.Errorf("%s is published", s.Addr())
	}
}

// TestSessionRefused: what cannot be is an error that can be told apart.
func TestSessionRefused(t *testing.T) {
	for text, cfg := range map[string]sst.SessionConfig{
		"no-such-interface": {NetworkInterface: "no-such-interface"},
		"7:5":               {ListenPorts: sst.PortRange{First: 7, Last: 5}},
	} {
		s, err := sst.NewSession(t.Context(), cfg)
		if !errors.Is(err, sst.ErrParam) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
		if s != nil {
			s.Close()
		}
	}
}

// TestSessionFromEnv reads what ADIOS2 reads, where nothing else was said.
func TestSessionFromEnv(t *testing.T) {
	t.Setenv("X_IP", "192.0.2.7")
	t.Setenv("X_PORT_RANGE", "26100:26000")
	t.Setenv("B_PORT_RANGE", "many")
	got, err := sst.SessionConfig{HandshakeGrace: 7}.FromEnv("X_")
	want := sst.SessionConfig{HandshakeGrace: 7, AdvertiseAddr: netip.MustParseAddr("192.0.2.7"), ListenPorts: sst.PortRange{First: 26000, Last: 26100}}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := (sst.SessionConfig{NetworkInterface: "lo"}).FromEnv("X_"); err != nil || got.NetworkInterface != "lo" || got.AdvertiseAddr.IsValid() {
		t.Errorf("what was said does not count: %+v, %v", got, err)
	}
	if _, err := (sst.SessionConfig{}).FromEnv("B_"); !errors.Is(err, sst.ErrParam) || !strings.Contains(err.Error(), "B_PORT_RANGE") {
		t.Errorf("%v", err)
	}
}
