package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weft-fabric/weft/step"
)

// elementsPerRow is how many elements bpls prints in a row.
const elementsPerRow = 6

// stepText prints one step for people, as "bpls -dt" does.
func (d *dumper) stepText(ctx context.Context, st *step.Step, vars []*step.Variable) error {
	if len(d.opt.vars) > 0 && len(vars) == 0 {
		return nil // a step without any of the wanted ones
	}
	d.out.printf("Step %d:\n", st.Number())
	var attrs []line
	if len(d.opt.vars) == 0 {
		attrs = d.newAttrs(st)
	}
	wt, wn := minTypeWidth, minNameWidth
	for _, a := range attrs {
		wt, wn = max(wt, utf8.RuneCountInString(a.typ)), max(wn, utf8.RuneCountInString(a.name))
	}
	for _, v := range vars {
		wt, wn = max(wt, utf8.RuneCountInString(v.Type().String())), max(wn, utf8.RuneCountInString(printable(v.Name())))
	}
	for _, a := range attrs {
		d.out.printf("  %-*s  %-*s  %s\n", wt, a.typ, wn, a.name, a.rest)
	}
	for _, v := range vars {
		d.out.printf("  %-*s  %-*s  %s", wt, v.Type(), wn, printable(v.Name()), shapeText(v))
		if err := d.varText(ctx, v); err != nil {
			if isOutput(err) || ctx.Err() != nil {
				return err
			}
			d.complain(st, err)
			d.out.printf("\n    ! %s\n", message(err))
		}
	}
	return nil
}

// shapeText renders the shape of a variable in one step, as ls does.
func shapeText(v *step.Variable) string {
	e := &entry{kind: v.Kind(), steps: 1}
	e.see(v)
	return e.shape()
}

// newAttrs lists the attributes that are new or have changed.
func (d *dumper) newAttrs(st *step.Step) (list []line) {
	for _, a := range st.Attributes() {
		text := attrText(a)
		if old, known := d.attrs[a.Name()]; known && old == text {
			continue
		}
		d.attrs[a.Name()] = text
		list = append(list, line{typ: a.Type().String(), name: printable(a.Name()), rest: "attr   = " + text})
	}
	return list
}

func (d *dumper) varText(ctx context.Context, v *step.Variable) error {
	if err := v.Err(); err != nil {
		return err
	}
	if v.Kind() == step.LocalArrayKind {
		d.out.text("\n")
		for _, blk := range v.Blocks() {
			sel, err := d.cut.selectionOfBlock(v, blk)
			if err != nil {
				return err
			}
			d.out.printf("        block %d of rank %d: %s\n", blk.Index, blk.Rank, step.DimString(blk.Box.Count))
			if err := d.rows(ctx, v, sel); err != nil {
				return err
			}
		}
		return nil
	}
	sel, err := d.cut.selectionOf(v)
	if err != nil {
		return err
	}
	if v.Kind() == step.GlobalValueKind {
		return d.valueText(ctx, v, sel)
	}
	d.out.text("\n")
	if !d.cut.all() {
		d.out.printf("    slice %s\n", sliceText(sel.box))
	}
	return d.rows(ctx, v, sel)
}

func (d *dumper) valueText(ctx context.Context, v *step.Variable, sel selection) error {
	r := reader{style: textStyle, element: func(text []byte) error {
		d.out.printf(" = %s\n", text)
		return d.out.err
	}}
	_, err := r.read(ctx, v, sel)
	return err
}

func sliceText(box step.Box) string {
	var parts []string
	for d := range box.Count {
		if box.Count[d] == 0 {
			return "of no elements"
		}
		parts = append(parts, fmt.Sprintf("%d:%d", box.Start[d], box.Start[d]+box.Count[d]-1))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// rows prints elements in rows that begin with the index of the first.
func (d *dumper) rows(ctx context.Context, v *step.Variable, sel selection) error {
	n := uint64(0)
	r := reader{style: textStyle, element: func(text []byte) error {
		if n%elementsPerRow == 0 {
			if n > 0 {
				d.out.text("\n")
			}
			d.out.printf("    %s   ", indexText(sel.box, n))
		}
		n++
		d.out.text(" ")
		d.out.bytes(text)
		return d.out.err
	}}
	missing, err := r.read(ctx, v, sel)
	if n > 0 {
		d.out.text("\n")
	}
	if err == nil && missing > 0 {
		d.out.printf("    (%d elements were not written)\n", missing)
	}
	return err
}

// indexText renders the index of element n of the box.
func indexText(box step.Box, n uint64) string {
	idx := make([]string, len(box.Count))
	for d := len(idx) - 1; d >= 0; d-- {
		idx[d] = fmt.Sprint(box.Start[d] + n%box.Count[d])
		n /= box.Count[d]
	}
	return "(" + strings.Join(idx, ",") + ")"
}
