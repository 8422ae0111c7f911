package step

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/shmem"
)

// Put adds a block of an array to the open step, or sets a value. data is
// copied: it is the caller's again when Put returns.
//
// For a global array box is the block's place in the shape, [All] the whole.
// Blocks of local and joined arrays have a Count and no Start. Counts may be 0.
// For a value box is [All] and data one element; of several, the last one
// counts. The length of data must be that of the box exactly.
//
// Errors wrap [ErrNoStep], [ErrSelection], [ErrType] (a string: see
// [Encoder.PutText]) or [ErrStoreFull]; then nothing was put, and the step goes
// on.
func (e *Encoder) Put(d *Definition, box Box, data []byte) error {
	if err := e.put(d, box, data); err != nil {
		return fmt.Errorf("step: put %s: %w", d.label(), err)
	}
	return nil
}

// put is Put without the variable's name in errors.
func (e *Encoder) put(d *Definition, box Box, data []byte) error {
	if err := e.usable(d); err != nil {
		return err
	}
	if d.shape.Kind.IsValue() {
		return e.putValue(d, box, data)
	}
	box, n, err := d.block(box)
	if err != nil {
		return err
	}
	if len(data) != n {
		return fmt.Errorf("%d bytes for block %v of %d bytes: %w", len(data), box, n, ErrSelection)
	}
	mem, err := e.alloc(d, box, n)
	if err != nil {
		return err
	}
	copy(mem, data)
	if d.wantsStats() {
		d.blocks.MinMax = appendMinMax(d.blocks.MinMax, d.typ, mem)
	}
	return nil
}

// putValue records a value in the metadata record itself: values have no
// bytes in the data block (docs/wire/bp5.md §0).
func (e *Encoder) putValue(d *Definition, box Box, data []byte) error {
	switch {
	case d.typ == String:
		return fmt.Errorf("bytes for a string: %w", ErrType)
	case !box.IsAll():
		return fmt.Errorf("box %v for a %v: %w", box, d.shape.Kind, ErrSelection)
	case len(data) != d.elemSize:
		return fmt.Errorf("%d bytes for one %v: %w", len(data), d.typ, ErrSelection)
	}
	if err := e.touch(d); err != nil {
		return err
	}
	return e.meta.SetValue(d.field, data)
}

// PutText sets a String variable in the open step; of several, the last one
// counts. s may be empty, but hold no NUL byte: that wraps [ErrDefinition].
// Other errors are those of [Encoder.Put].
func (e *Encoder) PutText(d *Definition, s string) error {
	if err := e.putText(d, s); err != nil {
		return fmt.Errorf("step: put %s: %w", d.label(), err)
	}
	return nil
}

// putText is PutText without the variable's name in errors.
func (e *Encoder) putText(d *Definition, s string) error {
	if err := e.usable(d); err != nil {
		return err
	}
	if d.typ != String {
		return fmt.Errorf("a string for a %v: %w", d.typ, ErrType)
	}
	if err := checkText(s); err != nil {
		return err
	}
	if err := e.touch(d); err != nil {
		return err
	}
	return e.meta.SetText(d.field, s)
}

// Span adds a block of an array to the open step and returns its memory, for
// the caller to fill until End. It saves the copy of Put. box is as in Put;
// values have no spans.
//
// The memory is **not zeroed**: it may show the data of earlier steps, so all of
// it must be written. It is aligned to the element type, from 4 KiB on to 64
// bytes; struct elements are not aligned. Different goroutines may fill
// different spans, or parts of one, as long as all are done before End. Using it
// after End or Abort damages other steps.
//
// Errors are those of [Encoder.Put].
func (e *Encoder) Span(d *Definition, box Box) ([]byte, error) {
	mem, err := e.span(d, box)
	if err != nil {
		return nil, fmt.Errorf("step: span of %s: %w", d.label(), err)
	}
	return mem, nil
}

// span is Span without the variable's name in errors. Statistics must wait
// until the caller has filled the memory; their place in the list is kept.
func (e *Encoder) span(d *Definition, box Box) ([]byte, error) {
	if err := e.usable(d); err != nil {
		return nil, err
	}
	if d.shape.Kind.IsValue() {
		return nil, fmt.Errorf("a %v: %w", d.shape.Kind, ErrSelection)
	}
	box, n, err := d.block(box)
	if err != nil {
		return nil, err
	}
	mem, err := e.alloc(d, box, n)
	if err != nil {
		return nil, err
	}
	if d.wantsStats() {
		d.spans = append(d.spans, openSpan{block: d.blocks.Blocks - 1, mem: mem})
		d.blocks.MinMax = append(d.blocks.MinMax, make([]byte, 2*d.elemSize)...)
	}
	return mem, nil
}

// PutSlice is [Encoder.Put] for typed data. T must carry the variable's element
// type; for a String vs is one string. A wrong T wraps [ErrType].
func PutSlice[T Element](e *Encoder, d *Definition, box Box, vs []T) error {
	if err := checkElement[T](d); err != nil {
		return fmt.Errorf("step: put %s: %w", d.label(), err)
	}
	texts, ok := any(vs).([]string)
	if !ok {
		return e.Put(d, box, shmem.Bytes(vs))
	}
	if len(texts) != 1 || !box.IsAll() {
		return fmt.Errorf("step: put %s: %d strings into box %v: %w", d.label(), len(texts), box, ErrSelection)
	}
	return e.PutText(d, texts[0])
}

// SpanSlice is [Encoder.Span] for typed data. T must carry the variable's
// element type; a wrong T wraps [ErrType].
func SpanSlice[T Element](e *Encoder, d *Definition, box Box) ([]T, error) {
	if err := checkElement[T](d); err != nil {
		return nil, fmt.Errorf("step: span of %s: %w", d.label(), err)
	}
	if TypeOf[T]() == String {
		return nil, fmt.Errorf("step: span of %s: strings have none: %w", d.label(), ErrSelection)
	}
	mem, err := e.Span(d, box)
	if err != nil {
		return nil, err
	}
	vs, ok := shmem.As[T](mem)
	if !ok {
		return nil, fmt.Errorf("step: span of %s: the store's memory is not aligned: %w", d.label(), ErrStoreFull)
	}
	return vs, nil
}

// checkElement reports whether T carries the element type of d. A nil d is
// left to usable, which has a better text.
func checkElement[T Element](d *Definition) error {
	if t := TypeOf[T](); d != nil && d.typ != t {
		return fmt.Errorf("%v for a %v: %w", t, d.typ, ErrType)
	}
	return nil
}

// label names d in errors, also if it is nil.
func (d *Definition) label() string {
	if d == nil {
		return "nil definition"
	}
	return fmt.Sprintf("%q", d.name)
}

// usable reports whether d can be put now.
func (e *Encoder) usable(d *Definition) error {
	switch {
	case d == nil || d.enc != e:
		return fmt.Errorf("not a variable of this encoder: %w", ErrDefinition)
	case e.store == nil:
		return ErrNoStep
	}
	return nil
}

// alloc makes room for a block of n bytes and records it.
func (e *Encoder) alloc(d *Definition, box Box, n int) ([]byte, error) {
	loc, mem := e.store.Size(), []byte(nil)
	if n > 0 {
		align := d.align(n)
		if err := e.admit(n, align); err != nil {
			return nil, err
		}
		var err error
		if loc, mem, err = e.store.Alloc(n, align); err != nil {
			return nil, err
		}
	}
	if err := e.touch(d); err != nil {
		return nil, err
	}
	d.add(box, loc)
	return mem, nil
}

// admit keeps the step, and its final padding, within the limit.
func (e *Encoder) admit(n, align int) error {
	if e.cfg.MaxBytes == 0 {
		return nil
	}
	off := roundUp64(e.store.Size(), uint64(align))
	if end := roundUp64(off+uint64(n), dataPadding); end > e.cfg.MaxBytes {
		return fmt.Errorf("the step would have %d bytes, limit %d: %w", end, e.cfg.MaxBytes, ErrStoreFull)
	}
	return nil
}

// roundUp64 rounds up to any multiple. Sizes stay far below 2^63, see
// maxBlock.
func roundUp64(n, to uint64) uint64 { return (n + to - 1) / to * to }

// touch makes d part of the open step. The first time ever it also gets a field
// in the metadata format: fields are in the order of the first Put.
func (e *Encoder) touch(d *Definition) error {
	if d.field < 0 {
		i, err := e.meta.Add(d.desc)
		if err != nil {
			return err
		}
		d.field = i
		if d.format != nil {
			e.pending = append(e.pending, *d.format)
		}
	}
	if !d.written {
		d.written = true
		e.touched = append(e.touched, d)
	}
	return nil
}
