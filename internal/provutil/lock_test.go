package provutil

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weft-fabric/weft/fabric/provider"
)

func (e *fake) pollCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.polls
}

// leave is a call of the program that leaves something.
func (e *fake) leave(how func()) {
	e.core.Lock()
	defer e.core.Unlock()
	how()
}

// What a call leaves somebody goes on with, until nothing moves, and then the engine is armed: the sleeper, a wait that is parked
// in its place, or the event loop that relies on being told.
func TestWhatACallLeaves(t *testing.T) {
	ways := func(e *fake) []func() { // the n-th has made n polls itself
		return []func(){e.core.Later, func() {
			e.noise = true
			e.core.Poll()
		}}
	}
	t.Run("auto", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, CoreConfig{Spin: -1}, 8)
			defer e.core.Stop()
			for i, how := range ways(e) {
				synctest.Wait()
				before := e.pollCount()
				e.leave(how)
				synctest.Wait()
				if n := e.pollCount() - before; n <= i || !e.isArmed() {
					t.Errorf("way %d: %d polls, armed: %v", i, n, e.isArmed())
				}
			}
			e.leave(func() {})
			before := e.pollCount()
			synctest.Wait()
			if n := e.pollCount() - before; n != 0 {
				t.Errorf("%d polls for nothing", n)
			}
		})
	})
	t.Run("manual, a wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, CoreConfig{Progress: provider.Manual, Spin: -1}, 8)
			done := make(chan error)
			go func() {
				var c [1]provider.Completion
				_, err := e.q.Wait(t.Context(), c[:])
				done <- err
			}()
			for i, how := range ways(e) {
				synctest.Wait()
				before := e.pollCount()
				e.leave(how)
				synctest.Wait()
				if n := e.pollCount() - before; n <= i || !e.isArmed() {
					t.Errorf("way %d: %d polls, armed: %v", i, n, e.isArmed())
				}
			}
			e.core.Stop()
			if err := <-done; !errors.Is(err, provider.ErrClosed) {
				t.Error(err)
			}
		})
	})
	t.Run("manual, an event loop", func(t *testing.T) {
		e, loop := belled(t, 0)
		for _, how := range ways(e) {
			e.armedNow(t)
			e.leave(how)
			told(t, loop)
		}
	})
}

// What is left during a poll, be it of the engine or while it arms, counts as movement: who polls goes on.
func TestWhatAPollLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{Spin: -1}, 8)
		defer e.core.Stop()
		synctest.Wait()
		left := 3
		e.arming = func() {
			if left > 0 {
				left--
				e.core.Later()
			}
		}
		e.arrive(1)
		synctest.Wait()
		if left > 0 || !e.isArmed() {
			t.Errorf("%d times left, armed %v", left, e.isArmed())
		}
	})
}

// What is to be said to the program is said without the lock, whoever gives it back.
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{Spin: -1}, 8)
		defer e.core.Stop()
		synctest.Wait()
		var said []string
		say := func(s string) {
			e.core.After(func() {
				e.leave(func() { said = append(said, s) })
			})
		}
		e.leave(func() {
			say("a call")
			say("another")
			if len(said) > 0 {
				t.Error("said with the lock")
			}
		})
		once := sync.OnceFunc(func() { say("the sleeper") })
		e.arming = once
		e.arrive(1)
		synctest.Wait()
		if len(said) != 3 || said[0] != "a call" || said[1] != "another" || said[2] != "the sleeper" {
			t.Errorf("said: %q", said)
		}
	})
}

// TryWait polls: it may take the ring that was for the sleeper, which then has to go on with what the poll could not end.
func TestTryWaitThatMovesSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{Spin: -1, NewBell: SystemBell}, 8)
		defer func() {
			_ = e.q.Close()
			e.core.Stop()
		}()
		if _, err := e.q.Descriptor(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		e.mu.Lock()
		e.noise = true // and the ring is taken
		e.mu.Unlock()
		before := e.pollCount()
		if e.q.TryWait() {
			t.Error("it says wait, and the engine is in the middle of something")
		}
		synctest.Wait()
		if n := e.pollCount() - before; n < 2 {
			t.Errorf("%d polls", n)
		}
		if !e.q.TryWait() {
			t.Error("it does not say wait, and nothing is there")
		}
	})
}

// A wait that polls while the core stops ends.
func TestStopWhileAWaitPolls(t *testing.T) {
	for _, mode := range []provider.Progress{provider.Auto, provider.Manual} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e *fake
				stop := sync.OnceFunc(func() { e.core.Stop() })
				e = rig(t, CoreConfig{Progress: mode, Spin: -1, Yield: stop}, 8)
				var c [1]provider.Completion
				if _, err := e.q.Wait(t.Context(), c[:]); !errors.Is(err, provider.ErrClosed) {
					t.Error(err)
				}
			})
		})
	}
}
