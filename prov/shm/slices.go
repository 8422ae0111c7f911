package shm

// maxSpare is how many slices are kept for use again.
const maxSpare = 1024

// spares are slices of operations that have ended, for those that come: else every operation in pieces would allocate. The lock
// of the domain guards them.
type spares[T any] struct {
	free [][]T
}

// clone copies what the caller of a post keeps; nil for nothing.
func (s *spares[T]) clone(from []T) []T {
	if len(from) == 0 {
		return nil
	}
	var b []T
	if n := len(s.free); n > 0 {
		b, s.free = s.free[n-1], s.free[:n-1]
	}
	return append(b, from...)
}

// put takes back what clone gave, and lets go of what it holds.
func (s *spares[T]) put(b []T) {
	if b == nil || len(s.free) >= maxSpare {
		return
	}
	clear(b)
	s.free = append(s.free, b[:0])
}
