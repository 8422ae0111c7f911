package sys

import (
	"fmt"
	"syscall"

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
