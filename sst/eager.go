package sst

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// defaultSpin is how long a wait reads its link itself before it sleeps.
const defaultSpin = 300 * time.Microsecond

// spin is how long waits of the session do.
func (s *Session) spin() time.Duration {
	if s.cfg.Spin == 0 {
		return defaultSpin
	}
	return max(s.cfg.Spin, 0)
}

// eager is a wait for the peer that comes with every step. When steps are small and
// fast, most of their time goes into waking: first the goroutine that reads, then the
// one that waits for what it has read. So who waits reads by itself for a moment, if
// the wait before was over within that moment: who waits for a slow peer sleeps.
// It is safe for concurrent use.
type eager struct {
	most  time.Duration
	peers int         // processes that the wait is for, not known: 0
	fast  atomic.Bool // the last wait was short
}

// poller is a link to read from.
type poller interface{ Poll() bool }

// turns is how often a wait looks before it lets others have the processor, and looks at
// the clock: each takes as long as several looks. It is a microsecond or two.
const turns = 8

// wait reads from l until changed is closed, for so long at most, and reports
// whether it is. A nil l has nothing to read; and it does not, unless processors are
// there for us and all peers, who may live here: it would take one from them. The
// caller's wait began at began.
func (e *eager) wait(ctx context.Context, l poller, changed <-chan struct{}, began time.Time) bool {
	if l == nil || !e.fast.Load() || !roomFor(e.peers) {
		return false
	}
	for ctx.Err() == nil && time.Since(began) < e.most {
		for range turns {
			l.Poll()
			if isDone(changed) {
				return true
			}
		}
		runtime.Gosched()
	}
	return false
}

// roomFor reports whether there is a processor for each of so many others, one at least.
func roomFor(peers int) bool { return runtime.GOMAXPROCS(0) > 1 && runtime.NumCPU() > max(peers, 1) }

// end is told that a wait is over, and how long it was.
func (e *eager) end(took time.Duration) { e.fast.Store(took < e.most) }
