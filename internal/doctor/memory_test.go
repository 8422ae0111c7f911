package doctor

import (
	"testing"

	"github.com/weft-fabric/weft/internal/hooks"
)

// TestUnseenIsNotWorks has an object that could not be looked at: it may be the one that hooks.
func TestUnseenIsNotWorks(t *testing.T) {
	h := HooksReport{PID: 1, Report: hooks.Report{Library: "/libc.so.6", Objects: 3, Unseen: []hooks.Unseen{{Object: "/y.so", Why: "gone"}}}}
	if c := h.check(); c.State != Limited || c.Remedy == "" {
		t.Errorf("%+v", c)
	}
}
