package sst

import (
	"errors"
	"testing"
	"time"
)

// TestDeadFile has the waits for an address that does not answer double up to a
// second, whatever the number of looks, and not hold for another file.
func TestDeadFile(t *testing.T) {
	var d deadFile
	dead, other := contactFile{stream: 1}, contactFile{stream: 2}
	refused := errors.New("refused")
	now := time.Unix(1000, 0)
	if d.known(dead, now) != nil {
		t.Error("known before it was tried")
	}
	for i, wait := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		d.note(dead, now, refused)
		due := now.Add(wait * time.Millisecond)
		if d.tries != i+1 || !errors.Is(d.known(dead, due.Add(-1)), refused) || d.known(dead, due) != nil {
			t.Errorf("try %d: tried again before or after %v: %+v", i+1, wait*time.Millisecond, d)
		}
		if d.known(other, now) != nil {
			t.Errorf("try %d: a new file has to wait", i+1)
		}
		now = due
	}
	d.note(other, now, refused)
	if d.tries != 1 || d.known(other, now.Add(pollInterval)) != nil {
		t.Errorf("another file waits as long as the one before: %+v", d)
	}
}
