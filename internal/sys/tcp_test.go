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
	q, err := NewQuickAcker(raw)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { err = q.Acknowledge() }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
	c.Close()
	if err := q.Acknowledge(); err == nil {
		t.Error("no error on a closed connection")
	}
	if _, err := NewQuickAcker(raw); err == nil {
		t.Error("no error on a closed connection")
	}
}
