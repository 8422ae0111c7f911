package mrcache

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/invariants"
)

func TestEntryStates(t *testing.T) {
	var e entry[int]
	e.state.Store(1)
	if e.dieIdle(true) || !e.hit() || e.unuse() || e.unuse() {
		t.Error("in use")
	}
	if e.dieIdle(false) || e.state.Load() != 0 {
		t.Error("used since it was last asked")
	}
	if !e.use() || e.unuse() || !e.dieIdle(false) {
		t.Error("a look is no use")
	}
	if e.hit() || e.dieIdle(true) {
		t.Error("dead, and used again")
	}
	if first, idle := e.die(); first || !idle {
		t.Error("it died before")
	}
	e.state.Store(2 | recent)
	if first, idle := e.die(); !first || idle {
		t.Error("two use it, and it died first now")
	}
	if e.use() || e.unuse() || !e.unuse() {
		t.Error("the second one is the last")
	}
	if invariants.Enabled {
		defer func() {
			if recover() == nil {
				t.Error("released more often than used")
			}
		}()
		e.state.Store(0)
		e.unuse()
	}
}

// TestEntryIsBuriedOnce has some use an entry while it dies, in one of the ways: exactly one is told to bury it, and nobody uses it then.
func TestEntryIsBuriedOnce(t *testing.T) {
	for round := range 100 {
		var e entry[int]
		var buried, using atomic.Int32
		bury := func() {
			if buried.Add(1); using.Load() != 0 {
				t.Error("buried in use")
			}
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for n := 0; n < 50 && e.hit(); n++ {
					using.Add(1)
					runtime.Gosched()
					using.Add(-1)
					if e.unuse() {
						bury()
					}
				}
			})
		}
		all.Go(func() {
			if round%2 == 0 {
				for !e.dieIdle(round%4 == 0) {
					runtime.Gosched()
				}
				bury()
			} else if _, idle := e.die(); idle {
				bury()
			}
		})
		all.Wait()
		if buried.Load() != 1 {
			t.Fatalf("buried %d times", buried.Load())
		}
	}
}
