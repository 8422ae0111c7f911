package dp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/step"
)

// notSeen makes one memory one that cannot be looked at.
func notSeen(key uint64) func(fabric.Key) error {
	return func(k fabric.Key) error {
		if k == fabric.Key(key) {
			return fabric.ErrNotSupported
		}
		return nil
	}
}

var (
	// softErrors are those behind which messages may do better.
	softErrors = map[string]error{
		"cannot be mapped":          fabric.ErrNotSupported,
		"too many views":            fabric.ErrNoMemory,
		"unreachable for want":      fmt.Errorf("%w: %w", fabric.ErrUnreachable, fabric.ErrNoMemory),
		"given up for want of some": fmt.Errorf("%w: %w", fabric.ErrPeerGone, fabric.ErrNoMemory),
	}

	// lostErrors are those that mean that the writer is gone, or has given us up.
	lostErrors = map[string]error{
		"dead":                fabric.ErrPeerGone,
		"not there":           fabric.ErrUnreachable,
		"memory was closed":   fabric.ErrKey,
		"broke the protocol":  fmt.Errorf("%w: %w", fabric.ErrPeerGone, fabric.ErrProtocol),
		"broke it some other": fabric.ErrProtocol,
	}

	// ownErrors come of this side.
	ownErrors = map[string]error{
		"domain closed": fabric.ErrClosed,
		"peer removed":  fabric.ErrCancelled,
		"no endpoint":   fabric.ErrInvalid,
		"unknown":       errTest,
	}
)

// TestNativeByMessages: what cannot be looked at is asked for.
func TestNativeByMessages(t *testing.T) {
	for name, soft := range softErrors {
		t.Run(name, func(t *testing.T) {
			f, s := placesPlane(t)
			f.routes[0].fail(soft)
			for what, read := range reads(t, 0) {
				err := read(s)
				if what == "Held" { // Read gets it then
					if err == nil || len(f.sent) != 0 {
						t.Errorf("%s: %v, and %d requests", what, err, len(f.sent))
					}
					continue
				}
				if n := f.asked()[0]; err != nil || n != 16 {
					t.Errorf("%s: %v, asked for %d bytes", what, err, n)
				}
			}
		})
	}
}

// TestNativeByMessagesSorted keeps the order of what is asked for.
func TestNativeByMessagesSorted(t *testing.T) {
	f := newFakes(t, 5, someExtents, nil, someExtents)
	f.routes[0].err, f.routes[2].err = notSeen(2), notSeen(1)
	pieces := []step.Piece{piece(0, 0, 100), piece(0, 100, 20), piece(1, 0, 8), piece(2, 32, 48)}
	if err := f.Step(5, ModeRequest, f.extents).Read(t.Context(), pieces); err != nil {
		t.Fatal(err)
	}
	check(t, 5, pieces)
	var order []string
	for range len(f.sent) {
		q := <-f.sent
		order = append(order, fmt.Sprintf("%d@%d+%d", q.rank, q.msg.Offset, q.msg.Length))
	}
	if got, want := strings.Join(order, " "), "0@64+32 0@96+4 0@100+20 1@0+8 2@32+32"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	if s := f.Stats(); s[0].Copied != 64 || s[2].Copied != 16 {
		t.Errorf("%+v", s)
	}
}

// TestNativeLost: the reason comes on the control plane, and is waited for.
func TestNativeLost(t *testing.T) {
	reason := errors.New("rank 0 was killed")
	for name, lost := range lostErrors {
		t.Run(name, func(t *testing.T) {
			for what, read := range reads(t, 0) {
				f, s := placesPlane(t)
				f.routes[0].fail(lost)
				if err := read(s); !errors.Is(err, errLost) || !errors.Is(err, lost) || !strings.Contains(err.Error(), "step 5: read from writer rank 0") {
					t.Errorf("%s, nobody says why: %v", what, err)
				}

				f, s = placesPlane(t)
				f.cfg.Grace = patience
				f.routes[0].err = func(fabric.Key) error { // the death is seen here first
					go f.Fail(reason)
					return lost
				}
				if err := read(s); !errors.Is(err, reason) || !errors.Is(err, lost) || errors.Is(err, errLost) {
					t.Errorf("%s, with a reason: %v", what, err)
				}
			}
		})
	}
}

func TestNativeOwnErrors(t *testing.T) {
	reason := errors.New("the reader was closed")
	for name, own := range ownErrors {
		t.Run(name, func(t *testing.T) {
			for what, read := range reads(t, 0) {
				f, s := placesPlane(t)
				f.routes[0].fail(own)
				if err := read(s); !errors.Is(err, own) || errors.Is(err, errLost) || !strings.Contains(err.Error(), "step 5: read from writer rank 0") {
					t.Errorf("%s: %v", what, err)
				}
				f.routes[0].err = func(fabric.Key) error {
					f.Fail(reason)
					return own
				}
				if err := read(s); !errors.Is(err, reason) || errors.Is(err, own) {
					t.Errorf("%s while the plane fails: %v", what, err)
				}
			}
		})
	}
}

// TestNativeFails: after a failure nothing begins, and what there is stays.
func TestNativeFails(t *testing.T) {
	for name, end := range map[string]func(f *fakes){
		"Fail":  func(f *fakes) { f.Fail(errTest) },
		"Close": func(f *fakes) { f.Close(errTest) },
	} {
		t.Run(name, func(t *testing.T) {
			f, s := placesPlane(t)
			b, release, err := s.(step.Viewer).View(t.Context(), 0, 8, 16)
			if err != nil {
				t.Fatal(err)
			}
			end(f)
			for what, read := range reads(t, 0) {
				if err := read(s); !errors.Is(err, errTest) || !strings.Contains(err.Error(), "step 5") || !strings.Contains(err.Error(), "rank 0") {
					t.Errorf("%s: %v", what, err)
				}
			}
			f.routes[0].wantViews(t, "the one from before", 1, 1)
			if b[0] != blockOf(5, 0, 9)[8] {
				t.Error("it has gone")
			}
			release()
		})
	}
}

// TestNativePushedStays: what was pushed by a rank without a route stays readable.
func TestNativePushedStays(t *testing.T) {
	f := newFakes(t, 5, someExtents, nil)
	m := memory{}
	push(f.Evpath, 5, 1, blockOf(5, 1, 64), m.free())
	s := f.Step(5, ModeSpeculative, f.extents)
	f.Fail(errTest)
	for what, read := range reads(t, 1) {
		if err := read(s); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNativeOver: nothing of a step that was given back or forgotten is looked at.
func TestNativeOver(t *testing.T) {
	for name, end := range map[string]func(f *fakes){
		"AfterViews": func(f *fakes) { f.AfterViews(5, func() {}) },
		"Forget":     func(f *fakes) { f.Forget(5) },
	} {
		t.Run(name, func(t *testing.T) {
			f, s := placesPlane(t)
			end(f)
			for what, read := range reads(t, 0) {
				if err := read(s); !errors.Is(err, errOver) {
					t.Errorf("%s: %v", what, err)
				}
			}
			f.routes[0].wantViews(t, "none", 0, 0)
		})
	}
}

// TestNativeWaits: a view that waits for the peer ends with its context, and with the
// plane.
func TestNativeWaits(t *testing.T) {
	f, s := placesPlane(t)
	r := f.routes[0]
	r.wait = make(chan struct{})
	view := func(ctx context.Context, at uint64) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, release, err := s.(step.Viewer).View(ctx, 0, at, 16)
			if err == nil {
				release()
			}
			done <- err
		}()
		next(t, "View", r.came)
		return done
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	done := view(ctx, 8)
	cancel(errTest)
	if err := next(t, "end by the context", done); !errors.Is(err, errTest) {
		t.Error(err)
	}

	done = view(t.Context(), 8)
	close(r.wait)
	if err := next(t, "end by itself", done); err != nil {
		t.Error(err)
	}

	r.wait = make(chan struct{})
	done = view(context.Background(), 64) // another extent: what was viewed is there
	reason := errors.New("the writer was closed")
	f.Fail(reason)
	if err := next(t, "end by the plane", done); !errors.Is(err, reason) {
		t.Error(err)
	}
	r.wantViews(t, "one was given", 1, 0)
}

// TestNativeReadBothFail: an error of either half ends the other.
func TestNativeReadBothFail(t *testing.T) {
	f := newFakes(t, 5, []Extent{{0, 4 * share, 1, 0}}, nil)
	f.answered = func(sentRequest) error { return errTest }
	pieces := []step.Piece{piece(0, 0, 4*share), piece(1, 0, 8)}
	s := f.Step(5, ModeRequest, f.extents)
	if err := s.Read(t.Context(), pieces); !errors.Is(err, errTest) {
		t.Error(err)
	}
	clear(pieces[0].Dst)

	f.answered = func(sentRequest) error { return nil } // never
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Read(ctx, pieces) }()
	for range 2 { // of both reads
		next(t, "request", f.sent)
	}
	cancel(errPush)
	if err := next(t, "end of Read", done); !errors.Is(err, errPush) {
		t.Error(err)
	}
	clear(pieces[0].Dst)
	clear(pieces[1].Dst)
}

// ending is a context that ends when it has been asked some times whether it has.
type ending struct {
	context.Context
	left chan struct{}
}

func endingAfter(t *testing.T, n int) *ending {
	e := &ending{t.Context(), make(chan struct{}, n)}
	for range n {
		e.left <- struct{}{}
	}
	return e
}

func (e *ending) Err() error {
	select {
	case <-e.left:
		return nil
	default:
		return context.DeadlineExceeded
	}
}

// TestNativeCancelled stops in the middle of a copy, after shares of the ordinary size or
// of the size that the reader wants.
func TestNativeCancelled(t *testing.T) {
	for _, batch := range []int{0, share / 4, 4 * share} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) { testNativeCancelled(t, batch) })
	}
}

func testNativeCancelled(t *testing.T, batch int) {
	const total = splitFrom
	f := newFakes(t, 5, []Extent{{0, total, 1, 0}})
	share := share
	if batch > 0 {
		f.cfg.Batch = batch
		share = min(share, batch)
	}
	shares := total / share
	s := f.Step(5, ModeRequest, f.extents)
	want, zero := blockOf(5, 0, total), make([]byte, share)
	for n := range shares {
		pieces := []step.Piece{piece(0, 0, total/2), piece(0, total/2, total/2)}
		if err := s.Read(endingAfter(t, n), pieces); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("after %d shares: %v", n, err)
		}
		copied := 0
		for _, p := range pieces {
			for at := 0; at < len(p.Dst); at += share {
				switch got := p.Dst[at:][:share]; {
				case bytes.Equal(got, want[int(p.Offset)+at:][:share]):
					copied++
				case !bytes.Equal(got, zero):
					t.Fatalf("after %d shares: something else at %d of %d", n, at, p.Offset)
				}
			}
			clear(p.Dst) // the race detector sees who still writes
		}
		if copied != n {
			t.Errorf("after %d shares: %d were copied", n, copied)
		}
	}
	if c := f.Stats()[0].Copied; c != 0 {
		t.Errorf("%d bytes count", c)
	}
}
