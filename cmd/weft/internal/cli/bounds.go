package cli

import (
	"context"

	"github.com/weft-fabric/weft/step"
)

// bounds is the minimum and maximum of a variable over its steps.
type bounds struct {
	lo, hi  any
	unknown bool // of some step nothing is known
}

// get returns the bounds, if all of them are known.
func (b *bounds) get() (lo, hi any, ok bool) { return b.lo, b.hi, !b.unknown && b.lo != nil }

// add takes the elements of v in.
func (b *bounds) add(ctx context.Context, v *step.Variable, compute bool) {
	if !v.Type().Ordered() || empty(v) {
		return
	}
	lo, hi, ok := v.Bounds()
	if !ok && compute {
		lo, hi, ok = computeBounds(ctx, v)
	}
	if !ok {
		b.unknown = true
		return
	}
	if b.lo == nil || step.Less(lo, b.lo) {
		b.lo = lo
	}
	if b.hi == nil || step.Less(b.hi, hi) {
		b.hi = hi
	}
}

func empty(v *step.Variable) bool {
	if v.Kind().IsValue() {
		return false
	}
	for _, b := range v.Blocks() {
		if n, err := b.Box.Elements(); err != nil || n > 0 {
			return false
		}
	}
	return true
}

// computeBounds reads all blocks.
func computeBounds(ctx context.Context, v *step.Variable) (lo, hi any, ok bool) {
	switch v.Type() {
	case step.Int8:
		return boundsOf[int8](ctx, v)
	case step.Int16:
		return boundsOf[int16](ctx, v)
	case step.Int32:
		return boundsOf[int32](ctx, v)
	case step.Int64:
		return boundsOf[int64](ctx, v)
	case step.Uint8:
		return boundsOf[uint8](ctx, v)
	case step.Uint16:
		return boundsOf[uint16](ctx, v)
	case step.Uint32:
		return boundsOf[uint32](ctx, v)
	case step.Uint64:
		return boundsOf[uint64](ctx, v)
	case step.Float32:
		return boundsOf[float32](ctx, v)
	case step.Float64:
		return boundsOf[float64](ctx, v)
	}
	return nil, nil, false
}

type number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

func boundsOf[T number](ctx context.Context, v *step.Variable) (lo, hi any, ok bool) {
	tv, err := step.As[T](v)
	if err != nil {
		return nil, nil, false
	}
	var buf []T
	var smallest, largest T
	for i, blk := range v.Blocks() {
		err := chunks(v, step.Box{Start: make([]uint64, len(blk.Box.Count)), Count: blk.Box.Count}, func(box step.Box, n int) error {
			if cap(buf) < n {
				buf = make([]T, n)
			}
			vals, err := tv.Get(ctx, step.Selection{Box: box, Block: &i}, buf[:n])
			if err != nil {
				return err
			}
			for _, x := range vals {
				if !ok {
					smallest, largest, ok = x, x, true
				}
				smallest, largest = min(smallest, x), max(largest, x)
			}
			return nil
		})
		if err != nil {
			return nil, nil, false
		}
	}
	return smallest, largest, ok
}
