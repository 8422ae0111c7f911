package provutil

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// TestF93Views is field report F93: the numbers say how much is held, since when, and how much it was at most.
func TestF93Views(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v Views
		var h [3]HeldView
		is := func(what string, n, most int, bytes uint64, oldest time.Duration) {
			t.Helper()
			var s provider.Stats
			v.Tell(&s)
			want := provider.Stats{Views: n, ViewsMost: most, ViewBytes: bytes, OldestView: oldest}
			if s != want {
				t.Errorf("%s: %+v, want %+v", what, s, want)
			}
		}
		is("none", 0, 0, 0, 0)
		for i := range h {
			v.Add(&h[i], uint64(10*(i+1)))
			<-time.After(time.Second)
		}
		is("three", 3, 3, 60, 3*time.Second)
		if !v.Remove(&h[1]) || v.Remove(&h[1]) {
			t.Error("released twice, or never")
		}
		is("without the second", 2, 3, 40, 3*time.Second)
		v.Remove(&h[0])
		is("the last", 1, 3, 30, time.Second)
		v.Add(&h[0], 5)
		is("the first again", 2, 3, 35, time.Second)
		v.Remove(&h[2])
		is("the first alone", 1, 3, 5, 0)
		v.Remove(&h[0])
		is("none again", 0, 3, 0, 0)
	})
}
