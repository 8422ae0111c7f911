package mrcache

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/memmon"
)

// closing is an arena that is closed just after somebody has looked where it lies.
type closing struct {
	*memmon.Arena
	looks int // until then
}

func (c *closing) Bytes() []byte {
	b := c.Arena.Bytes()
	if c.looks--; c.looks == 0 {
		_ = c.Close()
	}
	return b
}

// TestClosedWhileAcquired has an arena closed at each step: what lies at its address is never registered under a number that will not change any more.
func TestClosedWhileAcquired(t *testing.T) {
	for looks := 1; looks <= 4; looks++ {
		b := newBench(t, newDevice(), Config{})
		k := &closing{arena(t, b.arbiter, 1), looks}
		r, err := b.Acquire(k)
		if err == nil {
			err = errors.Join(r.Release(), k.Close())
		}
		var want error // closed after it was released
		if looks <= 3 {
			want = ErrEmpty
		}
		if !errors.Is(err, want) {
			t.Errorf("closed at look %d: %v", looks, err)
		}
		b.idle()
		if n := b.device.count(); n != 0 {
			t.Errorf("closed at look %d: %d registrations are left", looks, n)
		}
	}
}
