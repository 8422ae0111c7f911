package provutil

import (
	"testing"
	"testing/synctest"

	"github.com/weft-fabric/weft/fabric/provider"
)

// A wait that finds what it waits for in the moment in which it arms for its sleep leaves the sleeper awake: else nobody would
// be armed any more, and a peer that comes later would not ring.
func TestWaitThatArmsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{Spin: -1}, 8)
		defer e.core.Stop()
		synctest.Wait() // the sleeper is parked
		came := false
		e.arming = func() {
			if !came {
				came = true
				e.arrive(7)
			}
		}
		var c [1]provider.Completion
		if n, err := e.q.Wait(t.Context(), c[:]); n != 1 || err != nil || c[0].Context != 7 || !came {
			t.Errorf("%d, %v, %+v", n, err, c[0])
		}
		synctest.Wait() // and the program calls nothing more
		if !e.isArmed() {
			t.Error("nobody is armed")
		}
		e.arrive(8)
		synctest.Wait()
		e.core.Lock()
		n := e.q.Unread()
		e.core.Unlock()
		if n != 1 {
			t.Errorf("%d completions of what came later", n)
		}
	})
}
