package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

var errEnough = errors.New("enough")

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Pause(t.Context(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errEnough) })
		start = time.Now()
		if err := Pause(ctx, time.Minute); !errors.Is(err, errEnough) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// pipe is a connection whose far end says nothing.
func pipe(t *testing.T) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near
}

func TestEndWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errEnough) })
		conn := pipe(t)
		release := EndWith(ctx, conn)
		_, err := conn.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if err := release(err); !errors.Is(err, errEnough) {
			t.Errorf("release: %v", err)
		}
	})
}

// TestEndWithReleased: afterwards ctx has no power over the connection, and the
// error of who used it is passed on.
func TestEndWithReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		conn := pipe(t)
		for _, want := range []error{nil, io.ErrUnexpectedEOF} {
			if err := EndWith(ctx, conn)(want); err != want {
				t.Errorf("release: %v, not %v", err, want)
			}
		}
		cancel()
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
