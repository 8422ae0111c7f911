package ping

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/internal/sys"
)

// ErrDescriptors says that a process may not open as many files as a side needs, with those that it has open.
var ErrDescriptors = errors.New("ping: too few descriptors (ulimit -n)")

// Descriptors is how many a side needs. With shm it is 21 for large writes by a side that has started the other one; there is some room.
const Descriptors = 28

// CheckDescriptors says whether this process may open so many. It opens nothing.
func CheckDescriptors(need int) error {
	free, err := sys.FreeDescriptors(need)
	if err != nil || free >= need {
		return nil // where it cannot be known, it is found out
	}
	return fmt.Errorf("%w: %d free, %d needed", ErrDescriptors, free, need)
}
