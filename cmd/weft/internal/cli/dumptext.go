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
	fmt.Fprintf(d.out, "Step %d:\n", st.Number())
	wt, wn := minTypeWidth, minNameWidth
	for _, v := range vars {
		wt, wn = max(wt, utf8.RuneCountInString(v.Type().String())), max(wn, utf8.RuneCountInString(v.Name()))
	}
	if len(d.opt.vars) == 0 {
		d.attrsText(st, wt, wn)
	}
	for _, v := range vars {
		e := &entry{kind: v.Kind()}
		e.steps = 1
		for _, blk := range v.Blocks() {
			if e.kind == step.LocalArrayKind {
				e.seeDims(blk.Box.Count)
			}
		}
		if e.kind != step.LocalArrayKind {
			e.seeDims(v.Shape())
		}
		e.blocks.see(uint64(v.NumBlocks()))
		fmt.Fprintf(d.out, "  %-*s  %-*s  %s", wt, v.Type(), wn, v.Name(), e.shape())
		if err := d.varText(ctx, v); err != nil {
			if isOutput(err) || ctx.Err() != nil {
				return err
			}
			d.complain(err)
			fmt.Fprintf(d.out, "\n    ! %s\n", message(err))
		}
	}
	return d.out.Flush()
}

// attrsText prints the attributes that are new or have changed.
func (d *dumper) attrsText(st *step.Step, wt, wn int) {
	for _, a := range st.Attributes() {
		text := attrText(a)
		if old, known := d.attrs[a.Name()]; known && old == text {
			continue
		}
		d.attrs[a.Name()] = text
		fmt.Fprintf(d.out, "  %-*s  %-*s  attr   = %s\n", wt, a.Type(), wn, a.Name(), text)
	}
}

func (d *dumper) varText(ctx context.Context, v *step.Variable) error {
	if err := v.Err(); err != nil {
		return err
	}
	if v.Kind() == step.LocalArrayKind {
		d.out.WriteByte('\n')
		for _, blk := range v.Blocks() {
			sel, err := d.cut.selectionOfBlock(v, blk)
			if err != nil {
				return err
			}
			fmt.Fprintf(d.out, "        block %d of rank %d: %s\n", blk.Index, blk.Rank, step.DimString(blk.Box.Count))
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
	d.out.WriteByte('\n')
	if !d.cut.all() {
		fmt.Fprintf(d.out, "    slice %s\n", sliceText(sel.box))
	}
	return d.rows(ctx, v, sel)
}

func (d *dumper) valueText(ctx context.Context, v *step.Variable, sel selection) error {
	r := reader{style: textStyle, element: func(text []byte) error {
		if _, err := fmt.Fprintf(d.out, " = %s\n", text); err != nil {
			return errOutput{err}
		}
		return nil
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
				d.out.WriteByte('\n')
			}
			fmt.Fprintf(d.out, "    %s    ", indexText(sel.box, n))
		}
		n++
		d.out.Write(text)
		if err := d.out.WriteByte(' '); err != nil {
			return errOutput{err}
		}
		return nil
	}}
	missing, err := r.read(ctx, v, sel)
	if n > 0 {
		d.out.WriteByte('\n')
	}
	if err == nil && missing > 0 {
		fmt.Fprintf(d.out, "    (%d elements were not written)\n", missing)
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
