package step

import (
	"context"
	"fmt"
)

// Any reads the elements that sel selects into a new slice of their Go type:
// []float64, []string, []Char and so on; []byte with the raw elements for
// Struct variables. It is for programs that do not know the type beforehand.
func (v *Variable) Any(ctx context.Context, sel Selector) (any, error) {
	switch v.def.typ {
	case Int8:
		return getAny[int8](ctx, v, sel)
	case Int16:
		return getAny[int16](ctx, v, sel)
	case Int32:
		return getAny[int32](ctx, v, sel)
	case Int64:
		return getAny[int64](ctx, v, sel)
	case Uint8:
		return getAny[uint8](ctx, v, sel)
	case Uint16:
		return getAny[uint16](ctx, v, sel)
	case Uint32:
		return getAny[uint32](ctx, v, sel)
	case Uint64:
		return getAny[uint64](ctx, v, sel)
	case Float32:
		return getAny[float32](ctx, v, sel)
	case Float64:
		return getAny[float64](ctx, v, sel)
	case LongDouble:
		return getAny[Float80](ctx, v, sel)
	case Complex64:
		return getAny[complex64](ctx, v, sel)
	case Complex128:
		return getAny[complex128](ctx, v, sel)
	case String:
		return getAny[string](ctx, v, sel)
	case CharType:
		return getAny[Char](ctx, v, sel)
	}
	b, err := v.rawElements(ctx, sel)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// getAny is Get for a type that only the switch above knows.
func getAny[T Element](ctx context.Context, v *Variable, sel Selector) (any, error) {
	a, err := Var[T]{v}.Get(ctx, sel, nil)
	if err != nil {
		return nil, err // not a nil slice in an any
	}
	return a, nil
}

// rawElements reads elements that have no Go type as bytes.
func (v *Variable) rawElements(ctx context.Context, sel Selector) ([]byte, error) {
	r, err := v.resolve(sel)
	if err != nil {
		return nil, err
	}
	if err := v.allowedResult(r.dstElements); err != nil {
		return nil, err
	}
	r.dst = make([]byte, r.bytes())
	return r.dst, v.step.Fetch(ctx, Get{r: r})
}

// DefaultMaxAlloc is what a zero DecoderConfig.MaxAlloc means: 4 GiB.
const DefaultMaxAlloc = 4 << 30

// allowed reports whether a slice of n bytes may be made.
func (c *DecoderConfig) allowed(n uint64, what string) error {
	limit := c.MaxAlloc
	if limit == 0 {
		limit = DefaultMaxAlloc
	}
	limit = min(limit, maxBlock) // whatever the user allows: make panics on sizes not much above
	if n > limit {
		return fmt.Errorf("%d bytes needed %s, DecoderConfig.MaxAlloc is %d: %w", n, what, limit, ErrTooLarge)
	}
	return nil
}

// stringSize is what a string takes in a slice.
const stringSize = 16

// allowedResult reports whether a destination of n elements may be made.
func (v *Variable) allowedResult(n int) error {
	size := v.def.elemSize
	if v.def.typ == String {
		size = stringSize
	}
	bytes, ok := mulFits(uint64(n), uint64(size))
	if !ok {
		bytes = ^uint64(0)
	}
	if err := v.step.cfg.allowed(bytes, "for the result (a slice of your own may be larger)"); err != nil {
		return fmt.Errorf("step %d: variable %q: %w", v.step.number, v.def.name, err)
	}
	return nil
}
