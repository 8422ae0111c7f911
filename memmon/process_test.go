package memmon

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// TestProcess is another process, since what belongs to a process stays for its life.
func TestProcess(t *testing.T) {
	if err := testutil.Child(t, "process").Wait(); err != nil {
		t.Error(err)
	}
}

func roleProcess([]string) error {
	a := Process()
	if a != Process() {
		return errors.New("two arbiters of one process")
	}
	if s := a.Status(); s.Alone != nil || s.Others {
		return fmt.Errorf("at first: %+v", s)
	}
	other, err := processEvents() // as another copy of Weft does
	if err != nil || !other.others {
		return fmt.Errorf("another copy does not find the events: %w", err)
	}
	r := Range{1 << 40, 1}
	seen := a.events.start(r)
	other.post(r)
	if _, got := a.events.look(seen, r); got != changed {
		return errors.New("what another copy tells is not seen")
	}
	return other.close()
}
