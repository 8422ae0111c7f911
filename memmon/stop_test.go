package memmon

import (
	"runtime"
	"testing"
)

// TestStopHasNoWatches has a monitor fail its test when a second cache attaches: the first one still asks its watches, so it is not stopped
// until that has detached.
func TestStopHasNoWatches(t *testing.T) {
	a := withUserfault(t)
	b := pages(t, 1).Bytes()
	p := proofOf(t, a, b)
	if err := EndReader(a); err != nil {
		t.Fatal(err)
	}
	for p.(*observed).watch.Valid() {
		runtime.Gosched()
	}
	second := a.Attach(ignore, nil)
	if s := a.Status(); s.State != Failed {
		t.Errorf("%+v", s)
	}
	if p.(*observed).watch.Valid() { // as a hit does that has begun before the second cache came
		t.Error("valid without a reader")
	}
	p.Close()
	second()
	if s := a.Status(); s.State != Failed || s.Why == nil {
		t.Errorf("%+v", s)
	}
}
