package provutil

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// A sleeping wait is woken by what arrives; nothing that completes nothing ends it (F48).
func TestF48Wait(t *testing.T) {
	bothModes(t, func(t *testing.T, c CoreConfig) {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, c, 8)
			defer e.core.Stop()
			for i := range uint64(3) {
				start := time.Now()
				go func() {
					for range 5 {
						<-time.After(time.Hour)
						e.arrive()
					}
					e.arrive(i)
				}()
				var got [2]provider.Completion
				n, err := e.q.Wait(t.Context(), got[:])
				if n != 1 || err != nil || got[0].Context != i || time.Since(start) != 5*time.Hour {
					t.Errorf("%d, %v, %+v after %v", n, err, got[0], time.Since(start))
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			start := time.Now()
			var got [2]provider.Completion
			n, err := e.q.Wait(ctx, got[:])
			if n != 0 || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
				t.Errorf("%d, %v after %v", n, err, time.Since(start))
			}
		})
	})
}

// An idle domain sleeps armed, without a timer: while nobody does anything the clock of the bubble
// runs to where the test wants it, and the engine was not polled meanwhile.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{}, 8)
		defer e.core.Stop()
		var c [1]provider.Completion
		for range 3 {
			_, _ = e.q.Read(c[:]) // a program polls, and stops
			if e.isArmed() {
				t.Error("armed while a program polls")
			}
			<-time.After(time.Second)
			synctest.Wait()
			if !e.isArmed() {
				t.Error("not armed again")
			}
			before, parks := e.polls, e.parks
			<-time.After(1000 * time.Hour)
			if e.polls != before || e.parks != parks {
				t.Errorf("%d polls, %d parks in idleness", e.polls-before, e.parks-parks)
			}
		}
	})
}

// A program that goes on polling keeps the engine disarmed, and peers need not ring.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{}, 100)
		defer e.core.Stop()
		var c [1]provider.Completion
		_, _ = e.q.Read(c[:])
		for i := range uint64(50) {
			<-time.After(watchEvery / 2)
			e.arrive(i)
			if n, _ := e.q.Read(c[:]); n != 1 || c[0].Context != i {
				t.Errorf("%d, %+v", n, c[0])
			}
		}
		if e.rings != 0 {
			t.Errorf("%d rings", e.rings)
		}
		// It stops: what arrives is moved without it soon.
		e.arrive(99)
		<-time.After(2 * watchEvery)
		synctest.Wait()
		e.core.Lock()
		unread := e.q.Unread()
		e.core.Unlock()
		if unread != 1 {
			t.Errorf("%d completions", unread)
		}
	})
}

// A wait that goes to sleep right after a program polled is woken at once, not when the watch looks.
func TestSleepAfterPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{}, 8)
		defer e.core.Stop()
		var c [1]provider.Completion
		_, _ = e.q.Read(c[:])
		synctest.Wait()
		start := time.Now()
		woke := make(chan time.Duration)
		go func() {
			_, _ = e.q.Wait(t.Context(), c[:])
			woke <- time.Since(start)
		}()
		synctest.Wait()
		if !e.isArmed() {
			t.Error("somebody sleeps, and the engine is not armed")
		}
		e.arrive(1)
		if d := <-woke; d != 0 {
			t.Errorf("after %v", d)
		}
	})
}

// In manual mode one waits in the engine, and the others behind it: each gets its own.
func TestManualQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{Progress: provider.Manual}, 8)
		defer e.core.Stop()
		other, err := NewCQ(e.core, provider.CQConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		results := make(chan uint64, 10)
		ctx, cancel := context.WithCancel(t.Context())
		wait := func(ctx context.Context, q *CQ) {
			wg.Go(func() {
				var c [1]provider.Completion
				if n, err := q.Wait(ctx, c[:]); n == 1 {
					results <- c[0].Context
				} else if !errors.Is(err, context.Canceled) {
					t.Error(n, err)
				}
			})
			synctest.Wait()
		}
		wait(ctx, other) // the one in the engine
		wait(t.Context(), e.q)
		wait(t.Context(), e.q)
		e.arrive(1)
		if got := <-results; got != 1 {
			t.Error(got)
		}
		cancel() // the role goes to another one
		synctest.Wait()
		e.arrive(2)
		if got := <-results; got != 2 {
			t.Error(got)
		}
		wg.Wait()
	})
}

// Stop ends the waits, and is done when it returns.
func TestStop(t *testing.T) {
	bothModes(t, func(t *testing.T, c CoreConfig) {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, c, 8)
			results := make(chan error, 3)
			for range 3 {
				go func() {
					var c [1]provider.Completion
					_, err := e.q.Wait(context.Background(), c[:])
					results <- err
				}()
			}
			synctest.Wait()
			e.core.Stop()
			for range 3 {
				if err := <-results; !errors.Is(err, provider.ErrClosed) {
					t.Error(err)
				}
			}
			e.core.Stop()
			var got [1]provider.Completion
			if n, err := e.q.Wait(t.Context(), got[:]); n != 0 || !errors.Is(err, provider.ErrClosed) {
				t.Error(n, err)
			}
		})
	})
}

// Four goroutines read and wait while completions come: each is seen once, and nobody sleeps for ever (F49).
func TestF49Mixed(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		e := rig(t, cfg, 16)
		const n = 10_000
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var mu sync.Mutex
		seen := make(map[uint64]bool)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				c := make([]provider.Completion, 1+i)
				for ctx.Err() == nil {
					var got int
					if i == 0 {
						got, _ = e.q.Read(c)
					} else {
						got, _ = e.q.Wait(ctx, c)
					}
					mu.Lock()
					for _, x := range c[:got] {
						if seen[x.Context] {
							t.Errorf("%d twice", x.Context)
						}
						seen[x.Context] = true
					}
					if len(seen) == n {
						cancel()
					}
					mu.Unlock()
				}
			})
		}
		for i := range uint64(n) {
			e.arrive(i)
		}
		wg.Wait()
		if len(seen) != n {
			t.Errorf("%d of %d were seen", len(seen), n)
		}
	})
}

func TestTracer(t *testing.T) {
	var slept, woken, completed int
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{Tracer: &provider.Tracer{
			Sleep: func() { slept++ }, Wake: func() { woken++ }, Complete: func(*provider.Completion) { completed++ },
		}}, 8)
		defer e.core.Stop()
		var wg sync.WaitGroup
		wg.Go(func() {
			var c [1]provider.Completion
			_, _ = e.q.Wait(t.Context(), c[:])
		})
		synctest.Wait() // all sleep
		e.arrive(1)
		wg.Wait()
		synctest.Wait()
	})
	if slept == 0 || woken == 0 || completed != 1 {
		t.Error(slept, woken, completed)
	}
}
