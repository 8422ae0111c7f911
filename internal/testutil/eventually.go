package testutil

import (
	"testing"
	"time"
)

const (
	pollEvery = time.Millisecond
	pollLimit = 30 * time.Second // no test passes by it
)

// Eventually waits until ok, for what tells nobody when it comes about, and fails
// the test if that takes too long. It asks once in a millisecond and leaves the
// processors to the code that is tested. Where there is an event, wait for that.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !poll(pollLimit, ok) {
		t.Fatalf("not so after %v: %s", pollLimit, what)
	}
}

func poll(limit time.Duration, ok func() bool) bool {
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end.C:
			return ok()
		}
	}
	return true
}
