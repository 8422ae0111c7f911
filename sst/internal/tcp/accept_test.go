package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// failing is a listener whose accepts fail as errs say; nil stands for a
// connection, and the end of the list for a listener that is closed.
type failing struct{ errs []error }

func (f *failing) accept() (net.Conn, error) {
	if len(f.errs) == 0 {
		return nil, fmt.Errorf("accept: %w", net.ErrClosed)
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	if err != nil {
		return nil, err
	}
	return &net.TCPConn{}, nil
}

// repeat returns n times err.
func repeat(err error, n int) []error {
	out := make([]error, n)
	for i := range out {
		out[i] = err
	}
	return out
}

// TestAcceptOutOfDescriptors: the pauses grow to a second, and begin anew when a
// connection came.
func TestAcceptOutOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := append(repeat(syscall.EMFILE, 10), nil, nil, syscall.EMFILE, nil)
		start, taken := time.Now(), 0
		var retries []time.Duration
		Accept(t.Context(), (&failing{errs}).accept, func(net.Conn) { taken++ }, func(err error, retry time.Duration) {
			if !errors.Is(err, syscall.EMFILE) {
				t.Error(err)
			}
			retries = append(retries, retry/time.Millisecond)
		})
		want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 5}
		if diff := cmp.Diff(want, retries); diff != "" {
			t.Errorf("milliseconds (-want +got):\n%s", diff)
		}
		if took := time.Since(start); taken != 3 || took != 3280*time.Millisecond {
			t.Errorf("%d connections in %v", taken, took)
		}
	})
}

// TestAcceptEnds: what ends ctx ends the pause, and the loop.
func TestAcceptEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Millisecond)
		defer cancel()
		start, failures := time.Now(), 0
		Accept(ctx, (&failing{repeat(syscall.ENFILE, 100)}).accept, func(net.Conn) { t.Error("a connection") },
			func(error, time.Duration) { failures++ })
		if took := time.Since(start); failures != 2 || took != 12*time.Millisecond {
			t.Errorf("%d failures in %v", failures, took)
		}
		// Ended before: the error is that of the end, and nobody hears of it.
		Accept(ctx, (&failing{repeat(syscall.EMFILE, 1)}).accept, func(net.Conn) { t.Error("a connection") },
			func(err error, _ time.Duration) { t.Error(err) })
	})
}

// TestAcceptListener is the same with a real listener: it keeps its type of
// connection.
func TestAcceptListener(t *testing.T) {
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	Accept(t.Context(), ln.AcceptTCP, func(c *net.TCPConn) {
		if AddrPort(c.RemoteAddr()) != AddrPort(conn.LocalAddr()) {
			t.Errorf("%v is not %v", c.RemoteAddr(), conn.LocalAddr())
		}
		_ = c.Close()
		_ = ln.Close() // which ends Accept
	}, func(err error, _ time.Duration) { t.Error(err) })
}
