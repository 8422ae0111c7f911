package sys

import (
	"net"
	"testing"
)

func TestQuickAck(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := QuickAck(raw); err != nil {
		t.Error(err)
	}
	c.Close()
	if err := QuickAck(raw); err == nil {
		t.Error("no error on a closed connection")
	}
}
