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

// TestReadMark: who waits is woken by what reaches the mark, by any byte once it
// is down again, and by the end.
func TestReadMark(t *testing.T) {
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
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	// read waits, and has the peer act meanwhile.
	read := func(act func()) (n int) {
		waited := false
		if err := raw.Read(func(fd uintptr) bool {
			var again bool
			n, again, _ = ReadNow(fd, buf)
			if again && !waited {
				waited = true
				act()
			}
			return !again
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	write := func(n int) {
		if _, err := far.Write(make([]byte, n)); err != nil {
			t.Error(err)
		}
	}
	if err := SetReadMark(raw, 1000); err != nil {
		t.Fatal(err)
	}
	if n := read(func() { write(500); write(600) }); n != 1100 {
		t.Errorf("woken with %d bytes", n)
	}
	if err := SetReadMark(raw, 1); err != nil {
		t.Fatal(err)
	}
	if n := read(func() { write(1) }); n != 1 {
		t.Errorf("woken with %d bytes", n)
	}
	if err := SetReadMark(raw, 1000); err != nil {
		t.Fatal(err)
	}
	if n := read(func() { write(10); far.Close() }); n != 10 {
		t.Errorf("woken by the end with %d bytes", n)
	}
	c.Close()
	if err := SetReadMark(raw, 1); err == nil {
		t.Error("no error on a closed connection")
	}
}
