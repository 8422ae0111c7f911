package main

import (
	"context"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/sys"
)

// tally is a count in memory of two processes: one raises it, the other one waits until it is high enough.
type tally struct {
	count  *atomic.Uint64
	sleeps *atomic.Uint64 // 1: who waits sleeps, or is about to
	bell   sys.Counter    // wakes it
}

// tallyLine keeps the words of tallies apart: the processor fetches cache lines in pairs.
const tallyLine = 128

// tallyBytes is how much memory a tally takes.
const tallyBytes = 2 * tallyLine

// newTally finds the tally at off.
func newTally(r shmem.Region, off uint64, bell sys.Counter) (t tally, err error) {
	t.bell = bell
	if t.count, err = r.Word64(off); err == nil {
		t.sleeps, err = r.Word64(off + tallyLine)
	}
	return t, err
}

// raise sets the count to n, which is more than it was.
func (t tally) raise(n uint64) error {
	t.count.Store(n) // before the load: who waits looks at both in the other order
	if t.sleeps.Load() == 0 || t.sleeps.Swap(0) == 0 {
		return nil
	}
	return t.bell.Add(1)
}

// looks is how often the count is looked at before the thread sleeps, which takes about as long as its wake-up.
const looks = 50_000

// reach waits until the count is n or more, and returns it, or until ctx ends: then somebody has to ring the bell.
func (t tally) reach(ctx context.Context, n uint64) (uint64, error) {
	for ctx.Err() == nil {
		for range looks {
			if have := t.count.Load(); have >= n {
				return have, nil
			}
		}
		t.sleeps.Store(1)
		if t.count.Load() >= n {
			t.sleeps.Store(0) // if that was seen, the bell rings, and the next sleep is short
			continue
		}
		if _, err := t.bell.Wait(); err != nil {
			return 0, err
		}
	}
	return 0, context.Cause(ctx)
}
