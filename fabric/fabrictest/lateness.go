package fabrictest

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// lateTick is how often the machine is looked at.
const lateTick = 2 * time.Millisecond

// lateness measures how late this process gets to run: a goroutine that wants to run at every tick notes the
// longest it had to wait for its turn. What a call may take is a bound of its own plus that: on two cores under
// the race detector, beside other programs, a goroutine that is ready may wait for most of a second.
type lateness struct {
	start   time.Time
	due     atomic.Int64 // when its next turn is, since the start
	longest atomic.Int64
	quit    chan struct{}
	once    sync.Once
	joined  sync.WaitGroup
}

// lateness watches until stop, or the end of the test.
func (e *env) lateness() *lateness {
	e.Helper()
	l := watchLateness()
	e.Cleanup(l.stop)
	return l
}

func watchLateness() *lateness {
	l := &lateness{start: time.Now(), quit: make(chan struct{})}
	l.due.Store(int64(lateTick))
	l.joined.Go(l.watch)
	return l
}

func (l *lateness) watch() {
	timer := time.NewTimer(lateTick)
	defer timer.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-timer.C:
		}
		l.longest.Store(max(l.longest.Load(), l.waits()))
		l.due.Store(int64(time.Since(l.start) + lateTick))
		timer.Reset(lateTick)
	}
}

// waits is how long the goroutine waits for its turn, or less than 0.
func (l *lateness) waits() int64 { return int64(time.Since(l.start)) - l.due.Load() }

// worst is the longest wait so far, one that has not ended included. Turns are waited for one after another, so a call may have had
// several: it counts three times.
func (l *lateness) worst() time.Duration {
	return 3 * time.Duration(max(l.longest.Load(), l.waits(), 0))
}

// stop ends the watching. A wait that lasts then counts as long as it was.
func (l *lateness) stop() {
	l.once.Do(func() {
		now := l.waits()
		close(l.quit)
		l.joined.Wait()
		l.longest.Store(max(l.longest.Load(), now))
		l.due.Store(math.MaxInt64)
	})
}
