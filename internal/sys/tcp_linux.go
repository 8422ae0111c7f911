package sys

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// QuickAck makes the kernel acknowledge at once what has arrived on a TCP
// connection, instead of waiting up to 40 ms for data to send along with it. The
// kernel falls back to waiting by itself, so it is asked again after each read
// (tcp(7), TCP_QUICKACK).
func QuickAck(c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("sys: TCP_QUICKACK: %w", err)
	}
	return nil
}
