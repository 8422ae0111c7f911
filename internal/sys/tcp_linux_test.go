package sys

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestSetCongestion sets the one that every kernel has and every program may have, and
// reads it back.
func TestSetCongestion(t *testing.T) {
	c, raw := dialNobody(t)
	if err := SetCongestion(raw, "reno"); err != nil {
		t.Fatal(err)
	}
	var name string
	if err := control(raw, "TCP_CONGESTION", func(fd int) (err error) {
		name, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	}); err != nil || name != "reno" {
		t.Errorf("%q, %v", name, err)
	}
	if err := SetCongestion(raw, "no such"); err == nil {
		t.Error("no error for one that does not exist")
	}
	c.Close()
	if err := SetCongestion(raw, "reno"); err == nil {
		t.Error("no error on a closed connection")
	}
}
