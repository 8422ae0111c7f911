package memmon

import "testing"

// TestRangeBehindTheEnd has posters tell of more than there is behind an address, up to everything from there on.
func TestRangeBehindTheEnd(t *testing.T) {
	r := Range{0x10000, 0x1000}
	for _, event := range []Range{{0x1000, ^uint64(0)}, {0x10fff, ^uint64(0)}, {0x10000, ^uint64(0) - 0xffff}} {
		if !event.Overlaps(r) || !r.Overlaps(event) {
			t.Errorf("%v does not overlap", event)
		}
		e := small(t, 1)
		seen := e.start(r)
		e.post(event)
		e.post(Range{1 << 60, 1}) // the ring has gone round
		if _, got := e.look(seen, r); got == same {
			t.Errorf("%v was forgotten, and its granules as well", event)
		}
	}
}
