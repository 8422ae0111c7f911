package sys

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// dialNobody returns a connection on which nobody reads.
func dialNobody(t *testing.T) (net.Conn, syscall.RawConn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return c, raw
}

func TestQuickAck(t *testing.T) {
	c, raw := dialNobody(t)
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

// TestUnanswered looks at a connection whose peer takes nothing, but whose kernel
// answers.
func TestUnanswered(t *testing.T) {
	c, raw := dialNobody(t)
	if err := LimitRetries(raw, time.Second); err != nil {
		t.Log(err) // an older kernel
	}
	if u, err := Unanswered(raw); err != nil || u.Pending || u.Tries != 0 {
		t.Errorf("nothing was sent: %+v, %v", u, err)
	}
	c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := c.Write(make([]byte, 64<<20)); err == nil {
		t.Error("64 MiB went to nobody")
	}
	if u, err := Unanswered(raw); err != nil || !u.Pending || u.Tries > 1 || u.Silent > 5*time.Second {
		t.Errorf("the window is full: %+v, %v", u, err)
	}
	c.Close()
	if _, err := Unanswered(raw); err == nil {
		t.Error("no error on a closed connection")
	}
	if err := LimitRetries(raw, time.Second); err == nil {
		t.Error("no error on a closed connection")
	}
}
