package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weft-fabric/weft/step"
)

// stepJSON prints one step as one line; docs/cli.md describes it.
func (d *dumper) stepJSON(ctx context.Context, st *step.Step, vars []*step.Variable) error {
	d.out.printf(`{"step":%d,"variables":{`, st.Number())
	for i, v := range vars {
		if i > 0 {
			d.out.text(",")
		}
		d.out.bytes(append(appendJSONString(nil, v.Name()), ':'))
		if err := d.varJSON(ctx, v); err != nil {
			if isOutput(err) || ctx.Err() != nil {
				return err
			}
			d.complain(st, err)
			d.out.bytes(appendJSONString([]byte(`,"error":`), message(err)))
		}
		d.out.text("}")
	}
	b := appendAttributes([]byte("},"), st.Attributes())
	d.out.bytes(append(b, "}\n"...))
	return nil
}

// varJSON prints the object of a variable without its closing brace.
func (d *dumper) varJSON(ctx context.Context, v *step.Variable) error {
	d.out.printf(`{"type":%q,"kind":%q`, v.Type(), v.Kind())
	if err := v.Err(); err != nil {
		return err
	}
	if v.Kind() == step.LocalArrayKind {
		return d.blocksJSON(ctx, v)
	}
	sel, err := d.cut.selectionOf(v)
	d.dims("shape", v.Shape())
	if err != nil {
		return err
	}
	d.dims("start", sel.box.Start)
	d.dims("count", sel.box.Count)
	return d.dataJSON(ctx, v, sel)
}

func (d *dumper) blocksJSON(ctx context.Context, v *step.Variable) (err error) {
	d.out.text(`,"blocks":[`)
	for i, blk := range v.Blocks() {
		if i > 0 {
			d.out.text(",")
		}
		d.out.printf(`{"rank":%d`, blk.Rank)
		sel, cutErr := d.cut.selectionOfBlock(v, blk)
		if err = cutErr; err == nil {
			if !d.cut.all() {
				d.dims("start", sel.box.Start)
			}
			d.dims("count", sel.box.Count)
			err = d.dataJSON(ctx, v, sel)
		}
		d.out.text("}")
		if err != nil {
			break
		}
	}
	d.out.text("]")
	return err
}

func (d *dumper) dims(key string, dims []uint64) {
	b := append(append([]byte(`,"`), key...), `":[`...)
	for i, n := range dims {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, n, 10)
	}
	d.out.bytes(append(b, ']'))
}

// dataJSON prints the elements. The array is closed whatever happens, so that
// the line stays JSON.
func (d *dumper) dataJSON(ctx context.Context, v *step.Variable, sel selection) error {
	d.out.text(`,"data":[`)
	first := true
	r := reader{style: jsonStyle, element: func(text []byte) error {
		if !first {
			d.out.text(",")
		}
		first = false
		d.out.bytes(text)
		return d.out.err
	}}
	missing, err := r.read(ctx, v, sel)
	d.out.text("]")
	if err == nil && missing > 0 {
		d.out.printf(`,"missing":%d`, missing)
	}
	return err
}

// appendAttributes appends `"attributes":{...}`.
func appendAttributes(b []byte, attrs []*step.Attribute) []byte {
	b = append(b, `"attributes":{`...)
	for i, a := range attrs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSONString(b, a.Name()), ':')
		b = fmt.Appendf(b, `{"type":%q,"value":`, a.Type())
		if a.IsArray() {
			b = append(b, '[')
		}
		b = appendAny(b, a.Value(), jsonStyle, ",")
		if a.IsArray() {
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	return append(b, '}')
}
