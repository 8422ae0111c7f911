package sys

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// connected returns the raw side of a TCP connection, and the far side.
func connected(t *testing.T) (syscall.RawConn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return raw, far
}

// TestReadNow reads from a connection that is empty, has data, has ended, and is
// reset.
func TestReadNow(t *testing.T) {
	for _, reset := range []bool{false, true} {
		raw, far := connected(t)
		buf := make([]byte, 10)
		var n, waits int
		read := func() (err error) {
			if rawErr := raw.Read(func(fd uintptr) bool {
				var again bool
				if n, again, err = ReadNow(fd, buf); again {
					if waits == 0 { // nothing can have come
						_, err = far.Write([]byte("weft"))
					}
					waits++
				}
				return !again
			}); rawErr != nil {
				t.Fatal(rawErr)
			}
			return err
		}
		if err := read(); err != nil || string(buf[:n]) != "weft" || waits == 0 {
			t.Errorf("%q, %v, waited %d times", buf[:n], err, waits)
		}
		if reset {
			_ = far.(*net.TCPConn).SetLinger(0)
		}
		_ = far.Close()
		want := io.EOF
		if reset {
			want = syscall.ECONNRESET
		}
		if err := read(); !errors.Is(err, want) {
			t.Errorf("reset %v: %v", reset, err)
		}
	}
	if _, _, err := ReadNow(^uintptr(0)>>33, make([]byte, 1)); err == nil {
		t.Error("a descriptor that is none")
	}
}

// TestWriteNow fills a connection, and writes to one that is closed.
func TestWriteNow(t *testing.T) {
	raw, far := connected(t)
	write := func() (n int, again bool, err error) {
		if rawErr := raw.Write(func(fd uintptr) bool {
			n, again, err = WriteNow(fd, make([]byte, 1<<20))
			return true
		}); rawErr != nil {
			t.Fatal(rawErr)
		}
		return n, again, err
	}
	total := 0
	for {
		n, again, err := write()
		if err != nil || again != (n == 0) {
			t.Fatalf("%d bytes, again %v, %v", n, again, err)
		}
		if total += n; again {
			break
		}
	}
	if n, err := io.CopyN(io.Discard, far, int64(total)); err != nil {
		t.Errorf("%d of %d bytes came: %v", n, total, err)
	}
	_ = far.(*net.TCPConn).SetLinger(0)
	_ = far.Close()
	for {
		if _, again, err := write(); err != nil {
			if again || !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("again %v, %v", again, err)
			}
			break
		}
	}
}
