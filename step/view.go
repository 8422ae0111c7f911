package step

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/internal/shmem"
)

// View is the writer's memory of some elements, or the file's. It is read-only:
// a write to it is a fault. It is valid until Release, also after the step has
// ended.
type View[T Element] struct {
	data    []T
	release func()
}

// Data returns the elements, row-major. They must not be used after Release.
func (v View[T]) Data() []T { return v.data }

// Release gives the memory back. Call it exactly once.
func (v View[T]) Release() {
	if v.release != nil {
		v.release()
	}
}

// View returns the elements that sel selects without copying them. That is
// possible where the source has the writer's memory at hand, and where the
// elements lie one after the other in one uncompressed block. Otherwise it
// fails with [ErrNoView] and says why; Get works then.
func (v Var[T]) View(ctx context.Context, sel Selector) (View[T], error) {
	var r *reading
	s, ok := v.strip(sel)
	if !ok {
		var err error
		if r, err = v.resolve(sel); err != nil {
			return View[T]{}, err
		}
	}
	if err := v.step.enter(); err != nil {
		return View[T]{}, err
	}
	defer v.step.leave()
	var data []T
	var release func()
	if ok || r.elements > 0 {
		var err error
		if data, release, err = viewOf[T](ctx, v.Variable, s, r); err != nil {
			return View[T]{}, fmt.Errorf("step %d: variable %q: %w", v.step.number, v.def.name, err)
		}
	}
	if r != nil && r.missingOut != nil {
		*r.missingOut = 0
	}
	return View[T]{data, release}, nil
}

// viewOf asks the source for the bytes of the strip, or of r, and casts them. Elements of a file
// or of a foreign writer may lie at any address, so the cast can fail; then the
// memory is given back.
func viewOf[T Element](ctx context.Context, v *Variable, s strip, r *reading) ([]T, func(), error) {
	viewer, ok := v.step.src.(Viewer)
	if !ok {
		return nil, nil, fmt.Errorf("the data is not in memory of this machine: %w", ErrNoView)
	}
	if r != nil {
		var err error
		if s, err = r.contiguous(); err != nil {
			return nil, nil, err
		}
	}
	b, release, err := viewer.View(ctx, s.rank, s.off, uint64(s.bytes()))
	if err != nil {
		return nil, nil, err
	}
	data, ok := shmem.As[T](b)
	if !ok || len(data) != s.elements {
		release()
		return nil, nil, fmt.Errorf("the memory at offset %d of rank %d is not aligned for %v: %w", s.off, s.rank, v.def.typ, ErrNoView)
	}
	return data, release, nil
}

// contiguous returns r as a strip, or why it is none that can be viewed.
func (r *reading) contiguous() (strip, error) {
	if r.v.def.kind.IsValue() {
		return strip{}, fmt.Errorf("single values are in the metadata, use Get: %w", ErrNoView)
	}
	if r.dstElements != r.elements {
		return strip{}, fmt.Errorf("a view is no larger array in memory: %w", ErrNoView)
	}
	if len(r.parts) == 0 {
		return strip{}, fmt.Errorf("no block holds the selected elements: %w", ErrNoView)
	}
	// Only the topmost block can hold all of a selection alone.
	p := r.parts[len(r.parts)-1] // on top of the others, if they overlap
	if p.elements() != uint64(r.elements) {
		return strip{}, fmt.Errorf("the selected elements are in %d blocks, or partly in none: %w", len(r.parts), ErrNoView)
	}
	blk := &r.lay.blocks[p.block]
	if blk.op {
		return strip{}, fmt.Errorf("block %d is stored through an operator: %w", p.block, ErrNoView)
	}
	inBlock := make([]uint64, len(r.start))
	for d := range inBlock {
		inBlock[d] = r.start[d] + p.lo[d]
		if r.block < 0 {
			inBlock[d] -= r.lay.start(p.block)[d]
		}
	}
	var levels [MaxDims]level
	elem, shape := uint64(r.v.def.elemSize), r.lay.count(p.block)
	if w := newWalk(&levels, r.count, shape, r.count, elem); len(w.levels) != 0 {
		return strip{}, fmt.Errorf("the selected elements are not contiguous in block %d of %s: %w", p.block, DimString(shape), ErrNoView)
	}
	return strip{r.v, int(blk.rank), blk.loc + linear(inBlock, shape, elem), r.elements}, nil
}
