package tcp

import (
	"net"
	"net/netip"
	"runtime"
	"testing"
)

func TestWithinHost(t *testing.T) {
	at := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	for _, c := range []struct {
		local, remote net.Addr
		want          bool
	}{
		{at("127.0.0.1:1"), at("127.0.0.1:2"), true},
		{at("192.0.2.1:1"), at("192.0.2.1:2"), true},
		{at("[::ffff:192.0.2.1]:1"), at("192.0.2.1:2"), true},
		{at("[2001:db8::1]:1"), at("[2001:db8::1]:1"), true},
		{at("192.0.2.1:1"), at("192.0.2.2:1"), false},
		{at("127.0.0.1:1"), at("192.0.2.1:1"), false},
		{&net.UnixAddr{Name: "a"}, &net.UnixAddr{Name: "a"}, false},
		{nil, nil, false},
	} {
		if got := withinHost(c.local, c.remote); got != c.want {
			t.Errorf("%v and %v: %v", c.local, c.remote, got)
		}
	}
}

// TestTuneWithinHost tunes both ends of a connection; on one that is closed it is seen
// to try.
func TestTuneWithinHost(t *testing.T) {
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := net.DialTCP("tcp4", nil, ln.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	accepted, err := ln.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	for _, c := range []*net.TCPConn{dialled, accepted} {
		if err := TuneWithinHost(c); err != nil {
			t.Log(err) // the administrator may have forbidden it
		}
		if _, err := c.Write([]byte("weft")); err != nil {
			t.Error(err)
		}
	}
	accepted.Close()
	if err := TuneWithinHost(accepted); err == nil && runtime.GOOS == "linux" {
		t.Error("no error on a closed connection")
	}
}
