package step

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// MaxDims is the largest number of dimensions of a variable: ADIOS2's own
// limit (docs/wire/bp5.md §9).
const MaxDims = 32

// ErrSelection is wrapped by every error about a box that does not fit what it
// is applied to.
var ErrSelection = errors.New("selection does not fit")

// Box is a rectangular part of an array: in each dimension the Count elements
// from Start on. Dimensions are row-major, slowest first. A nil Start means
// the origin. The zero Box, [All], selects everything.
type Box struct {
	Start, Count []uint64
}

// All selects the whole array.
var All = Box{}

// IsAll reports whether b is the zero Box.
func (b Box) IsAll() bool { return b.Start == nil && b.Count == nil }

// Dims returns the number of dimensions.
func (b Box) Dims() int { return len(b.Count) }

// Elements returns the number of elements, which must not exceed an int.
func (b Box) Elements() (int, error) { return Elements(b.Count) }

// String renders the box as "{start} {count}", for example "{2, 0} {4, 8}".
func (b Box) String() string {
	if b.IsAll() {
		return "all"
	}
	return DimString(b.origin()) + " " + DimString(b.Count)
}

// origin returns Start, or zeros for a nil Start.
func (b Box) origin() []uint64 {
	if b.Start == nil && b.Count != nil {
		return make([]uint64, len(b.Count))
	}
	return b.Start
}

// Within checks that the box lies inside shape. An empty box may start at the
// upper edge. The error wraps [ErrSelection].
func (b Box) Within(shape []uint64) error {
	start := b.origin()
	if len(start) != len(shape) || len(b.Count) != len(shape) {
		return fmt.Errorf("box %v has %d dimensions, the array %s has %d: %w", b, len(b.Count), DimString(shape), len(shape), ErrSelection)
	}
	for d, n := range shape {
		if start[d] > n || b.Count[d] > n-start[d] {
			return fmt.Errorf("box %v leaves the array %s in dimension %d: %w", b, DimString(shape), d, ErrSelection)
		}
	}
	return nil
}

// Intersect returns the part that b and o share; ok is false if that is empty,
// or if the boxes have different numbers of dimensions. With [All] it is the
// other box.
func (b Box) Intersect(o Box) (in Box, ok bool) {
	if b.IsAll() || o.IsAll() {
		if b.IsAll() {
			b = o
		}
		return Box{Start: slices.Clone(b.Start), Count: slices.Clone(b.Count)}, !slices.Contains(b.Count, 0)
	}
	bs, os, n := b.origin(), o.origin(), len(b.Count)
	if len(bs) != n || len(os) != n || len(o.Count) != n {
		return Box{}, false
	}
	in = Box{Start: make([]uint64, n), Count: make([]uint64, n)}
	for d := range n {
		lo := max(bs[d], os[d])
		// What is left of each behind lo: their ends may not fit 64 bits.
		left := min(remaining(bs[d], b.Count[d], lo), remaining(os[d], o.Count[d], lo))
		if left == 0 {
			return Box{}, false
		}
		in.Start[d], in.Count[d] = lo, left
	}
	return in, true
}

// remaining returns how many of count elements from start on are at from or
// behind it; from is not before start.
func remaining(start, count, from uint64) uint64 {
	if skipped := from - start; skipped < count {
		return count - skipped
	}
	return 0
}

// Equal reports whether both boxes select the same elements of the same array.
func (b Box) Equal(o Box) bool {
	return b.IsAll() == o.IsAll() && slices.Equal(b.origin(), o.origin()) && slices.Equal(b.Count, o.Count)
}

// Elements returns the product of dims, 1 for no dimensions, and an error if
// it does not fit an int.
func Elements(dims []uint64) (int, error) {
	n := uint64(1)
	// Zeros first: an array without elements may be as large as it likes otherwise.
	for _, d := range dims {
		if d == 0 {
			return 0, nil
		}
	}
	for _, d := range dims {
		hi, lo := bits.Mul64(n, d)
		if hi != 0 || lo > math.MaxInt {
			return 0, fmt.Errorf("step: %s has more elements than this machine can address: %w", DimString(dims), ErrSelection)
		}
		n = lo
	}
	return int(n), nil
}

// DimString renders dimensions as bpls does: "{3, 4}".
func DimString(dims []uint64) string {
	var s strings.Builder
	s.WriteByte('{')
	for i, d := range dims {
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteString(strconv.FormatUint(d, 10))
	}
	s.WriteByte('}')
	return s.String()
}
