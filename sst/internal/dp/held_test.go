package dp

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/step"
)

// TestHeld: what was pushed is lent from where it lies; what was not is not asked
// for.
func TestHeld(t *testing.T) {
	e, sent := newPlane(t)
	m := memory{}
	push(e, 0, 1, blockOf(0, 1, 64), m.free())
	s := e.Step(0, ModeSpeculative).(step.Holder)
	b, release, err := s.Held(t.Context(), 1, 8, 16)
	if err != nil || !bytes.Equal(b, blockOf(0, 1, 64)[8:24]) || cap(b) != len(b) {
		t.Fatalf("% x, %v", b, err)
	}
	e.Forget(0)
	m.want(t, "while it is lent", 0)
	release()
	m.want(t, "given back", 1)

	for _, bad := range []struct {
		rank      int
		offset, n uint64
		want      error
	}{{1, 60, 5, errPush}, {1, 65, 1, errPush}, {-1, 0, 1, errRank}, {3, 0, 1, errRank}} {
		m := memory{}
		push(e, 1, 1, blockOf(1, 1, 64), m.free())
		b, release, err := e.Step(1, ModeSpeculative).(step.Holder).Held(t.Context(), bad.rank, bad.offset, bad.n)
		if !errors.Is(err, bad.want) || b != nil || release != nil {
			t.Errorf("rank %d, %d bytes at %d: %v", bad.rank, bad.n, bad.offset, err)
		}
	}

	for _, mode := range []int32{ModeRequest, ModeLearned} {
		b, release, err := e.Step(2, mode).(step.Holder).Held(t.Context(), 0, 0, 8)
		if b != nil || release != nil || err != nil {
			t.Errorf("mode %d: %d bytes, %v", mode, len(b), err)
		}
	}
	nothingIn(t, "request", sent)
}

// nothingIn fails if something is there.
func nothingIn[T any](t *testing.T, what string, ch <-chan T) {
	t.Helper()
	select {
	case v := <-ch:
		t.Errorf("unexpected %s: %+v", what, v)
	default:
	}
}
