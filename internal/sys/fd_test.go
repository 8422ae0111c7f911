package sys

import (
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/invariants"
)

// An FD is one allocation: the text that says what it is is made for those who look for leaks only.
func TestNewFDFormatsNothing(t *testing.T) {
	const number = 1 << 20 // none is open
	what := strings.Clone("a descriptor")
	if n := testing.AllocsPerRun(100, func() {
		if got := NewFD(number, what).Disown(); got != number {
			t.Error(got)
		}
	}); !invariants.Enabled && n > 1 {
		t.Errorf("%v allocations", n)
	}
	before := len(Open())
	f := NewFD(number, what)
	if open := Open()[before:]; invariants.Enabled != (len(open) == 1) || invariants.Enabled && !strings.HasPrefix(open[0], "descriptor 1048576 (a descriptor)\n") {
		t.Errorf("open: %q", open)
	}
	_ = f.Disown()
	if open := Open()[before:]; len(open) != 0 {
		t.Errorf("closed, and listed: %q", open)
	}
}
