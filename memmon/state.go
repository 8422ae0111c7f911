package memmon

import "fmt"

// State is what the monitor of an arbiter is doing.
type State uint8

// The states.
const (
	Idle     State = iota // no cache needs it
	Starting              // it is starting, and being tested
	Running               // it serves
	Stopping              // it is stopping
	Failed                // it does not work; Status.Why
)

// String is a word.
func (s State) String() string {
	if s <= Failed {
		return [...]string{"idle", "starting", "running", "stopping", "failed"}[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Status is what an arbiter does now.
type Status struct {
	Monitor  string   // its name; "none"
	State    State    //
	Why      error    // why it failed
	Imported bool     // it is another middleware's
	Disabled bool     // caches are off (Disable)
	Coverage Coverage // of the monitor
	Caches   int      // that are attached
	Events   uint64   // told so far, by anybody
	Others   bool     // another copy of Weft, or hooks in C, were in the process first; of who came later this one does not know
	Alone    error    // why such cannot find this one; nil: they can
	Hooks    []string // who has changed memory functions of the C library, a line for each; found when the first cache attached
	HooksErr error    // why that is not known
}
