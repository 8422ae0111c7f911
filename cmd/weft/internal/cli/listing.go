package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weft-fabric/weft/step"
)

// listing is what ls knows of a dataset: each variable over all its steps.
type listing struct {
	steps int
	first uint64 // number of the first step
	vars  map[string]*entry
	attrs []*step.Attribute
}

// entry is one variable.
type entry struct {
	name    string
	typ     step.Type
	kind    step.Kind
	steps   int
	dims    []dim // of the array; of the blocks for local arrays
	blocks  dim   // of a local array
	bounds  bounds
	text    string // value of a string, if it has just one
	nothing bool   // dims were never known
	err     error
}

// dim is a number that may change from step to step.
type dim struct {
	n       uint64
	changes bool
	set     bool
}

func (d *dim) see(n uint64) {
	d.changes = d.changes || d.set && d.n != n
	d.n, d.set = n, true
}

func (d dim) String() string {
	if d.changes {
		return "__" // as bpls
	}
	return strconv.FormatUint(d.n, 10)
}

func newListing() *listing { return &listing{vars: map[string]*entry{}} }

// add takes a step in. With compute, bounds that the writer did not record are
// computed from the data.
func (l *listing) add(ctx context.Context, st *step.Step, compute bool) {
	if l.steps == 0 {
		l.first = st.Number()
	}
	l.steps++
	l.attrs = st.Attributes()
	for _, v := range st.Variables() {
		e := l.vars[v.Name()]
		if e == nil {
			e = &entry{name: v.Name(), typ: v.Type(), kind: v.Kind()}
			l.vars[v.Name()] = e
		}
		e.add(ctx, v, compute)
	}
}

func (e *entry) add(ctx context.Context, v *step.Variable, compute bool) {
	e.steps++
	if err := v.Err(); err != nil {
		e.err = err
	}
	e.see(v)
	if e.typ == step.String && e.kind == step.GlobalValueKind {
		if s, err := v.Any(ctx, step.All); err == nil {
			e.text = string(appendAny(nil, s, shortStyle, " "))
		}
	}
	e.bounds.add(ctx, v, compute)
}

// see takes the shape of v in.
func (e *entry) see(v *step.Variable) {
	if e.kind == step.LocalArrayKind {
		e.blocks.see(uint64(v.NumBlocks()))
		for _, b := range v.Blocks() {
			e.seeDims(b.Box.Count)
		}
	} else {
		e.seeDims(v.Shape())
	}
}

func (e *entry) seeDims(shape []uint64) {
	if len(e.dims) != len(shape) {
		if e.dims != nil {
			e.nothing = true // appended files may change anything
			return
		}
		e.dims = make([]dim, len(shape))
	}
	for i, n := range shape {
		e.dims[i].see(n)
	}
}

// shape renders steps, blocks and dimensions as bpls does.
func (e *entry) shape() string {
	var b strings.Builder
	if e.steps > 1 {
		fmt.Fprintf(&b, "%d*", e.steps)
	}
	if e.kind == step.GlobalValueKind {
		return b.String() + "scalar"
	}
	if e.kind == step.LocalArrayKind {
		fmt.Fprintf(&b, "[%v]*", e.blocks)
	}
	list := make([]string, len(e.dims))
	for i, d := range e.dims {
		list[i] = d.String()
		if e.nothing {
			list[i] = "__"
		}
	}
	return b.String() + "{" + strings.Join(list, ", ") + "}"
}

// value renders what -l adds.
func (e *entry) value() string {
	if e.err != nil {
		return " ! " + message(e.err)
	}
	if e.text != "" && e.steps == 1 {
		return " = " + e.text
	}
	lo, hi, ok := e.bounds.get()
	if !ok {
		return ""
	}
	text := appendAny([]byte(" = "), lo, shortStyle, "")
	if e.kind == step.GlobalValueKind && e.steps == 1 {
		return string(text)
	}
	return string(appendAny(append(text, " / "...), hi, shortStyle, ""))
}

// line is one line of ls.
type line struct{ typ, name, rest string }

func (l *listing) lines(opt lsOptions) []line {
	list := make([]line, 0, len(l.vars)+len(l.attrs))
	for _, e := range l.vars {
		ln := line{typ: e.typ.String(), name: printable(e.name), rest: e.shape()}
		if opt.long {
			ln.rest += e.value()
		}
		list = append(list, ln)
	}
	if opt.attrs {
		for _, a := range l.attrs {
			ln := line{typ: a.Type().String(), name: printable(a.Name()), rest: "attr"}
			if opt.long {
				ln.rest += "   = " + attrText(a)
			}
			list = append(list, ln)
		}
	}
	slices.SortFunc(list, func(a, b line) int { return strings.Compare(a.name+"\x00"+a.rest, b.name+"\x00"+b.rest) })
	return list
}

// attrText renders the value of an attribute as bpls does.
func attrText(a *step.Attribute) string {
	text := string(appendAny(nil, a.Value(), shortStyle, ", "))
	if a.IsArray() {
		return "{" + text + "}"
	}
	return text
}

// Column widths that bpls never goes below.
const (
	minTypeWidth = 7
	minNameWidth = 4
)

func (l *listing) writeText(w *output, opt lsOptions, src source) {
	if opt.verbose {
		l.writeHeader(w, src)
	}
	lines := l.lines(opt)
	wt, wn := minTypeWidth, minNameWidth
	for _, ln := range lines {
		wt, wn = max(wt, utf8.RuneCountInString(ln.typ)), max(wn, utf8.RuneCountInString(ln.name))
	}
	for _, ln := range lines {
		w.printf("  %-*s  %-*s  %s\n", wt, ln.typ, wn, ln.name, ln.rest)
	}
}

func (l *listing) writeHeader(w *output, src source) {
	what := "File info:"
	if src.Live() {
		what = "Stream info:"
	}
	w.printf("%s\n  of variables:  %d\n  of attributes: %d\n", what, len(l.vars), len(l.attrs))
	for _, ln := range src.Describe() {
		w.text(ln + "\n")
	}
	if src.Live() {
		w.printf("  step:          %d\n", l.first)
	}
	w.text("\n")
}

// writeJSON prints the listing as one object; see docs/cli.md.
func (l *listing) writeJSON(w *output, name string, opt lsOptions) {
	b := appendJSONString([]byte(`{"name":`), name)
	b = fmt.Appendf(b, `,"steps":%d,"variables":{`, l.steps)
	names := make([]string, 0, len(l.vars))
	for n := range l.vars {
		names = append(names, n)
	}
	slices.Sort(names)
	for i, n := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSONString(b, n), ':')
		b = l.vars[n].appendJSON(b)
	}
	b = append(b, '}')
	if opt.attrs {
		b = appendAttributes(append(b, ','), l.attrs)
	}
	w.bytes(append(b, "}\n"...))
}

func (e *entry) appendJSON(b []byte) []byte {
	b = fmt.Appendf(b, `{"type":%q,"kind":%q,"steps":%d`, e.typ, e.kind, e.steps)
	if e.kind == step.LocalArrayKind {
		b = append(append(b, `,"blocks":`...), e.blocks.json()...)
		b = append(b, `,"count":[`...)
	} else {
		b = append(b, `,"shape":[`...)
	}
	for i, d := range e.dims {
		if i > 0 {
			b = append(b, ',')
		}
		d.changes = d.changes || e.nothing
		b = append(b, d.json()...)
	}
	b = append(b, ']')
	if lo, hi, ok := e.bounds.get(); ok {
		b = appendAny(append(b, `,"min":`...), lo, jsonStyle, "")
		b = appendAny(append(b, `,"max":`...), hi, jsonStyle, "")
	}
	if e.err != nil {
		b = appendJSONString(append(b, `,"error":`...), message(e.err))
	}
	return append(b, '}')
}

func (d dim) json() string {
	if d.changes {
		return "null"
	}
	return d.String()
}
