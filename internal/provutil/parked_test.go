package provutil

import (
	"testing"
	"testing/synctest"

	"github.com/weft-fabric/weft/fabric/provider"
)

// In manual mode a wait is parked, and a call of another goroutine polls in passing what would have woken it: the wait goes on with what
// that poll has left, and parks again, armed.
func TestWhatACallTakesFromAParkedWait(t *testing.T) {
	for name, call := range map[string]func(t *testing.T, c *Core){
		"read": func(t *testing.T, c *Core) {
			q, err := NewCQ(c, provider.CQConfig{Size: 8})
			if err != nil {
				t.Error(err)
			}
			_, _ = q.Read(make([]provider.Completion, 1))
		},
		"counter": func(_ *testing.T, c *Core) { NewCounter(c).Value() },
		"wait":    func(t *testing.T, c *Core) { _ = NewCounter(c).Wait(t.Context(), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := rig(t, CoreConfig{Progress: provider.Manual, Spin: -1}, 8)
				defer synctest.Wait()
				defer e.core.Stop()
				go func() { _, _ = e.q.Wait(t.Context(), make([]provider.Completion, 1)) }()
				synctest.Wait()
				e.mu.Lock()
				e.noise = true // without a ring: the call's poll has taken it
				e.mu.Unlock()
				before := e.pollCount()
				go call(t, e.core)
				synctest.Wait()
				if n := e.pollCount() - before; n < 2 || e.parks != 1 || !e.isArmed() {
					t.Errorf("%d polls, the wait was woken %d times, armed: %v", n, e.parks, e.isArmed())
				}
			})
		})
	}
}
