package fabrictest

import (
	"testing"
	"testing/synctest"
	"time"
)

// A machine that has stood still is late, also before the watching goroutine has had a turn that says so.
func TestLatenessThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lateness{start: time.Now(), quit: make(chan struct{})} // nobody runs
		l.due.Store(int64(lateTick))
		if l.worst() != 0 {
			t.Errorf("late by %v from the start", l.worst())
		}
		time.Sleep(time.Second)
		want := 3 * (time.Second - lateTick)
		if l.worst() != want {
			t.Errorf("late by %v, want %v", l.worst(), want)
		}
		l.stop()
		time.Sleep(time.Second)
		l.stop()
		if l.worst() != want {
			t.Errorf("late by %v after the end, want %v", l.worst(), want)
		}
	})
}

func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := watchLateness()
		time.Sleep(time.Second)
		l.stop()
		if l.worst() != 0 {
			t.Errorf("late by %v where nobody waits for a turn", l.worst())
		}
	})
}
