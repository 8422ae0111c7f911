package provutil

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/fabric/provider"
)

// Waits that yield to programs that compute would lose their slices each time: they yield more and more rarely, until a yield is
// quick again.
func TestSlowYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *fake
		yields, takes, bring := 0, time.Duration(0), false
		e = rig(t, CoreConfig{Progress: provider.Manual, Spin: -1, Yield: func() {
			yields++
			time.Sleep(takes)
			if bring {
				e.arrive(1)
			}
		}}, 4)
		e.core.yields = 3
		// wait gives how often so many waits yield, each.
		waits := func(n int) (list []int) {
			for range n {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				yields = 0
				var c [1]provider.Completion
				n, err := e.q.Wait(ctx, c[:])
				cancel()
				if bring && n == 1 && c[0].Context != 1 || !bring && (n != 0 || err == nil) {
					t.Fatal(n, err)
				}
				list = append(list, yields)
			}
			return list
		}
		check := func(what string, n int, want ...int) {
			t.Helper()
			if d := cmp.Diff(want, waits(n)); d != "" {
				t.Error(what, d)
			}
		}
		check("quick", 3, 3, 3, 3)
		takes = slowYield
		check("as slow as may be", 2, 3, 3)
		takes++
		check("slow", 9, 1, 0, 1, 0, 0, 0, 1, 0, 0)
		takes = 0
		check("resting", 5, 0, 0, 0, 0, 0)
		bring = true
		check("found", 1, 1)
		bring, takes = false, time.Millisecond
		check("slow anew", 4, 1, 0, 1, 0)
		for range 5000 {
			if e.core.habit.wanted() {
				e.core.habit.went(true)
			}
		}
		if e.core.habit.rest > maxRest {
			t.Errorf("%d waits until it yields again", e.core.habit.rest)
		}
	})
}
