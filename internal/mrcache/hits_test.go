package mrcache

import (
	"testing"

	"github.com/weft-fabric/weft/memmon"
)

// TestHitsOfTheDead has a registration die in use, and asks before the device has let it go: what is released is counted.
func TestHitsOfTheDead(t *testing.T) {
	d := newDevice()
	let := make(chan struct{})
	d.leaving = func(*region) { <-let }
	b := newBench(t, d, Config{})
	own := new(owner)
	k := memmon.Mapped(pages(t, 1).Bytes(), own)
	first, one, two := b.acquire(t, k), b.acquire(t, k), b.acquire(t, k)
	own.n.Add(1)
	for hits, r := range []*Registration[*region]{&first, &one, &two} {
		release(t, r, ErrRemapped)
		if s := b.Stats(); s.Hits != uint64(hits) || s.New != 1 {
			t.Errorf("after %d releases: %+v", hits+1, s)
		}
	}
	close(let)
}

// TestHitsBeginAnew has more hits than an entry can count: the statistics go on.
func TestHitsBeginAnew(t *testing.T) {
	b := newBench(t, newDevice(), Config{})
	k := memmon.Mapped(pages(t, 1).Bytes(), new(owner))
	b.pass(t, k)
	b.ring[0].state.Add(oneHit * allHits)
	if s := b.Stats(); s.Hits != allHits {
		t.Fatalf("%+v", s)
	}
	for range 3 {
		b.pass(t, k)
	}
	if s := b.Stats(); s.Hits != allHits+3 {
		t.Errorf("%+v", s)
	}
}
