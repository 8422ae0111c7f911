package testutil

import (
	"testing"
	"time"
)

func TestEventually(t *testing.T) {
	asked := 0
	Eventually(t, "asked three times", func() bool { asked++; return asked == 3 })
	if asked != 3 {
		t.Errorf("asked %d times after it was so", asked-3)
	}
}

func TestPollGivesUp(t *testing.T) {
	asked := 0
	if poll(10*time.Millisecond, func() bool { asked++; return false }) {
		t.Error("what is never so was")
	}
	if asked < 2 {
		t.Errorf("asked %d times", asked)
	}
}
