//go:build !unix

package carrier

import "errors"

// canPlace says that fill works on this system.
const canPlace = false

// fill is not available here, and not called.
func (q *quickAcker) fill(*Placement, int, int) (int, error) { return 0, errors.ErrUnsupported }
