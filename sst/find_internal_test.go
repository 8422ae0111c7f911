package sst

import (
	"net"
	"testing"
)

// TestNoWay tells an address to which there is no way from one at which nobody lives.
func TestNoWay(t *testing.T) {
	var d net.Dialer
	if _, err := d.DialContext(t.Context(), "tcp4", "224.0.0.1:9"); err == nil || !noWay(err) { // TCP goes to no group of hosts
		t.Errorf("a network without a way to it: %v", err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DialContext(t.Context(), "tcp4", addr); err == nil || noWay(err) {
		t.Errorf("nobody of that name: %v", err)
	}
}
