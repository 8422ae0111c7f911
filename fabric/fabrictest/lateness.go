package fabrictest

import (
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
	l := &lateness{quit: make(chan struct{})}
	l.joined.Go(l.watch)
	return l
}

func (l *lateness) watch() {
	timer := time.NewTimer(lateTick)
	defer timer.Stop()
	for due := time.Now().Add(lateTick); ; due = time.Now().Add(lateTick) {
		select {
		case <-l.quit:
			return
		case <-timer.C:
		}
		if late := int64(time.Since(due)); late > l.longest.Load() {
			l.longest.Store(late)
		}
		timer.Reset(lateTick)
	}
}

// worst is the longest wait so far. Turns are waited for one after another, so a call may have had several: it counts
// three times.
func (l *lateness) worst() time.Duration { return 3 * time.Duration(l.longest.Load()) }

func (l *lateness) stop() {
	l.once.Do(func() { close(l.quit) })
	l.joined.Wait()
}
