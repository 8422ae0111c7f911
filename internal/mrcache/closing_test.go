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
	for looks := 1; looks <= 5; looks++ {
		b := newBench(t, newDevice(), Config{})
		k := &closing{arena(t, b.arbiter, 1), looks}
		r, err := b.Acquire(k)
		if err == nil {
			err = errors.Join(r.Release(), k.Close())
		}
		var want error // closed after it was released
		if looks <= 4 {
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

// TestClosedBefore has a program use a part of an arena that it has closed: nothing is registered of what lies there now.
func TestClosedBefore(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	m := arena(t, b.arbiter, 2)
	part := memmon.Mapped(m.Bytes()[:100], m)
	b.pass(t, part)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.Acquire(part); !errors.Is(err, ErrRemapped) {
			t.Errorf("acquired: %v", err)
		}
	}
	b.idle()
	if n := b.device.count(); n != 0 {
		t.Errorf("%d registrations are left", n)
	}
}

// TestPartOfTheClosed has somebody want a part of an arena that was closed, of which the cache has not heard: what he finds is not his to keep.
func TestPartOfTheClosed(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	elsewhere, err := memmon.NewArbiter()
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	m := arena(t, elsewhere, 2)
	part := m.Bytes()[:100]
	b.pass(t, m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.AcquirePart(m, part); !errors.Is(err, ErrEmpty) {
			t.Errorf("acquired: %v", err)
		}
	}
	b.idle()
	if s := b.Stats(); s.Entries != 0 || b.device.count() != 0 {
		t.Errorf("%d registrations are left: %+v", b.device.count(), s)
	}
}
