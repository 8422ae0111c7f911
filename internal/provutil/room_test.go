package provutil

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
)

// refusal has a post refused on the queue of one place, which is then free again.
func (e *fake) refusal() {
	e.core.Lock()
	defer e.core.Unlock()
	e.q.Reserve(1)
	_ = e.q.Refuse()
	e.q.Release(1)
}

// roomWithin waits for the word of room.
func roomWithin(ctx context.Context, q *CQ, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var c [1]provider.Completion
	_, err := q.Wait(ctx, c[:])
	return err
}

// Who was refused hears of room also if another one waits, and is told, before it does.
func TestRoomIsForThePoster(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		for _, late := range []time.Duration{0, time.Millisecond, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				e := rig(t, cfg, 1)
				defer e.core.Stop()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				words := 0
				go func() {
					var c [1]provider.Completion
					for {
						if _, err := e.q.Wait(ctx, c[:]); err != nil {
							return
						}
						words++
					}
				}()
				synctest.Wait()
				e.refusal()
				synctest.Wait()
				<-time.After(late)
				synctest.Wait()
				if words > 30 {
					t.Errorf("%d words of room in %v", words, late)
				}
				if err := roomWithin(ctx, e.q, 2*late+time.Millisecond); err != nil {
					t.Errorf("a wait %v after there was room: %v", late, err)
				}
			})
		}
	})
}

// Reminders become rare, and there is none before a post was refused.
func TestRemindersBecomeRare(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, cfg, 1)
			defer e.core.Stop()
			if err := roomWithin(t.Context(), e.q, 24*time.Hour); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("nobody was refused: %v", err)
			}
			e.refusal()
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			words := 0
			var c [1]provider.Completion
			for ; ctx.Err() == nil && words < 1000; words++ {
				_, _ = e.q.Wait(ctx, c[:])
			}
			if words < 20 || words > 35 {
				t.Errorf("%d words of room in a day", words)
			}
			e.refusal()
			if err := errors.Join(roomWithin(t.Context(), e.q, time.Nanosecond), roomWithin(t.Context(), e.q, time.Millisecond)); err != nil {
				t.Errorf("after the next refusal: %v", err)
			}
		})
	})
}

// Only waits remind: while nobody waits nothing runs, in either mode, and a wait of a queue that is closed leaves nothing behind.
func TestNobodyWaitsNobodyReminds(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, cfg, 1)
			defer e.core.Stop()
			e.refusal()
			_, _ = roomWithin(t.Context(), e.q, time.Nanosecond), roomWithin(t.Context(), e.q, time.Nanosecond) // the second would have been reminded
			state := func() Reminder {
				e.core.Lock()
				defer e.core.Unlock()
				return e.q.remind
			}
			before := state()
			if before.at.IsZero() {
				t.Error("no wait was to be reminded")
			}
			<-time.After(time.Hour)
			synctest.Wait()
			if after := state(); after != before {
				t.Errorf("nobody waits, and the reminder was %+v and is %+v", before, after)
			}
			if err := roomWithin(t.Context(), e.q, time.Nanosecond); err != nil {
				t.Errorf("a wait when it is past the time: %v", err)
			}
			if err := e.q.Close(); err != nil {
				t.Error(err)
			}
			if err := roomWithin(t.Context(), e.q, time.Hour); !errors.Is(err, provider.ErrClosed) || !state().at.IsZero() {
				t.Errorf("a wait on a closed queue: %v, and the reminder is %+v", err, state())
			}
		})
	})
}

// deafBell is a Bell that nobody hears.
type deafBell struct{}

func (deafBell) Ring()        {}
func (deafBell) Clear()       {}
func (deafBell) Fd() int      { return 77 }
func (deafBell) Close() error { return nil }

// Who was refused and goes on in an event loop, or a select, hears of room that others were told of before: at once, and once.
func TestRoomIsForTheEventLoop(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		for _, others := range []int{0, 1} {
			synctest.Test(t, func(t *testing.T) {
				cfg.NewBell = func(int) (Bell, error) { return deafBell{}, nil }
				e := rig(t, cfg, 1)
				e.fd = deafBell{}
				defer e.core.Stop()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				for range others {
					go func() {
						var c [1]provider.Completion
						for ctx.Err() == nil {
							_, _ = e.q.Wait(ctx, c[:])
						}
					}()
				}
				synctest.Wait()
				e.refusal()
				synctest.Wait()
				if _, err := e.q.Descriptor(); err != nil {
					t.Fatal(err)
				}
				if e.q.TryWait() {
					t.Error("TryWait lets the event loop sleep, though there is room")
				}
				if !e.q.TryWait() {
					t.Error("TryWait says twice that there is room")
				}
				e.refusal()
				synctest.Wait()
				select {
				case <-e.q.Ready():
				default:
					t.Error("the first Ready says nothing, though there is room")
				}
				select {
				case <-e.q.Ready():
					t.Error("Ready says twice that there is room")
				default:
				}
				e.refusal()
				select {
				case <-e.q.Ready():
				default:
					t.Error("Ready says nothing of the next room")
				}
			})
		}
	})
}

// A wait that ends by a signal leaves the word of room to the next one, or to another.
func TestSignalLeavesRoom(t *testing.T) {
	for waits := 1; waits <= 2; waits++ {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, CoreConfig{Spin: -1}, 1)
			defer e.core.Stop()
			ends := make(chan error, waits)
			for range waits {
				go func() {
					var c [1]provider.Completion
					_, err := e.q.Wait(t.Context(), c[:])
					ends <- err
				}()
			}
			synctest.Wait()
			e.core.Lock()
			e.q.Reserve(1)
			_ = e.q.Refuse()
			e.q.Release(1)
			e.q.waiters.first().signal = true // Signal, before it has run
			e.core.Unlock()
			signals := 0
			for range waits {
				if err := <-ends; errors.Is(err, provider.ErrSignal) {
					signals++
				} else if err != nil {
					t.Error(err)
				}
			}
			if signals != 1 {
				t.Errorf("%d signals", signals)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			var c [1]provider.Completion
			if _, err := e.q.Wait(ended, c[:]); waits == 1 && err != nil { // of two the other one has it
				t.Errorf("of room: %v", err)
			}
		})
	}
}

// The wait that has the word is not the only one: who fell asleep after the word gets it when the first leaves with a signal.
func TestSignalPassesRoom(t *testing.T) {
	e := rig(t, CoreConfig{Progress: provider.Manual, Spin: -1}, 1)
	e.core.Lock()
	defer e.core.Unlock()
	told, late := e.core.newWaiter(), e.core.newWaiter()
	told.room, told.signal = true, true
	e.q.waiters.add(&late.of)
	if _, err := e.q.leave(told, nil, nil); !errors.Is(err, provider.ErrSignal) || len(late.ch) != 1 || !e.q.over(late) {
		t.Errorf("%v, and who waits is not woken", err)
	}
	late.of.remove()
}

// A place that is given back without a completion is one for what waits at a peer.
func TestReleaseEndsStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{Spin: -1}, 1)
		defer e.core.Stop()
		e.core.Lock()
		e.q.Reserve(1)
		e.core.Unlock()
		e.arrive(7)
		synctest.Wait()
		e.core.Lock()
		e.q.Release(1)
		e.core.Unlock()
		synctest.Wait()
		var c [1]provider.Completion
		e.core.Lock()
		defer e.core.Unlock()
		if n := e.q.take(c[:]); n != 1 || c[0].Context != 7 {
			t.Errorf("%d completions", n)
		}
	})
}
