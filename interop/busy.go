package interop

import (
	"os"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

// busyRole is a process that burns one processor until its stdin ends.
const busyRole = "busy"

// Busy starts n processes that compute without a pause: the load of a machine
// that does something else.
func Busy(t testing.TB, n int) {
	t.Helper()
	for range n {
		testutil.Child(t, busyRole)
	}
}

func runBusyRole([]string) error {
	over := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(over)
	}()
	for n := uint64(1); ; n++ {
		if n%(1<<24) != 0 {
			continue
		}
		select {
		case <-over:
			return nil
		default:
		}
	}
}
