package mrcache

import (
	"testing"

	"github.com/weft-fabric/weft/memmon"
)

// TestPinnedIsWhatIsRegistered has the device refuse: nothing was pinned then.
func TestPinnedIsWhatIsRegistered(t *testing.T) {
	for what, count := range map[string]int{"kept": 1, "for one operation": -1} {
		d := newDevice()
		d.limit = 2 * pageSize
		b := newBench(t, d, Config{MaxCount: count})
		d.before = func([]byte) {
			if s := b.Stats(); s.Pinned != 0 {
				t.Errorf("%s: nothing is registered yet: %+v", what, s)
			}
		}
		if _, err := b.Acquire(memmon.Mapped(pages(t, 3).Bytes(), new(owner))); !IsShortage(err) {
			t.Fatalf("%s: %v", what, err)
		}
		big := make([]byte, 1, 16*pageSize)
		r := b.acquire(t, memmon.HeapBytes(big))
		if s := b.Stats(); s.MostPinned > 2*pageSize || s.Pinned != r.Range().Rounded(pageSize).Len {
			t.Errorf("%s: %+v", what, s)
		}
		release(t, &r, nil)
	}
}
