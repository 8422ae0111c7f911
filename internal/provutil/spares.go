package provutil

// maxSpare is how many slices are kept for use again.
const maxSpare = 1024

// Spares are slices of operations that have ended, for those that come: else every operation in pieces that does not end in
// its post would allocate. The lock of the domain guards them.
type Spares[T any] struct {
	free [][]T
}

// Clone copies what the caller of a post keeps; nil for nothing.
func (s *Spares[T]) Clone(from []T) []T {
	if len(from) == 0 {
		return nil
	}
	var b []T
	if n := len(s.free); n > 0 {
		b, s.free = s.free[n-1], s.free[:n-1]
	}
	return append(b, from...)
}

// Put takes back what Clone gave, and lets go of what it holds.
func (s *Spares[T]) Put(b []T) {
	if b == nil || len(s.free) >= maxSpare {
		return
	}
	clear(b)
	s.free = append(s.free, b[:0])
}
