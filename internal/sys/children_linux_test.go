package sys

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// roleConnect connects and waits to be killed.
func roleConnect(args []string) error {
	s, err := ConnectUnix(UnixAddress{Name: args[0], Abstract: true}, Stream)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("connected")
	select {}
}

// childWithFD starts a child in a role that begins with receiveFD and sends it a descriptor.
func childWithFD(t *testing.T, role string, fd *FD, args ...string) (*testutil.Process, Socket) {
	t.Helper()
	addr := abstractName(t)
	l, err := ListenUnix(addr, SeqPacket, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	child := testutil.Child(t, role, append([]string{addr.Name}, args...)...)
	p := newPoller(t)
	if err := p.Add(l.FD, Readable, 0); err != nil {
		t.Fatal(err)
	}
	for {
		conn, err := l.Accept()
		if err == ErrWouldBlock {
			if err := p.Park(t.Context(), child.Done()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Send([]byte("fd"), fd); err != nil {
			t.Fatal(err)
		}
		return child, conn
	}
}

// receiveFD connects as a child and receives the descriptor.
func receiveFD(name string) (*FD, error) {
	s, err := ConnectUnix(UnixAddress{Name: name, Abstract: true}, SeqPacket)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := NewPoller()
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if err := p.Add(s.FD, Readable, 0); err != nil {
		return nil, err
	}
	if err := p.Park(context.Background(), nil); err != nil {
		return nil, err
	}
	_, fds, err := s.Recv(make([]byte, 2), 1)
	if err != nil {
		return nil, err
	}
	return fds[0], nil
}

// roleWake wakes who sleeps on the first word of a file, without writing it.
func roleWake(args []string) error {
	fd, err := receiveFD(args[0])
	if err != nil {
		return err
	}
	m, err := Map(fd, 0, 4096, false)
	if err != nil {
		return err
	}
	bufio.NewScanner(os.Stdin).Scan()
	_, err = FutexWake(word32(m.Bytes()), 10)
	return err
}

// roleMemory holds memory for others to read and write: "address length", then, at each line, its first
// and last byte.
func roleMemory(args []string) error {
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return err
	}
	for _, a := range args[1:] {
		at, err := strconv.Atoi(a)
		if err != nil {
			return err
		}
		b[at] = byte(at*7 + 1)
	}
	fmt.Println("address", Address(b))
	for sc := bufio.NewScanner(os.Stdin); sc.Scan(); {
		fmt.Println("bytes", b[0], b[size-1])
	}
	return nil
}

// fcntlGetFD is the flags of a descriptor.
func fcntlGetFD(f *FD) (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(f.Int()), syscall.F_GETFD, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
