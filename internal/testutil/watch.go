package testutil

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// maxStacks bounds what a watch prints, in bytes.
const maxStacks = 4 << 20

// Watch looks at counters that workers raise, each its own, and ends the test binary, with the stacks of all goroutines, if one of
// them stands still for as long as the limit. A counter below 0 is of a worker that is done. The caller calls stop.
func Watch(t testing.TB, limit time.Duration, counters []atomic.Int64) (stop func()) {
	t.Helper()
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		if i := stuck(over, limit, counters); i >= 0 {
			stacks := make([]byte, maxStacks)
			n := runtime.Stack(stacks, true)
			fmt.Fprintf(os.Stderr, "%s: worker %d has stood still for %v, after %d steps\n%s\n", t.Name(), i, limit, counters[i].Load(), stacks[:n])
			os.Exit(2)
		}
	}()
	return sync.OnceFunc(func() {
		close(over)
		<-gone
	})
}

// stuck waits for one that stands still, or until it is over: -1.
func stuck(over <-chan struct{}, limit time.Duration, counters []atomic.Int64) int {
	tick := time.NewTicker(limit)
	defer tick.Stop()
	last := make([]int64, len(counters))
	for i := range last {
		last[i] = math.MinInt64
	}
	for {
		for i := range counters {
			n := counters[i].Load()
			if n >= 0 && n == last[i] {
				return i
			}
			last[i] = n
		}
		select {
		case <-over:
			return -1
		case <-tick.C:
		}
	}
}
