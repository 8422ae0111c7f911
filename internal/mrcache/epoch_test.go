package mrcache

import (
	"testing"

	"github.com/weft-fabric/weft/memmon"
)

// TestNewerThanTheFlush has somebody look who began before a Flush, after which another one has registered the memory: that is as good as it gets.
func TestNewerThanTheFlush(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	k := memmon.Mapped(pages(t, 1).Bytes(), new(owner))
	before := b.arbiter.Epoch()
	b.arbiter.Flush()
	newer := b.pass(t, k)
	if r, dead := b.find(k, memmon.RangeOf(k.Bytes()), before); dead != nil || r.Handle() != newer {
		t.Errorf("a hit %v, dead %v", r.entry, dead)
	} else {
		release(t, &r, nil)
	}
}

// TestFlushedWhileRegistering has the slower one take what was registered since the Flush, and not drop it.
func TestFlushedWhileRegistering(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	k := memmon.Mapped(pages(t, 1).Bytes(), new(owner))
	var newer *region
	b.device.after = func([]byte) {
		b.device.after = nil
		b.arbiter.Flush()
		newer = b.pass(t, k)
	}
	if slower := b.pass(t, k); slower != newer {
		t.Errorf("region %d, not %d", slower.id, newer.id)
	}
	if s := b.Stats(); s.New != 1 || s.Raced != 1 || s.Hits != 1 || s.DeadOwner != 0 || s.Entries != 1 {
		t.Errorf("%+v", s)
	}
}
