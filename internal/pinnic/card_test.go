package pinnic

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

// TestCard sends and receives more than the wire takes at a time, both at once.
func TestCard(t *testing.T) {
	const n = mostPinned / 2
	eachWay(t, func(t *testing.T, w *wired) {
		out, in, got := make([]byte, n), make([]byte, n), make([]byte, n)
		_, _ = rand.NewChaCha8([32]byte{}).Read(out)
		from, to := w.register(out), w.register(in)
		if k, b := w.Pinned(); k != 2 || b != 2*n {
			t.Errorf("%d registrations of %d bytes", k, b)
		}
		var all sync.WaitGroup
		for what, do := range map[string]func() error{
			"send":    func() error { return w.Send(from, 0, n) },
			"receive": func() error { return w.Recv(to, 0, n) },
			"write":   func() error { _, err := w.far.Write(out); return err },
			"read":    func() error { _, err := io.ReadFull(w.far, got); return err },
		} {
			all.Go(func() {
				if err := do(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		all.Wait()
		if !bytes.Equal(got, out) || !bytes.Equal(in, out) {
			t.Error("other bytes came than were sent")
		}
		w.deregister(from)
		w.deregister(to)
		if k, b := w.Pinned(); k != 0 || b != 0 {
			t.Errorf("%d registrations of %d bytes", k, b)
		}
	})
}

func TestCardRefuses(t *testing.T) {
	w := newWired(t, Config{Slots: 2})
	b := make([]byte, 100)
	h := w.register(b)
	for _, bad := range [][2]int{{-1, 1}, {0, -1}, {0, 101}, {100, 1}, {101, 0}, {1 << 62, 1 << 62}} {
		if err := w.Send(h, bad[0], bad[1]); !errors.Is(err, ErrRange) {
			t.Errorf("send %v: %v", bad, err)
		}
		if err := w.Recv(h, bad[0], bad[1]); !errors.Is(err, ErrRange) {
			t.Errorf("receive %v: %v", bad, err)
		}
	}
	if err := w.Send(h, 100, 0); err != nil {
		t.Error(err)
	}
	if _, err := w.Register(nil); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("registered nothing: %v", err)
	}
	second := w.register(b)
	if _, err := w.Register(b); !errors.Is(err, ErrSlots) {
		t.Errorf("a third one of two: %v", err)
	}
	w.deregister(second)
	if third := w.register(b); third == second {
		t.Error("a handle came twice")
	}
	for what, none := range map[string]Handle{"old": second, "zero": {}, "of another card": {slot: 7, serial: 1}} {
		for op, err := range map[string]error{"deregister": w.Deregister(none), "send": w.Send(none, 0, 1), "receive": w.Recv(none, 0, 1)} {
			if !errors.Is(err, ErrHandle) {
				t.Errorf("%s, handle %s: %v", op, what, err)
			}
		}
	}
	for _, slots := range []int{-1, 1 << 20} {
		if _, _, err := New(Config{Slots: slots}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%d slots: %v", slots, err)
		}
	}
	for _, f := range []sys.Feature{sys.IOUring, sys.SendZC} {
		if _, _, err := New(Config{ZeroCopy: f == sys.SendZC, Features: sys.Features{}.Without(f)}); !errors.Is(err, sys.ErrNotSupported) {
			t.Errorf("without %v: %v", f, err)
		}
	}
}

// TestCardEnds has receivers that wait when their registration, the wire, or the card goes.
func TestCardEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *wired, h Handle) error
		want error
	}{
		{"deregistered", func(w *wired, h Handle) error {
			if err := w.Deregister(h); err != nil {
				return err
			}
			_, err := w.far.Write([]byte{1}) // it is asked again
			return err
		}, ErrHandle},
		{"no far end", func(w *wired, _ Handle) error { return w.far.CloseWrite() }, io.ErrUnexpectedEOF},
		{"closed", func(w *wired, _ Handle) error { return w.Close() }, net.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWired(t, Config{})
			b := make([]byte, 100)
			h := w.register(b)
			if _, err := w.far.Write([]byte("some")); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- w.Recv(h, 0, len(b)) }()
			testutil.Eventually(t, "what came is there", func() bool { return b[3] == 'e' })
			if err := c.end(w, h); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("%v, not %v", err, c.want)
			}
		})
	}
}

func TestCardClosed(t *testing.T) {
	w := newWired(t, Config{})
	h := w.register(make([]byte, 100))
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if _, err := w.Register(make([]byte, 100)); !errors.Is(err, sys.ErrClosed) {
		t.Errorf("register: %v", err)
	}
	if err := w.Deregister(h); !errors.Is(err, ErrHandle) {
		t.Errorf("deregister: %v", err)
	}
	for _, err := range []error{w.Send(h, 0, 1), w.Recv(h, 0, 1)} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("transfer: %v", err)
		}
	}
	if k, b := w.Pinned(); k != 0 || b != 0 {
		t.Errorf("%d registrations of %d bytes", k, b)
	}
}
