package provutil

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/testutil"
)

// ends are how waits ended, by what they returned.
type ends struct {
	mu                              sync.Mutex
	completions, signals, cancelled int
	seen                            map[uint64]bool
	odd                             []string
}

func (e *ends) wait(ctx context.Context, q *CQ, room int) {
	c := make([]provider.Completion, room)
	n, err := q.Wait(ctx, c)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case n > 0 && err == nil:
		for _, c := range c[:n] {
			if e.seen[c.Context] {
				e.odd = append(e.odd, fmt.Sprintf("%d came twice", c.Context))
			}
			e.seen[c.Context] = true
		}
		e.completions += n
	case errors.Is(err, provider.ErrSignal):
		e.signals++
	case errors.Is(err, context.Canceled):
		e.cancelled++
	default:
		e.odd = append(e.odd, fmt.Sprintf("%d, %v", n, err))
	}
}

// Many wait on two queues of one domain, are cancelled and signalled, while completions come in batches. Whenever all is
// quiet, nobody sleeps who has something to wake for, and nothing was given twice.
func TestWaitersNeverOversleep(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		for range testutil.Count(t, 30, 1000) {
			r := testutil.Rand(t)
			synctest.Test(t, func(t *testing.T) { crowd(t, cfg, r) })
		}
	})
}

func crowd(t *testing.T, cfg CoreConfig, r *rand.Rand) {
	e := rig(t, cfg, 64)
	defer e.core.Stop()
	other, err := NewCQ(e.core, provider.CQConfig{Size: 64})
	if err != nil {
		t.Fatal(err)
	}
	queues := []*CQ{e.q, other}
	got := &ends{seen: make(map[uint64]bool)}
	var all sync.WaitGroup
	var cancels []context.CancelFunc
	waiting, pushed, signals := [2]int{}, 0, 0
	for range 60 {
		i := r.IntN(2)
		switch r.IntN(6) {
		case 0, 1:
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			room := 1 + r.IntN(3)
			waiting[i]++
			all.Go(func() { got.wait(ctx, queues[i], room) })
		case 2:
			if i == 0 {
				for range 1 + r.IntN(3) {
					pushed++
					e.arrive(uint64(pushed))
				}
				break
			}
			e.core.Lock() // by a post of this side
			if other.Reserve(1) {
				pushed++
				other.Push(&provider.Completion{Context: uint64(pushed)})
			}
			e.core.Unlock()
		case 3:
			if n := len(cancels); n > 0 {
				k := r.IntN(n)
				cancels[k]()
				cancels = append(cancels[:k:k], cancels[k+1:]...)
			}
		case 4:
			e.core.Lock()
			sleeps := queues[i].waiters.first() != nil
			e.core.Unlock()
			if sleeps { // else it is kept, and which wait gets it is open
				queues[i].Signal()
				signals++
			}
		default:
			e.arrive() // nothing for a queue
		}
		if r.IntN(2) == 0 {
			continue
		}
		synctest.Wait()
		e.core.Lock()
		for k, q := range queues {
			if q.n > 0 && q.waiters.first() != nil {
				t.Errorf("queue %d: %d completions, and somebody sleeps", k, q.n)
			}
		}
		if cfg.Progress == provider.Manual && e.core.asleep.first() != nil && e.core.parker == nil {
			t.Error("waits sleep, and none of them in the engine")
		}
		e.core.Unlock()
	}
	for _, cancel := range cancels {
		cancel()
	}
	all.Wait()
	var c [64]provider.Completion
	left := 0
	for _, q := range queues {
		n, err := q.Read(c[:])
		if err != nil {
			t.Error(err)
		}
		left += n
	}
	if got.completions+left != pushed || got.signals > signals {
		t.Errorf("%d completions were waited for, %d left, of %d; %d signals of %d", got.completions, left, pushed, got.signals, signals)
	}
	if n := got.cancelled + got.signals; n > waiting[0]+waiting[1] || len(got.odd) > 0 {
		t.Errorf("%d ends of %v waits; %v", n, waiting, got.odd)
	}
}

// What a wait leaves behind in its record is not the next one's.
func TestWaiterIsClean(t *testing.T) {
	e := rig(t, CoreConfig{Progress: provider.Manual, Spin: -1}, 4)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var c [1]provider.Completion
	e.q.Signal()
	if _, err := e.q.Wait(ended, c[:]); !errors.Is(err, provider.ErrSignal) {
		t.Error(err)
	}
	e.core.Lock()
	w := e.core.spare
	e.core.wake(w) // late, for the wait that is over
	e.core.freeWaiter(e.core.newWaiter())
	if w == nil || e.core.spare != w || len(w.ch) != 0 || w.signal || w.told || w.room {
		t.Errorf("%+v", w)
	}
	e.core.Unlock()
	for range 3 {
		if n, err := e.q.Wait(ended, c[:]); n != 0 || !errors.Is(err, context.Canceled) {
			t.Error(n, err)
		}
	}
}

// A program that waits on the channel gets, from the Read that finds nothing, an armed engine: what comes next is sent on
// the channel at once, without a timer.
func TestReadyIsArmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, CoreConfig{}, 8)
		defer e.core.Stop()
		ready := e.q.Ready()
		var c [4]provider.Completion
		for i := range uint64(5) {
			for n := 1; n > 0; n, _ = e.q.Read(c[:]) {
			}
			synctest.Wait()
			if !e.isArmed() {
				t.Fatal("a program went to its select, and the engine is not armed")
			}
			start := time.Now()
			go e.arrive(i)
			<-ready
			if took := time.Since(start); took != 0 {
				t.Errorf("after %v", took)
			}
			if n, err := e.q.Read(c[:]); n != 1 || err != nil || c[0].Context != i {
				t.Fatal(n, err)
			}
		}
		// It comes while the engine is being armed: that Read has it.
		synctest.Wait()
		e.core.Lock()
		once := true
		e.arming = func() {
			if once {
				once = false
				e.arrive(77)
			}
		}
		e.core.Unlock()
		for n := 0; n == 0; n, _ = e.q.Read(c[:]) {
			select {
			case <-ready:
			case <-time.After(time.Hour):
				t.Fatal("lost")
			}
		}
		if c[0].Context != 77 {
			t.Errorf("%+v", c[0])
		}
	})
}

// A post that leaves work which nobody rings for is followed by a poll, in auto mode by itself, in manual mode if
// somebody waits.
func TestNudge(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		synctest.Test(t, func(t *testing.T) {
			e := rig(t, cfg, 8)
			defer e.core.Stop()
			done := make(chan uint64, 1)
			go func() {
				var c [1]provider.Completion
				_, _ = e.q.Wait(t.Context(), c[:])
				done <- c[0].Context
			}()
			synctest.Wait()
			e.core.Lock()
			e.mu.Lock()
			e.pending, e.noise = append(e.pending, 5), true // silently
			e.mu.Unlock()
			e.core.Nudge()
			e.core.Unlock()
			select {
			case got := <-done:
				if got != 5 {
					t.Error(got)
				}
			case <-time.After(time.Hour):
				t.Error("nobody polled")
			}
		})
	})
}

// Start and Stop in any order and number start and leave no goroutine.
func TestStartStop(t *testing.T) {
	bothModes(t, func(t *testing.T, cfg CoreConfig) {
		synctest.Test(t, func(t *testing.T) {
			for _, calls := range []string{"", "s", "ss", "S", "sS", "SsS", "SSs"} {
				e := &fake{bell: make(chan struct{}, 1)}
				e.core = NewCore(e, cfg)
				if e.core.Manual() != (cfg.Progress == provider.Manual) {
					t.Error("which mode is it")
				}
				e.q, _ = NewCQ(e.core, provider.CQConfig{Size: 1})
				for _, call := range calls {
					if call == 's' {
						e.core.Start()
					} else {
						e.core.Stop()
					}
				}
				e.core.Stop()
				synctest.Wait()
				polls := e.polls
				var c [1]provider.Completion
				_, _ = e.q.Read(c[:])
				if e.polls != polls {
					t.Errorf("%q: the engine is called after Stop", calls)
				}
			}
		})
	})
}

// How long a wait polls is as configured: in rounds, and not at all where it is said so.
func TestSpin(t *testing.T) {
	for _, x := range []struct {
		spin  time.Duration
		yield func()
		want  int // polls before it sleeps, at least; the first is always
	}{
		{-1, nil, 1}, {-1, func() {}, 1 + defaultYields}, {10 * spinRound, nil, 11}, {time.Hour, nil, 1_000_000},
	} {
		e := &fake{bell: make(chan struct{}, 1)}
		e.core = NewCore(e, CoreConfig{Progress: provider.Manual, Spin: x.spin, Yield: x.yield})
		if got := 1 + e.core.rounds + e.core.yields; got != x.want && x.want < 1000 || got > 10_000_000 {
			t.Errorf("%v: %d polls, want %d", x.spin, got, x.want)
		}
	}
	yields := 0
	e := rig(t, CoreConfig{Progress: provider.Manual, Spin: 5 * spinRound, Yield: func() { yields++ }}, 4)
	e.core.yields = 7
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			e.core.Lock()
			parked := e.core.parker != nil
			e.core.Unlock()
			if parked {
				cancel()
				return
			}
		}
	}()
	var c [1]provider.Completion
	if _, err := e.q.Wait(ctx, c[:]); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if yields < 7 || e.polls < 13 {
		t.Errorf("%d yields, %d polls", yields, e.polls)
	}
}
