package sys

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// QuickAcker makes the kernel acknowledge at once what has arrived on one TCP
// connection, instead of waiting up to 40 ms for data to send along with it. It
// belongs to one goroutine at a time.
type QuickAcker struct {
	raw syscall.RawConn
	set func(fd uintptr) // made once: it is called for each read
	err error            // of set
}

// NewQuickAcker returns the QuickAcker of a connection, and asks for the first time.
func NewQuickAcker(c syscall.RawConn) (*QuickAcker, error) {
	q := &QuickAcker{raw: c}
	q.set = q.ask
	return q, q.Acknowledge()
}

// Acknowledge asks the kernel. It falls back to waiting by itself, so it is asked
// again after each read (tcp(7), TCP_QUICKACK).
func (q *QuickAcker) Acknowledge() error {
	err := q.raw.Control(q.set)
	if err == nil {
		err = q.err
	}
	if err != nil {
		return fmt.Errorf("sys: TCP_QUICKACK: %w", err)
	}
	return nil
}

func (q *QuickAcker) ask(fd uintptr) {
	q.err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
}

// LimitRetries bounds the time between two tries of the kernel to get an answer
// on a TCP connection, else up to two minutes: repeats of what was not
// acknowledged, and questions whether there is room again. It fails before Linux
// 6.15.
func LimitRetries(c syscall.RawConn, limit time.Duration) error {
	return control(c, "TCP_RTO_MAX_MS", func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(limit.Milliseconds()))
	})
}

// SetCongestion chooses the congestion control of a TCP connection, by the kernel's
// name for it. Programs may choose those of net.ipv4.tcp_allowed_congestion_control.
func SetCongestion(c syscall.RawConn, name string) error {
	return control(c, "TCP_CONGESTION", func(fd int) error {
		return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	})
}

// Unanswered tells what a TCP connection has sent, or is to send, and no answer
// has come to yet.
func Unanswered(c syscall.RawConn) (TCPUnanswered, error) {
	var u TCPUnanswered
	err := control(c, "TCP_INFO", func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return err
		}
		u = TCPUnanswered{
			Pending: info.Unacked > 0 || info.Notsent_bytes > 0 || info.Probes > 0,
			Tries:   max(int(info.Retransmits), int(info.Probes)),
			Silent:  time.Duration(info.Last_ack_recv) * time.Millisecond,
		}
		return nil
	})
	return u, err
}

// control calls f with the descriptor of a connection.
func control(c syscall.RawConn, what string, f func(fd int) error) error {
	var failed error
	err := c.Control(func(fd uintptr) { failed = f(int(fd)) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("sys: %s: %w", what, err)
	}
	return nil
}
