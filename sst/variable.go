package sst

import (
	"fmt"

	"github.com/weft-fabric/weft/step"
)

// Definition is a variable of a writer whose element type is known only at run
// time; see [Define] for the usual case. In a cohort each rank declares what it
// puts, with the same type and kind of shape everywhere.
type Definition struct {
	w     *Writer
	name  string
	typ   step.Type
	ranks []*step.Definition // by rank of this process; none if it stands for no rank
}

// DefineUntyped declares a variable. For t == step.Struct, st describes the
// element; otherwise it is nil. A name can be declared once.
func (w *Writer) DefineUntyped(name string, t step.Type, st *step.StructType, shape step.Shape) (*Definition, error) {
	d := &Definition{w: w, name: name, typ: t}
	for _, e := range w.encoders {
		var def *step.Definition
		var err error
		if st != nil {
			def, err = e.DefineStruct(name, st, shape)
		} else {
			def, err = e.Define(name, t, shape)
		}
		if err != nil {
			return nil, w.fail("define", err)
		}
		d.ranks = append(d.ranks, def)
	}
	return d, nil
}

// Name returns the variable's name.
func (d *Definition) Name() string { return d.name }

// Type returns the element type.
func (d *Definition) Type() step.Type { return d.typ }

// SetShape changes the dimensions of a global array, for the open step and
// those after it; their number stays.
func (d *Definition) SetShape(dims ...uint64) error {
	for _, def := range d.ranks {
		if err := def.SetShape(dims...); err != nil {
			return d.w.fail("set shape", err)
		}
	}
	return nil
}

// of returns what to put d through in st.
func (d *Definition) of(st *WriterStep, op string) (*step.Encoder, *step.Definition, error) {
	if d.w != st.w {
		return nil, nil, st.w.fail(op, fmt.Errorf("variable %q belongs to stream %s: %w", d.Name(), d.w.name, ErrOrder))
	}
	e, err := st.encoder(op)
	if err != nil {
		return nil, nil, err
	}
	if d.ranks[0].Kind() == step.GlobalValueKind {
		// ADIOS2 readers take it from the first rank that ever put it, and see
		// nothing in a step in which another one does. Between processes it stays
		// where it was put, as it does in ADIOS2.
		return st.w.encoders[0], d.ranks[0], nil
	}
	return e, d.ranks[st.rank], nil
}

// PutBytes puts one block of raw elements; the data is copied before it
// returns. For values the box is zero and data one element.
func (st *WriterStep) PutBytes(d *Definition, box step.Box, data []byte) error {
	st.filling.enter()
	defer st.filling.leave()
	e, def, err := d.of(st, "put")
	if err == nil {
		err = st.wrap("put", e.Put(def, box, data))
	}
	return err
}

// PutText puts the value of a string variable.
func (st *WriterStep) PutText(d *Definition, s string) error {
	st.filling.enter()
	defer st.filling.leave()
	e, def, err := d.of(st, "put")
	if err == nil {
		err = st.wrap("put", e.PutText(def, s))
	}
	return err
}

func (st *WriterStep) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return st.w.fail(op, err)
}

// SetAttribute sets an attribute of the stream, from the next step that ends
// on. All attributes reach readers that come later, too. Any rank of a cohort can
// set attributes that no other rank sets, or the same ones as another.
func (w *Writer) SetAttribute(a step.AttributeDef) error {
	if len(w.encoders) == 0 {
		return w.fail("set attribute", fmt.Errorf("this process stands for no rank: %w", ErrOrder))
	}
	if err := w.encoders[0].SetAttribute(a); err != nil {
		return w.fail("set attribute", err)
	}
	return nil
}

// Variable is a variable of a writer, with elements of type T.
type Variable[T step.Element] struct{ *Definition }

// Define declares a variable of a writer. A name can be declared once; the
// shape of a global array may change later, see [Definition.SetShape].
func Define[T step.Element](w *Writer, name string, shape step.Shape) (*Variable[T], error) {
	d, err := w.DefineUntyped(name, step.TypeOf[T](), nil, shape)
	if err != nil {
		return nil, err
	}
	return &Variable[T]{d}, nil
}

// Put puts one block; data is copied before it returns and stays the caller's.
// It holds as many elements as the box. Several blocks of a variable can be put
// in a step.
func (v *Variable[T]) Put(st *WriterStep, box step.Box, data []T) error {
	st.filling.enter()
	defer st.filling.leave()
	e, def, err := v.of(st, "put")
	if err == nil {
		err = st.wrap("put", step.PutSlice(e, def, box, data))
	}
	return err
}

// PutValue puts the value of a global or local value; the last one counts.
func (v *Variable[T]) PutValue(st *WriterStep, value T) error {
	if s, ok := any(value).(string); ok {
		return st.PutText(v.Definition, s)
	}
	return v.Put(st, step.Box{}, []T{value})
}

// Span returns the memory of one block to compute into: nothing is copied. What
// it holds at first is undefined. It belongs to the caller until the step ends,
// and must not be touched afterwards. If the step is given up otherwise, because the
// writer or its session is closed, the memory stays until the next call for the step,
// such as Abort, or until nothing refers to the step.
func (v *Variable[T]) Span(st *WriterStep, box step.Box) ([]T, error) {
	st.filling.enter()
	defer st.filling.leave()
	e, def, err := v.of(st, "span")
	if err != nil {
		return nil, err
	}
	s, err := step.SpanSlice[T](e, def, box)
	st.filling.spans = st.filling.spans || err == nil
	return s, st.wrap("span", err)
}
