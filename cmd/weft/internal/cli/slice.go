package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/step"
)

// slice is what --start and --count say; both nil: everything.
type slice struct{ start, count []int64 }

func parseSlice(start, count string) (s slice, err error) {
	if s.start, err = parseInts("--start", start); err != nil {
		return s, err
	}
	if s.count, err = parseInts("--count", count); err != nil {
		return s, err
	}
	for _, n := range s.count {
		if n < -1 {
			return s, usagef("--count %s: %d is no number of elements; -1 is the rest", count, n)
		}
	}
	if s.start != nil && s.count != nil && len(s.start) != len(s.count) {
		return s, usagef("--start has %d dimensions, --count has %d", len(s.start), len(s.count))
	}
	return s, nil
}

func parseInts(flag, text string) ([]int64, error) {
	if text == "" {
		return nil, nil
	}
	var list []int64
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, usagef("%s %s: %q is no whole number", flag, text, part)
		}
		list = append(list, n)
	}
	return list, nil
}

func (s slice) all() bool { return s.start == nil && s.count == nil }

// box applies the slice to an array of the given shape.
func (s slice) box(shape []uint64) (step.Box, error) {
	box := step.Box{Start: make([]uint64, len(shape)), Count: append([]uint64{}, shape...)}
	if s.all() {
		return box, nil
	}
	if dims := max(len(s.start), len(s.count)); dims != len(shape) {
		return box, fmt.Errorf("--start and --count have %d dimensions, it has %d: %s", dims, len(shape), step.DimString(shape))
	}
	for d, n := range shape {
		if n > math.MaxInt64 {
			return box, fmt.Errorf("dimension of %d elements: %w", n, step.ErrSelection)
		}
		from, count := int64(0), int64(-1)
		if s.start != nil {
			from = s.start[d]
		}
		if s.count != nil {
			count = s.count[d]
		}
		given := from
		if from < 0 {
			from += int64(n)
		}
		if from < 0 || from > int64(n) {
			return box, fmt.Errorf("--start is %d in dimension %d, which %s: %w", given, d, extent(n), step.ErrSelection)
		}
		if count == -1 {
			count = int64(n) - from
		}
		if count > int64(n)-from {
			last := uint64(from) + uint64(count) - 1
			return box, fmt.Errorf("elements %d to %d of dimension %d, which %s: %w", from, last, d, extent(n), step.ErrSelection)
		}
		box.Start[d], box.Count[d] = uint64(from), uint64(count)
	}
	return box, nil
}

// extent says which elements a dimension has.
func extent(n uint64) string {
	if n == 0 {
		return "has none"
	}
	return fmt.Sprintf("has elements 0 to %d", n-1)
}

// selectionOf returns what is read of an array or a value.
func (s slice) selectionOf(v *step.Variable) (selection, error) {
	if v.Kind() == step.GlobalValueKind {
		return selection{box: step.Box{}}, nil
	}
	box, err := s.box(v.Shape())
	if err != nil {
		err = fmt.Errorf("variable %q: %w", v.Name(), err)
	}
	return selection{box: box}, err
}

// selectionOfBlock returns what is read of one block of a local array.
func (s slice) selectionOfBlock(v *step.Variable, b step.Block) (selection, error) {
	box, err := s.box(b.Box.Count)
	if err != nil {
		err = fmt.Errorf("variable %q: block %d: %w", v.Name(), b.Index, err)
	}
	return selection{block: &b.Index, box: box}, err
}
