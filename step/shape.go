package step

import (
	"fmt"
	"slices"
)

// Kind is what ADIOS2 calls the shape kind of a variable.
type Kind uint8

// Shape kinds.
const (
	UnknownKind     Kind = iota
	GlobalValueKind      // one value for all ranks
	LocalValueKind       // one value a writer rank; readers see a 1-D array, element r from rank r
	GlobalArrayKind      // blocks at offsets of a common shape
	LocalArrayKind       // blocks without a common shape, read one by one
	JoinedArrayKind      // blocks laid end to end along one dimension, in rank order
)

// String returns "global value", "local value", "global array", "local array"
// or "joined array".
func (k Kind) String() string {
	switch k {
	case GlobalValueKind:
		return "global value"
	case LocalValueKind:
		return "local value"
	case GlobalArrayKind:
		return "global array"
	case LocalArrayKind:
		return "local array"
	case JoinedArrayKind:
		return "joined array"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// IsValue reports whether a writer rank puts one element, not an array.
func (k Kind) IsValue() bool { return k == GlobalValueKind || k == LocalValueKind }

// JoinedDim stands for the joined dimension in the shape of a joined array. It
// is the number that BP5 records hold (docs/wire/bp5.md §2.4).
const JoinedDim = ^uint64(1)

// Shape declares what a writer's variable looks like: its kind and, for global
// and joined arrays, the dimensions of the whole. The zero Shape is a global
// value.
type Shape struct {
	Kind Kind
	Dims []uint64
}

// GlobalValue declares one value for all ranks.
func GlobalValue() Shape { return Shape{Kind: GlobalValueKind} }

// LocalValue declares one value a writer rank.
func LocalValue() Shape { return Shape{Kind: LocalValueKind} }

// GlobalArray declares an array of the given global dimensions, slowest first.
// They may change from step to step.
func GlobalArray(dims ...uint64) Shape { return Shape{Kind: GlobalArrayKind, Dims: slices.Clone(dims)} }

// LocalArray declares blocks of n dimensions without a common shape.
func LocalArray(n int) Shape { return Shape{Kind: LocalArrayKind, Dims: make([]uint64, max(n, 0))} }

// JoinedArray declares an array whose blocks are laid end to end along the
// dimension given as [JoinedDim]; exactly one must be.
func JoinedArray(dims ...uint64) Shape { return Shape{Kind: JoinedArrayKind, Dims: slices.Clone(dims)} }

// Validate reports what is wrong with the declaration, if anything.
func (s Shape) Validate() error {
	switch s.Kind {
	case GlobalValueKind, LocalValueKind, UnknownKind:
		if len(s.Dims) != 0 {
			return fmt.Errorf("step: a %v has no dimensions, got %s", s.Kind, DimString(s.Dims))
		}
		return nil
	case GlobalArrayKind, LocalArrayKind, JoinedArrayKind:
	default:
		return fmt.Errorf("step: unknown %v", s.Kind)
	}
	if len(s.Dims) == 0 || len(s.Dims) > MaxDims {
		return fmt.Errorf("step: a %v needs 1 to %d dimensions, got %d", s.Kind, MaxDims, len(s.Dims))
	}
	joined := 0
	for _, d := range s.Dims {
		if d == JoinedDim {
			joined++
		}
	}
	if s.Kind == JoinedArrayKind && joined != 1 || s.Kind == GlobalArrayKind && joined != 0 {
		return fmt.Errorf("step: %s has %d joined dimensions; a joined array has exactly one, other arrays none", DimString(s.Dims), joined)
	}
	return nil
}
