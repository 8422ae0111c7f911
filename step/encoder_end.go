package step

import (
	"fmt"
)

// End closes the open step and returns what readers need of it. Spans belong to
// the store from now on; their statistics are computed here. On an error the
// step is aborted; only ErrNoStep, the store and formats beyond what FFS can
// express are causes.
func (e *Encoder) End() (Output, error) {
	if e.store == nil {
		return Output{}, fmt.Errorf("step: end: %w", ErrNoStep)
	}
	defer e.Abort() // clears the step; the output is out by then
	out, err := e.output()
	if err != nil {
		return Output{}, fmt.Errorf("step: end: %w", err)
	}
	return out, nil
}

// output makes the records of the open step. Everything that can fail comes
// before the formats are counted as sent: after an error, the next step sends
// them.
func (e *Encoder) output() (Output, error) {
	var out Output
	if _, _, err := e.store.Alloc(0, dataPadding); err != nil {
		return out, err
	}
	out.DataSize = e.store.Size()
	for _, d := range e.touched {
		if err := e.record(d); err != nil {
			return out, err
		}
	}
	var err error
	if out.Metadata, err = e.meta.Append(nil, out.DataSize); err != nil {
		return out, err
	}
	format, err := e.meta.Format()
	if err != nil {
		return out, err
	}
	attrs, attrFormat, err := e.attrs.output()
	if err != nil {
		return out, err
	}
	first := len(e.formats) // those from here on are new
	for _, f := range e.pending {
		e.send(f)
	}
	e.pending = nil
	e.send(FormatBlock{ID: format.ID(), Body: format.Body()})
	if attrs != nil {
		e.send(*attrFormat)
	}
	out.Formats = e.formats[first:len(e.formats):len(e.formats)]
	out.Attributes = attrs
	return out, nil
}

// send adds a format to those that readers have, once.
func (e *Encoder) send(f FormatBlock) {
	if !e.sent[f.ID] {
		e.sent[f.ID] = true
		e.formats = append(e.formats, f)
	}
}

// record hands the blocks of an array over to the metadata record. Values are
// there already.
func (e *Encoder) record(d *Definition) error {
	if d.shape.Kind.IsValue() {
		return nil
	}
	m := &d.blocks
	for _, s := range d.spans {
		at := 2 * d.elemSize * s.block
		appendMinMax(m.MinMax[:at:at+2*d.elemSize], d.typ, s.mem)
	}
	if d.shape.Kind != LocalArrayKind {
		m.Shape = append(m.Shape[:0], d.shape.Dims...)
	}
	return e.meta.SetArray(d.field, m)
}

// wantsStats reports whether blocks of d have minimum and maximum.
func (d *Definition) wantsStats() bool { return d.desc.MinMax != 0 && d.typ.Ordered() }
