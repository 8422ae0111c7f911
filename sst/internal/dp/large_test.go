//go:build !race

// The race detector keeps shadow memory for all that is allocated, touched or not.

package dp

import (
	"context"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/step"
)

// TestLargeRead cuts a piece that no single reply could bring.
func TestLargeRead(t *testing.T) {
	e, sent := newPlane(t)
	dst := make([]byte, maxRequest+5) // never touched, so never resident
	ctx, cancel := context.WithCancelCause(t.Context())
	done := read(ctx, e, 0, ModeRequest, step.Piece{Rank: 0, Offset: 3, Dst: dst})
	first, second := next(t, "request", sent).msg, next(t, "request", sent).msg
	if first.Offset != 3 || first.Length != maxRequest || second.Offset != 3+maxRequest || second.Length != 5 {
		t.Errorf("%+v, %+v", first, second)
	}
	cancel(errTest)
	if err := next(t, "end of Read", done); !errors.Is(err, errTest) {
		t.Error(err)
	}
}
