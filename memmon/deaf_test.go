package memmon

import "testing"

// TestNoDescriptor is an arbiter of a process that had no descriptor left when it was made: nobody is woken, and all else works.
func TestNoDescriptor(t *testing.T) {
	a := &Arbiter{events: deafEvents()}
	m, err := a.NewArena(pageSize)
	if err != nil {
		t.Fatal(err)
	}
	var told []Range
	detach := a.Attach(func(r Range) { told = append(told, r) }, nil)
	a.events.want(RangeOf(m.Bytes()), 1) // as a watch does
	want := RangeOf(m.Bytes())
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if len(told) != 1 || told[0] != want {
		t.Errorf("told %v, not %v", told, want)
	}
	detach()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
