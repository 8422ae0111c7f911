package memmon

import (
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
)

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

// TestFoundPageWithoutDescriptor finds a page whose descriptor somebody has closed: it is the one that others post to, nevertheless.
func TestFoundPageWithoutDescriptor(t *testing.T) {
	m, err := sys.MapAnonymous(eventsBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	first, err := eventsOf(m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.format(); err != nil {
		t.Fatal(err)
	}
	if err := first.wake.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := foundEvents(m.Bytes())
	if err != nil || !second.others {
		t.Fatal(err)
	}
	r := Range{1 << 40, 1}
	before := second.start(r)
	first.post(r)
	if _, a := second.look(before, r); a != changed {
		t.Error("what is posted is not seen")
	}
}
