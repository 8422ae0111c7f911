package ping

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric"
)

// In a bubble nothing but pauses takes time: all of them pass, and none is in a latency or a rate. However long all of them
// are, neither side believes that the other one has stopped.
func TestPause(t *testing.T) {
	for _, op := range Answered {
		for _, c := range []Config{
			{Provider: "loop"}, {Provider: "loop", Wait: Sleep}, {Provider: "loop", Wait: Sleep, Progress: fabric.Manual},
		} {
			synctest.Test(t, func(t *testing.T) {
				c.Logger = slog.New(spoken{slog.DiscardHandler, func(s string) { t.Errorf("%s, %+v: %s", op, c, s) }})
				w := Work{Op: op, Sizes: []int{8, 100}, Iters: 10, Pause: MaxPause}
				begun := time.Now()
				list, measured, served := pair(t.Context(), c, c, w)
				if measured != nil || served != nil || len(list) != 2 {
					t.Fatalf("%s, %+v: %v; measured: %v; served: %v", op, c, list, measured, served)
				}
				for _, r := range list {
					if r.Latency != (Distribution{}) || r.PauseUS != 1e6 || r.OpsPerS != 10*1e9 { // all in 0 ns, which count as 1
						t.Errorf("%s, %+v: %+v", op, c, r)
					}
				}
				if d, want := time.Since(begun), 2*(10+2)*MaxPause; d != want {
					t.Errorf("%s, %+v: %v instead of %v", op, c, d, want)
				}
			})
		}
	}
}

// The rates of a latency phase that is the only one are without its pauses as well.
func TestPauseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Work{Sizes: []int{8}, Iters: 5, Only: Latency, Pause: time.Millisecond}
		list, measured, served := pair(t.Context(), Config{Provider: "loop"}, Config{Provider: "loop"}, w)
		if measured != nil || served != nil || len(list) != 1 || list[0].OpsPerS != 2*5*1e9 {
			t.Errorf("%v; measured: %v; served: %v", list, measured, served)
		}
	})
}

// A pause ends with the context, at once.
func TestPauseCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := time.AfterFunc(MaxPause*5/2, func() { cancel(why) })
		defer stop.Stop()
		begun := time.Now()
		_, measured, _ := pair(ctx, Config{Provider: "loop"}, Config{Provider: "loop"}, Work{Sizes: []int{8}, Pause: MaxPause})
		if d := time.Since(begun); !errors.Is(measured, why) || d != MaxPause*5/2 {
			t.Errorf("%v after %v", measured, d)
		}
	})
}

// What lasts seconds is done less often.
func TestPauseIters(t *testing.T) {
	for pause, want := range map[time.Duration]int{0: 20_000, time.Nanosecond: 20_000, time.Millisecond: 2000, 50 * time.Millisecond: 40, MaxPause: 20} {
		w := Work{Pause: pause}
		if n := w.iters(8); n != want {
			t.Errorf("%v: %d iterations of 8 bytes, want %d", pause, n, want)
		}
		if n := w.iters(64 << 20); n != min(want, 32) {
			t.Errorf("%v: %d iterations of 64 MiB", pause, n)
		}
		if w.Iters = 30_000; w.iters(8) != 30_000 {
			t.Errorf("%v: not as many as were asked for", pause)
		}
	}
}
