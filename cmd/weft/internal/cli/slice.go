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
			return nil, usagef("%s %s: %q is no number", flag, text, part)
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
		if from < 0 {
			from += int64(n)
		}
		if count == -1 {
			count = int64(n) - from
		}
		if from < 0 || count < 0 || from > int64(n) || count > int64(n)-from {
			return box, fmt.Errorf("elements %d to %d of dimension %d, which has %d: %w", from, from+count, d, n, step.ErrSelection)
		}
		box.Start[d], box.Count[d] = uint64(from), uint64(count)
	}
	return box, nil
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
