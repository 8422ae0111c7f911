package testutil

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestWatchFindsWhoStandsStill(t *testing.T) {
	counters := make([]atomic.Int64, 4)
	counters[3].Store(-1)
	over, found := make(chan struct{}), make(chan int)
	go func() { found <- stuck(over, 20*time.Millisecond, counters) }()
	for {
		select {
		case i := <-found:
			if i != 1 {
				t.Errorf("number %d stands still, not 1", i)
			}
			return
		default:
			counters[0].Add(1)
			counters[2].Add(1)
		}
	}
}

func TestWatchEnds(t *testing.T) {
	counters := make([]atomic.Int64, 1)
	stop := Watch(t, time.Hour, counters)
	stop()
	stop()
}

func TestLast(t *testing.T) {
	for soak, want := range map[string]int{"": 3, "wide": 3} {
		t.Setenv(soakEnv, soak)
		n := 0
		for more := Last(t, 3, time.Hour); more(); {
			n++
		}
		if n != want {
			t.Errorf("%q: %d rounds", soak, n)
		}
	}
	t.Setenv(soakEnv, "1")
	if !Last(t, 0, time.Hour)() || Last(t, 3, 0)() {
		t.Error("it is the time that counts")
	}
}
