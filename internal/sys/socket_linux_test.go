package sys

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func abstractName(t *testing.T) UnixAddress {
	return UnixAddress{Name: fmt.Sprintf("weft-test-%d-%s", os.Getpid(), t.Name()), Abstract: true}
}

func TestUnixSocket(t *testing.T) {
	nothingOpen(t)
	for _, a := range []UnixAddress{abstractName(t), {Name: filepath.Join(t.TempDir(), "@sock")}} {
		for _, kind := range []SocketType{Stream, SeqPacket} {
			if _, err := ConnectUnix(a, kind); !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ENOENT) {
				t.Errorf("%v: nobody listens: %v", a, err)
			}
			l, err := ListenUnix(a, kind, 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ListenUnix(a, kind, 1); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("%v: taken: %v", a, err)
			}
			if _, err := l.Accept(); err != ErrWouldBlock {
				t.Error(err)
			}
			c, err := ConnectUnix(a, kind)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := c.Send([]byte("early")); n != 5 || err != nil {
				t.Error(n, err)
			}
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 10)
			if n, fds, err := s.Recv(buf, 0); string(buf[:n]) != "early" || fds != nil || err != nil {
				t.Error(n, fds, err)
			}
			if _, _, err := s.Recv(buf, 0); err != ErrWouldBlock {
				t.Error(err)
			}
			who, err := s.Peer()
			if err != nil || who.PID != os.Getpid() || who.UID != uint32(os.Geteuid()) || who.GID != uint32(os.Getegid()) {
				t.Error(who, err)
			}
			if err := c.Shutdown(); err != nil {
				t.Error(err)
			}
			if _, _, err := s.Recv(buf, 0); err != io.EOF {
				t.Error(err)
			}
			c.Close()
			if _, err := s.Send([]byte("x")); !errors.Is(err, syscall.EPIPE) {
				t.Error(err)
			}
			s.Close()
			l.Close()
			if !a.Abstract {
				if _, err := ConnectUnix(a, kind); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Error("left behind:", err)
				}
				if err := os.Remove(a.String()); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if _, err := ListenUnix(UnixAddress{Name: string(make([]byte, 200)), Abstract: true}, Stream, 1); err == nil {
		t.Error("a name that is too long")
	}
	if s := (UnixAddress{Name: "x", Abstract: true}).String(); s != "@x" {
		t.Error(s)
	}
	if a := (UnixAddress{Name: "@x"}).sockaddr(); a.Name != "./@x" {
		t.Error("a path that looks abstract:", a.Name)
	}
}

// TestBacklog fills the queue of a listener that does not accept.
func TestBacklog(t *testing.T) {
	nothingOpen(t)
	a := abstractName(t)
	l, err := ListenUnix(a, SeqPacket, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 100 {
		c, err := ConnectUnix(a, SeqPacket)
		if err == ErrWouldBlock {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	t.Error("100 connections wait where 1 may")
}

func pair(t *testing.T, kind SocketType) (a, b Socket) {
	t.Helper()
	a, b, err := SocketPair(kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestPassDescriptors(t *testing.T) {
	nothingOpen(t)
	for _, kind := range []SocketType{Stream, SeqPacket} {
		a, b := pair(t, kind)
		fds := []*FD{memory(t, 1), memory(t, 2), memory(t, 3)}
		if n, err := a.Send([]byte("three"), fds...); n != 5 || err != nil {
			t.Fatal(n, err)
		}
		buf := make([]byte, 10)
		n, got, err := b.Recv(buf, 3)
		if n != 5 || len(got) != 3 || err != nil {
			t.Fatal(n, got, err)
		}
		for i, f := range got {
			if size, err := Size(f); size != int64(i+1) || err != nil {
				t.Error(size, err)
			}
			flags, err := fcntlGetFD(f)
			if flags&syscall.FD_CLOEXEC == 0 || err != nil {
				t.Errorf("flags %d, %v: not closed on exec", flags, err)
			}
		}
		CloseAll(got)
	}
}

// TestTooManyDescriptors sends more than the receiver takes: nothing of them stays.
func TestTooManyDescriptors(t *testing.T) {
	nothingOpen(t)
	for sent := 1; sent <= 9; sent++ {
		for limit := range sent {
			a, b := pair(t, SeqPacket)
			var fds []*FD
			for range sent {
				fds = append(fds, memory(t, 1))
			}
			before := openFDs(t)
			if _, err := a.Send([]byte("x"), fds...); err != nil {
				t.Fatal(err)
			}
			if n, got, err := b.Recv(make([]byte, 1), limit); !errors.Is(err, ErrMessage) || n != 0 || got != nil {
				t.Errorf("%d sent, %d taken: %d, %v, %v", sent, limit, n, got, err)
			}
			if after := openFDs(t); after != before {
				t.Errorf("%d sent, %d taken: %d descriptors, %d before", sent, limit, after, before)
			}
			CloseAll(fds)
			a.Close()
			b.Close()
		}
	}
}

func TestLongPacket(t *testing.T) {
	nothingOpen(t)
	a, b := pair(t, SeqPacket)
	fd := memory(t, 1)
	before := openFDs(t)
	if _, err := a.Send(make([]byte, 11), fd); err != nil {
		t.Fatal(err)
	}
	if n, got, err := b.Recv(make([]byte, 10), 1); !errors.Is(err, ErrMessage) || n != 0 || got != nil {
		t.Error(n, got, err)
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	for range 100000 {
		if _, err := a.Send(make([]byte, 1000)); err == ErrWouldBlock {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("100 MB wait")
}

func openFDs(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestDescriptorsOfNonsense(t *testing.T) {
	for _, b := range [][]byte{make([]byte, 16), {255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 1, 0, 0, 0}} {
		if fds, err := descriptors(b); err == nil || fds != nil {
			t.Errorf("% x: %v, %v", b, fds, err)
		}
	}
}

// TestTake loses nothing when there are no descriptors left.
func TestTake(t *testing.T) {
	nothingOpen(t)
	a, b, err := SocketPair(SeqPacket)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	if _, _, err := b.Take(make([]byte, 8), 4); err != ErrWouldBlock {
		t.Errorf("nothing there: %v", err)
	}
	e, err := NewEventfd(Features{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for i := range 2 {
		if _, err := a.Send([]byte{byte(i), 9}, e.FD, e.FD, e.FD); err != nil {
			t.Fatal(err)
		}
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	next, err := e.Dup()
	if err != nil {
		t.Fatal(err)
	}
	few := syscall.Rlimit{Cur: uint64(next.Int()) + 2, Max: old.Max} // for two of three
	_ = next.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	_, _, err = b.Take(make([]byte, 8), 4)
	if e := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); e != nil {
		t.Fatal(e)
	}
	if !errors.Is(err, ErrDescriptors) {
		t.Errorf("no descriptors: %v", err)
	}
	for i := range 2 {
		buf := make([]byte, 8)
		n, fds, err := b.Take(buf, 4)
		if n != 2 || buf[0] != byte(i) || len(fds) != 3 || err != nil {
			t.Errorf("packet %d: %d bytes % x, %d descriptors, %v", i, n, buf, len(fds), err)
		}
		CloseAll(fds)
	}
	if _, _, err := b.Take(make([]byte, 8), 4); err != ErrWouldBlock {
		t.Errorf("nothing left: %v", err)
	}
	_ = a.Close()
	if _, _, err := b.Take(make([]byte, 8), 4); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
}

// Who has shut the direction to the peer still hears it.
func TestShutdownSend(t *testing.T) {
	a, b, err := SocketPair(SeqPacket)
	if err != nil {
		t.Fatal(err)
	}
	defer CloseAll([]*FD{a.FD, b.FD})
	if _, err := a.Send([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := a.ShutdownSend(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	if n, _, err := b.Recv(buf, 0); err != nil || string(buf[:n]) != "last" {
		t.Error(n, err)
	}
	if _, _, err := b.Recv(buf, 0); err != io.EOF {
		t.Error(err)
	}
	if _, err := b.Send([]byte("back")); err != nil {
		t.Error(err)
	}
	if n, _, err := a.Recv(buf, 0); err != nil || string(buf[:n]) != "back" {
		t.Error(n, err)
	}
	if _, err := a.Send([]byte("more")); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
}
