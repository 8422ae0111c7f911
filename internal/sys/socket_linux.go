package sys

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Socket is a unix socket that does not block: what cannot be done at once is ErrWouldBlock.
type Socket struct{ *FD }

func unixSocket(t SocketType) (Socket, error) {
	kind := unix.SOCK_STREAM
	if t == SeqPacket {
		kind = unix.SOCK_SEQPACKET
	}
	n, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Socket{}, os.NewSyscallError("socket", err)
	}
	return Socket{NewFD(n, "unix socket")}, nil
}

// sockaddr is the kernel's form of a. Package unix takes a leading @ for an abstract name.
func (a UnixAddress) sockaddr() *unix.SockaddrUnix {
	switch {
	case a.Abstract:
		return &unix.SockaddrUnix{Name: "@" + a.Name}
	case strings.HasPrefix(a.Name, "@"):
		return &unix.SockaddrUnix{Name: "./" + a.Name}
	}
	return &unix.SockaddrUnix{Name: a.Name}
}

// ListenUnix listens at an address. EADDRINUSE says that the abstract name is taken, or that the path
// exists, be it in use or left behind; a path is the caller's to remove. backlog bounds who may wait
// for Accept.
func ListenUnix(a UnixAddress, t SocketType, backlog int) (Socket, error) {
	s, err := unixSocket(t)
	if err != nil {
		return Socket{}, err
	}
	err = os.NewSyscallError("bind", unix.Bind(s.Int(), a.sockaddr()))
	if err == nil {
		err = os.NewSyscallError("listen", unix.Listen(s.Int(), backlog))
	}
	if err != nil {
		_ = s.Close()
		return Socket{}, fmt.Errorf("sys: listen at %v: %w", a, err)
	}
	return s, nil
}

// ConnectUnix connects to an address, at once or not at all: ECONNREFUSED (and ENOENT for a path) if nobody
// listens, ErrWouldBlock if too many wait to be accepted there. What is sent is kept for the listener
// although it has not accepted.
func ConnectUnix(a UnixAddress, t SocketType) (Socket, error) {
	s, err := unixSocket(t)
	if err != nil {
		return Socket{}, err
	}
	_, err = retry(func() (int, error) { return 0, unix.Connect(s.Int(), a.sockaddr()) })
	if err != nil {
		_ = s.Close()
		if errors.Is(err, unix.EAGAIN) {
			return Socket{}, ErrWouldBlock
		}
		return Socket{}, fmt.Errorf("sys: connect to %v: %w", a, os.NewSyscallError("connect", err))
	}
	return s, nil
}

// SocketPair makes two sockets that are connected to each other.
func SocketPair(t SocketType) (a, b Socket, err error) {
	kind := unix.SOCK_STREAM
	if t == SeqPacket {
		kind = unix.SOCK_SEQPACKET
	}
	p, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Socket{}, Socket{}, os.NewSyscallError("socketpair", err)
	}
	return Socket{NewFD(p[0], "unix socket")}, Socket{NewFD(p[1], "unix socket")}, nil
}

// Accept takes the next connection of a listener.
func (s Socket) Accept() (Socket, error) {
	n, err := retry(func() (int, error) {
		n, _, err := unix.Accept4(s.Int(), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err == unix.ECONNABORTED { // gone before it was taken: the next
			err = unix.EINTR
		}
		return n, err
	})
	switch {
	case err == nil:
		return Socket{NewFD(n, "accepted unix socket")}, nil
	case errors.Is(err, unix.EAGAIN):
		return Socket{}, ErrWouldBlock
	}
	return Socket{}, os.NewSyscallError("accept4", err)
}

// Send sends bytes and descriptors, which stay the sender's; the peer gets duplicates. It returns how
// many bytes went: on a Stream maybe not all, but all descriptors have gone with the first. It raises no
// SIGPIPE. A peer that is gone is EPIPE or ECONNRESET.
func (s Socket) Send(b []byte, fds ...*FD) (int, error) {
	var oob []byte
	if len(fds) > 0 {
		numbers := make([]int, len(fds))
		for i, f := range fds {
			numbers[i] = f.Int()
		}
		oob = unix.UnixRights(numbers...)
	}
	n, err := retry(func() (int, error) {
		return unix.SendmsgN(s.Int(), b, oob, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	})
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, unix.EAGAIN):
		return 0, ErrWouldBlock
	}
	return 0, os.NewSyscallError("sendmsg", err)
}

// Recv receives into b, with at most maxFDs descriptors, which are the caller's. Descriptors beyond that, or a
// packet longer than b, are ErrMessage, and what came of it is closed. An end of the stream is io.EOF.
func (s Socket) Recv(b []byte, maxFDs int) (n int, fds []*FD, err error) { return s.recv(b, maxFDs, 0) }

// Take is Recv of a SeqPacket socket that loses nothing for want of descriptors: then it is ErrDescriptors, and the packet is
// still there.
func (s Socket) Take(b []byte, maxFDs int) (n int, fds []*FD, err error) {
	if n, fds, err = s.recv(b, maxFDs, unix.MSG_PEEK); err != nil {
		return 0, nil, err
	}
	var some [1]byte
	_, err = retry(func() (int, error) {
		_, _, _, _, err := unix.Recvmsg(s.Int(), some[:], nil, unix.MSG_DONTWAIT)
		return 0, err
	})
	if err != nil {
		CloseAll(fds)
		return 0, nil, os.NewSyscallError("recvmsg", err)
	}
	return n, fds, nil
}

func (s Socket) recv(b []byte, maxFDs, how int) (n int, fds []*FD, err error) {
	var oob []byte
	if maxFDs > 0 {
		oob = make([]byte, unix.CmsgSpace(4*maxFDs))
	}
	var got, flags int
	n, err = retry(func() (n int, err error) {
		n, got, flags, _, err = unix.Recvmsg(s.Int(), b, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC|how)
		return n, err
	})
	switch {
	case errors.Is(err, unix.EAGAIN):
		return 0, nil, ErrWouldBlock
	case err != nil:
		return 0, nil, os.NewSyscallError("recvmsg", err)
	}
	fds, err = descriptors(oob[:got])
	switch {
	case err != nil:
	case flags&unix.MSG_CTRUNC != 0 && len(fds) < (len(oob)-unix.CmsgLen(0))/4: // there was room for more here, but not in the process
		err = ErrDescriptors
	case flags&unix.MSG_CTRUNC != 0 || len(fds) > maxFDs: // the kernel rounds the room for them up
		err = fmt.Errorf("%w: more than %d descriptors", ErrMessage, maxFDs)
	case flags&unix.MSG_TRUNC != 0:
		err = fmt.Errorf("%w: more than %d bytes", ErrMessage, len(b))
	case n == 0 && len(fds) == 0 && len(b) > 0:
		err = io.EOF
	default:
		return n, fds, nil
	}
	CloseAll(fds)
	return 0, nil, err
}

// descriptors takes all descriptors out of what came beside the bytes; with an error too, those that it
// found.
func descriptors(oob []byte) ([]*FD, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	var fds []*FD
	for i := range messages {
		m := &messages[i]
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_RIGHTS {
			continue // nothing that we asked the kernel for, and nothing to close
		}
		numbers, err := unix.ParseUnixRights(m)
		if err != nil {
			return fds, fmt.Errorf("%w: %w", ErrMessage, err)
		}
		for _, n := range numbers {
			fds = append(fds, NewFD(n, "received descriptor"))
		}
	}
	return fds, nil
}

// Shutdown ends both directions, for all who hold the socket: peers see the end of the stream.
func (s Socket) Shutdown() error {
	return os.NewSyscallError("shutdown", unix.Shutdown(s.Int(), unix.SHUT_RDWR))
}

// ShutdownSend ends the direction towards the peer, for all who hold the socket: it sees the end of the stream.
func (s Socket) ShutdownSend() error {
	return os.NewSyscallError("shutdown", unix.Shutdown(s.Int(), unix.SHUT_WR))
}

// Peer returns who is at the other end: who connected, or, for who connected, who called listen.
func (s Socket) Peer() (Credentials, error) {
	c, err := unix.GetsockoptUcred(s.Int(), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Credentials{}, os.NewSyscallError("getsockopt SO_PEERCRED", err)
	}
	return Credentials{PID: int(c.Pid), UID: c.Uid, GID: c.Gid}, nil
}
