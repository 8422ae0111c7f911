package main

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
)

// testTally makes a tally in memory of this process.
func testTally(t *testing.T) tally {
	t.Helper()
	r, err := shmem.NewRegion(shmem.Bytes(make([]uint64, tallyBytes/8)))
	if err != nil {
		t.Fatal(err)
	}
	y, err := newTally(r, 0, sys.Counter(counters(t)[0].Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newTally(r, tallyLine, y.bell); !errors.Is(err, shmem.ErrBounds) {
		t.Errorf("a tally half outside: %v", err)
	}
	return y
}

// asleep waits until somebody sleeps, or is about to.
func (t tally) asleep() {
	for t.sleeps.Load() == 0 {
		runtime.Gosched()
	}
}

func TestTally(t *testing.T) {
	y, back := testTally(t), testTally(t)
	const n = 4000
	ended := make(chan error, 1)
	go func() {
		for i := range uint64(n) {
			_, err := y.reach(t.Context(), i+1)
			if err == nil {
				err = back.raise(i + 1)
			}
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for i := range uint64(n) {
		if i%(n/4) == 0 {
			y.asleep() // else both mostly meet awake
		}
		if err := y.raise(i + 1); err != nil {
			t.Fatal(err)
		}
		if have, err := back.reach(t.Context(), i+1); err != nil || have != i+1 {
			t.Fatal(have, err)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is there already is told at once, and may be more.
func TestTallyAhead(t *testing.T) {
	y := testTally(t)
	if err := y.raise(bareEnd); err != nil {
		t.Fatal(err)
	}
	if have, err := y.reach(t.Context(), 3); err != nil || have != bareEnd {
		t.Error(have, err)
	}
}

func TestTallyCancelled(t *testing.T) {
	y := testTally(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := y.reach(ctx, 1)
		ended <- err
	}()
	y.asleep()
	cancel()
	if err := y.bell.Add(1); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	y.bell = -1
	if _, err := y.reach(t.Context(), 1); err == nil {
		t.Error("slept without a bell")
	}
	if err := y.raise(1); err == nil { // the other one is asleep for all it knows
		t.Error("rang no bell")
	}
}
