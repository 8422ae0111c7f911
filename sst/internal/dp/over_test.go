package dp

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestDrop: blocks of steps that are not delivered go back, before or after those
// are known; a step before them, which a rank that is behind still needs, keeps its own.
func TestDrop(t *testing.T) {
	e, _ := newPlane(t)
	var behind, early, late, after memory
	push(e, 1, 0, blockOf(1, 0, 16), behind.free())
	push(e, 3, 0, blockOf(3, 0, 16), early.free())
	push(e, 5, 0, blockOf(5, 0, 16), after.free())
	e.Drop(2, 4)
	early.want(t, "dropped", 1)
	push(e, 2, 0, blockOf(2, 0, 16), late.free())
	push(e, 4, 1, blockOf(4, 1, 16), late.free())
	late.want(t, "came after that", 2)
	behind.want(t, "the step before", 0)
	after.want(t, "the step after", 0)
	for _, n := range []int64{1, 5} {
		p := piece(0, 0, 16)
		if err := next(t, "end of Read", read(t.Context(), e, n, ModeSpeculative, p)); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
	}
	if err := next(t, "end of Read", read(t.Context(), e, 3, ModeSpeculative, piece(0, 0, 1))); !errors.Is(err, errOver) {
		t.Errorf("a read of a step that was dropped: %v", err)
	}
	e.Forget(1)
	behind.want(t, "the step before has ended", 1)
	after.want(t, "the step after is open", 0)
	e.Forget(5)
	after.want(t, "the step after has ended", 1)
	if len(e.dropped) > 0 {
		t.Errorf("%v are still remembered", e.dropped)
	}
}

// TestDropRows: what is remembered of steps that were dropped does not grow with
// their number, only with the steps between them that are still to come.
func TestDropRows(t *testing.T) {
	e, _ := newPlane(t)
	n := int64(testutil.Count(t, 1000, 100_000))
	for i := range n {
		e.Drop(i, i)
	}
	e.Drop(n+1, n+5) // n is delivered
	e.Drop(n+6, n+6)
	e.Drop(n+9, n+8) // nothing
	if len(e.dropped) != 2 {
		t.Errorf("%d rows: %v", len(e.dropped), e.dropped)
	}
	for i, want := range map[int64]bool{-1: true, 0: true, n - 1: true, n: false, n + 1: true, n + 6: true, n + 7: false, 1<<63 - 1: false} {
		if got := e.over(i); got != want {
			t.Errorf("step %d is over: %v", i, got)
		}
	}
	e.Forget(n)
	e.Drop(0, n)
	if len(e.dropped) != 1 || !e.over(n) {
		t.Errorf("after step %d: %v", n, e.dropped)
	}
}
