package cp

import "testing"

// TestActionsAreUsedAgain: a list belongs to the caller until it is given back, and
// holds nothing then.
func TestActionsAreUsedAgain(t *testing.T) {
	var a actions[*int]
	a.emit(new(int))
	first := a.emitted()
	a.emit(new(int))
	second := a.emitted()
	if &first[0] == &second[0] {
		t.Error("a list that was not given back was used again")
	}
	a.Done(first)
	a.Done(nil) // as of an event that nothing follows from
	a.emit(new(int))
	if third := a.emitted(); &third[0] != &first[0] || first[:2][1] != nil {
		t.Error("a list that was given back should be used again, and be empty")
	}
	if a.emitted() != nil {
		t.Error("actions of nothing")
	}
	if got := testing.AllocsPerRun(100, func() {
		a.emit(nil)
		a.Done(a.emitted())
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
	a.Done(make([]*int, maxSpare+1))
	if cap(a.spare) > maxSpare {
		t.Error("a huge list is kept")
	}
}
