package step

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/internal/shmem"
)

// Var is a [Variable] whose element type is known to be T. The zero Var is of
// no use; make it with [Lookup] or [As].
type Var[T Element] struct{ *Variable }

// Lookup returns the variable of that name. It fails with [ErrNoVariable] if
// the step has none, and with [ErrType] if its elements are not T's: nothing is
// converted.
func Lookup[T Element](s *Step, name string) (Var[T], error) {
	v, err := s.lookup(name)
	if err != nil {
		return Var[T]{}, err
	}
	return As[T](v)
}

// As returns v with its element type, or fails with [ErrType].
func As[T Element](v *Variable) (Var[T], error) {
	if want := TypeOf[T](); v.def.typ != want {
		return Var[T]{}, fmt.Errorf("step %d: variable %q is %v, not %v: %w", v.step.number, v.def.name, v.def.typ, want, ErrType)
	}
	return Var[T]{v}, nil
}

// Get reads the elements that sel selects: row-major, all dimensions slowest
// first. They go to the front of dst, which must be long enough; if dst is nil
// a new slice is made. The result is the part of dst that belongs to the
// selection. Elements that no block holds stay as they were in dst, and are
// zero in a new slice.
//
// A nil sel selects everything. A selection of no elements needs no memory and
// moves nothing.
func (v Var[T]) Get(ctx context.Context, sel Selector, dst []T) ([]T, error) {
	if s, ok := v.strip(sel); ok && (dst == nil || len(dst) >= s.elements) {
		return getStrip(ctx, s, dst)
	}
	r, err := v.resolve(sel)
	if err != nil {
		return nil, err
	}
	if dst == nil {
		if err := v.allowedResult(r.dstElements); err != nil {
			return nil, err
		}
		dst = make([]T, r.dstElements)
	}
	if err := setDst(r, dst); err != nil {
		return nil, err
	}
	if err := v.step.Fetch(ctx, Get{r: r}); err != nil {
		return nil, err
	}
	return dst[:min(len(dst), r.dstElements)], nil
}

// getStrip is Get for a strip, with a dst that is nil or long enough.
func getStrip[T Element](ctx context.Context, s strip, dst []T) ([]T, error) {
	if dst == nil {
		if err := s.v.allowedResult(s.elements); err != nil {
			return nil, err
		}
		dst = make([]T, s.elements)
	}
	dst = dst[:s.elements]
	if err := s.v.step.Fetch(ctx, Get{s: s, dst: shmem.Bytes(dst)}); err != nil {
		return nil, err
	}
	return dst, nil
}

// Value reads a variable of one element: a global value, or an array or local
// value that has just one.
func (v Var[T]) Value(ctx context.Context) (T, error) {
	var one [1]T
	r, err := v.resolve(nil)
	if err != nil {
		return one[0], err
	}
	if r.elements == 1 {
		if err := setDst(r, one[:]); err != nil {
			return one[0], err
		}
		if err := r.settle(ctx); err != nil {
			return one[0], err
		}
	}
	if r.elements != 1 || r.missing != 0 {
		return one[0], fmt.Errorf("step %d: variable %q has %d elements, %d of them missing, not one: %w", v.step.number, v.def.name, r.elements, r.missing, ErrSelection)
	}
	err = v.step.Fetch(ctx, Get{r: r})
	return one[0], err
}

// Into prepares what Get does, for [Step.Fetch]. dst must be long enough. What
// is wrong shows at once in [Get.Err], and in Fetch before anything is
// transferred.
func (v Var[T]) Into(sel Selector, dst []T) Get {
	if s, ok := v.strip(sel); ok && len(dst) >= s.elements {
		return Get{s: s, dst: shmem.Bytes(dst[:s.elements])}
	}
	r, err := v.resolve(sel)
	if err == nil {
		err = setDst(r, dst)
	}
	if err != nil {
		return Get{err: err}
	}
	return Get{r: r}
}

// setDst makes dst the destination of r, which may be read then.
func setDst[T Element](r *reading, dst []T) error {
	need := r.dstElements
	if r.elements == 0 {
		need = 0
	}
	if len(dst) < need {
		return r.short(len(dst), need, "elements")
	}
	if s, ok := any(dst).([]string); ok {
		r.texts = s
	} else {
		r.dst = shmem.Bytes(dst)
	}
	return nil
}
