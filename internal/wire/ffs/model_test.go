package ffs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The model test makes random formats and random records of them. What Builder
// writes is compared with a second encoder, plain and recursive, and what View
// reads with the values that went in.

// model is a random struct value. Exactly one of the slices of a field is used.
type model struct {
	desc   *Struct
	fields []modelField
}

type modelField struct {
	raw   []byte // atoms, in place or not
	texts []*string
	subs  []*model // nil is NULL
	isNil bool     // a dynamic array, pointer or string that is NULL
}

// generator makes formats and values.
type generator struct {
	r       *rand.Rand
	structs []Struct
	left    int // structs that a record may still have
}

func (g *generator) pick(list ...string) string { return list[g.r.IntN(len(list))] }

// format makes a top struct and up to four others; a struct has those behind it
// in place or in arrays, and pointers to any.
func (g *generator) format() []Struct {
	g.structs = make([]Struct, 1+g.r.IntN(5))
	for i := len(g.structs) - 1; i >= 0; i-- {
		g.structs[i] = g.makeStruct(i)
	}
	return g.structs
}

func (g *generator) makeStruct(i int) Struct {
	s := Struct{Name: fmt.Sprintf("S%d", i)}
	add := func(name, typ string, size, span, align int) {
		s.RecordLen = (s.RecordLen + align - 1) / align * align
		s.Fields = append(s.Fields, Field{name, typ, size, s.RecordLen})
		s.RecordLen += span
	}
	add("n", g.pick("integer", "unsigned integer"), 4, 4, 4)
	add("m", "unsigned", 1, 1, 1)
	for k := range 1 + g.r.IntN(6) {
		name := fmt.Sprintf("f%d", k)
		size := 1 << g.r.IntN(5)
		base := "float"
		if size < 16 {
			base = g.pick("integer", "unsigned integer", "char", "Float")
		}
		switch kind := g.r.IntN(12); {
		case kind == 0:
			add(name, base, size, size, size)
		case kind == 1:
			c := 1 + g.r.IntN(4)
			add(name, fmt.Sprintf("%s[%d]", base, c), size, c*size, size)
		case kind == 2:
			add(name, base+g.pick("[n]", "[m]", "[2][n]", "[n][3]", "[n][m]"), size, 8, 8)
		case kind == 3:
			add(name, "string", 8, 8, 8)
		case kind == 4:
			add(name, "string"+g.pick("[n]", "[2][m]"), 8, 8, 8)
		case kind == 5:
			add(name, "string[2]", 8, 16, 8)
		case kind == 6:
			add(name, "*"+g.anyStruct(), 8, 8, 8)
		case kind == 7:
			add(name, "(*"+g.anyStruct()+")"+g.pick("[n]", "[m]"), 8, 8, 8)
		case kind == 8:
			add(name, "(*"+g.anyStruct()+")[2]", 8, 16, 8)
		case i+1 == len(g.structs):
			add(name, "integer", 8, 8, 8)
		default:
			sub := &g.structs[i+1+g.r.IntN(len(g.structs)-i-1)]
			stride := sub.RecordLen + 8*g.r.IntN(2) // declared larger than it is
			switch kind {
			case 9:
				add(name, sub.Name, stride, stride, 8)
			case 10:
				add(name, sub.Name+"[2]", stride, 2*stride, 8)
			default:
				add(name, sub.Name+g.pick("[n]", "[m]"), stride, 8, 8)
			}
		}
	}
	return s
}

func (g *generator) anyStruct() string { return fmt.Sprintf("S%d", g.r.IntN(len(g.structs))) }

// value makes a value of a struct, smaller the deeper it is.
func (g *generator) value(f *Format, l *layout, depth int) *model {
	g.left--
	m := &model{desc: l.desc, fields: make([]modelField, len(l.fields))}
	counts := map[int]int{0: g.r.IntN(4), 1: g.r.IntN(3)}
	for i := range l.fields {
		lf, mf := &l.fields[i], &m.fields[i]
		if n, ok := counts[i]; ok {
			mf.raw = make([]byte, lf.size)
			mf.raw[0] = byte(n)
			continue
		}
		n := lf.n
		for _, c := range lf.counts {
			n *= counts[c]
		}
		mf.isNil = lf.dynamic && (n == 0 || g.r.IntN(4) == 0)
		if mf.isNil {
			continue
		}
		switch lf.elem {
		case atom:
			mf.raw = make([]byte, n*lf.size)
			for k := range mf.raw {
				mf.raw[k] = byte(g.r.Uint32())
			}
		case text:
			for range n {
				mf.texts = append(mf.texts, g.text(lf.plain))
			}
		default:
			for range n {
				sub := (*model)(nil)
				if lf.elem == structure || depth < 4 && g.left > 0 && g.r.IntN(3) > 0 {
					sub = g.value(f, lf.sub, depth+1)
				}
				mf.subs = append(mf.subs, sub)
			}
		}
	}
	return m
}

// text makes a string; only a plain one can be set to NULL.
func (g *generator) text(plain bool) *string {
	if plain && g.r.IntN(4) == 0 {
		return nil
	}
	s := "abcdefghijklmnopqrstuvwxyz"[:g.r.IntN(27)]
	return &s
}

// build fills a Builder with a value.
func (m *model) build(b *Builder) *Builder {
	for i := range m.fields {
		lf, mf := &b.l.fields[i], &m.fields[i]
		switch {
		case mf.isNil:
		case lf.elem == atom:
			b.SetRaw(i, mf.raw)
		case lf.elem == text && lf.plain && mf.texts[0] == nil:
			b.SetTextNil(i)
		case lf.elem == text && lf.plain:
			b.SetText(i, *mf.texts[0])
		case lf.elem == text:
			var list []string
			for _, s := range mf.texts {
				list = append(list, *s)
			}
			b.SetTexts(i, list)
		default:
			var kids []*Builder
			for _, s := range mf.subs {
				if s == nil {
					kids = append(kids, nil)
					continue
				}
				kids = append(kids, s.build(b.Child(s.desc.Name)))
			}
			b.SetStructs(i, kids...)
		}
	}
	return b
}

// plainEncoder writes records by the rules of docs/wire/ffs.md §5.2, word for
// word and with recursion.
type plainEncoder struct{ body []byte }

func (e *plainEncoder) pad() {
	for len(e.body)%8 != 0 {
		e.body = append(e.body, 0)
	}
}

func (e *plainEncoder) reserve(n int) int {
	at := len(e.body)
	e.body = append(e.body, make([]byte, n)...)
	return at
}

func (e *plainEncoder) point(at int) {
	binary.LittleEndian.PutUint64(e.body[at:], uint64(len(e.body)))
}

// behind reports whether anything will be written behind the struct.
func (m *model) behind(l *layout) bool {
	for i := range m.fields {
		lf, mf := &l.fields[i], &m.fields[i]
		if mf.isNil || lf.elem == atom && !lf.dynamic {
			continue
		}
		if lf.dynamic {
			return true
		}
		for _, s := range mf.texts {
			if s != nil {
				return true
			}
		}
		for _, s := range mf.subs {
			if s != nil && (lf.elem == pointer || s.behind(lf.sub)) {
				return true
			}
		}
	}
	return false
}

func (e *plainEncoder) record(f *Format, m *model) []byte {
	l := &f.layouts[0]
	e.reserve(l.size)
	if m.behind(l) {
		e.pad()
	}
	e.structAt(l, m, 0)
	id := f.ID()
	rec := id[:]
	if f.Variant() {
		rec = binary.LittleEndian.AppendUint64(rec, uint64(len(e.body)))
	}
	return append(append(rec, 0, 0, 0, 0), e.body...)
}

func (e *plainEncoder) structAt(l *layout, m *model, at int) {
	e.flat(l, m, at)
	for i := range m.fields {
		lf, mf := &l.fields[i], &m.fields[i]
		if mf.isNil || lf.elem == atom && !lf.dynamic {
			continue
		}
		row := at + lf.offset
		if lf.dynamic {
			e.pad()
			e.point(row)
			if lf.elem == atom {
				e.body = append(e.body, mf.raw...)
				continue
			}
			row = e.reserve(lf.size * max(len(mf.texts), len(mf.subs)))
		}
		for k, s := range mf.texts {
			if s != nil {
				e.point(row + 8*k)
				e.body = append(append(e.body, *s...), 0)
			}
		}
		if lf.elem == structure { // all of the row, before what is behind its first
			for k, s := range mf.subs {
				e.flat(lf.sub, s, row+k*lf.size)
			}
		}
		for k, s := range mf.subs {
			switch {
			case s == nil:
			case lf.elem == structure:
				e.structAt(lf.sub, s, row+k*lf.size)
			default:
				e.pad()
				e.point(row + 8*k)
				e.structAt(lf.sub, s, e.reserve(lf.sub.size))
			}
		}
	}
}

// flat writes the atoms in place.
func (e *plainEncoder) flat(l *layout, m *model, at int) {
	for i := range m.fields {
		if lf := &l.fields[i]; lf.elem == atom && !lf.dynamic {
			copy(e.body[at+lf.offset:], m.fields[i].raw)
		}
	}
}

// compare reads a View and compares it with the value.
func (m *model) compare(v View) error {
	if v.Name() != m.desc.Name || v.NumFields() != len(m.desc.Fields) {
		return fmt.Errorf("struct %q of %d fields, want %q", v.Name(), v.NumFields(), m.desc.Name)
	}
	for i := range m.fields {
		if v.Field(i) != m.desc.Fields[i] || v.Index(v.Field(i).Name) != i {
			return fmt.Errorf("field %d: %+v", i, v.Field(i))
		}
		if err := m.compareField(v, i); err != nil {
			return fmt.Errorf("%s.%s: %w", m.desc.Name, v.Field(i).Name, err)
		}
	}
	return nil
}

func (m *model) compareField(v View, i int) error {
	lf, mf := &v.l.fields[i], &m.fields[i]
	n, err := v.Count(i)
	if err != nil {
		return err
	}
	if mf.isNil && n != 0 {
		return fmt.Errorf("%d elements, want NULL", n)
	}
	switch lf.elem {
	case atom:
		p, err := v.Raw(i)
		if err != nil || !bytes.Equal(p, mf.raw) || mf.isNil && p != nil {
			return fmt.Errorf("% x, want % x: %v", p, mf.raw, err)
		}
	case text:
		return m.compareTexts(v, i, n)
	default:
		list, err := v.Structs(i)
		if err != nil || len(list) != len(mf.subs) || n != len(list) {
			return fmt.Errorf("%d structs, want %d: %v", len(list), len(mf.subs), err)
		}
		for k, sub := range list {
			want := mf.subs[k]
			if sub.IsNil() != (want == nil) {
				return fmt.Errorf("struct %d: NULL is %v", k, sub.IsNil())
			}
			if want != nil {
				if err := want.compare(sub); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (m *model) compareTexts(v View, i, n int) error {
	mf := &m.fields[i]
	if v.l.fields[i].plain {
		s, ok, err := v.Text(i)
		if want := mf.texts[0]; err != nil || ok != (want != nil) || ok && s != *want {
			return fmt.Errorf("%q, %v: %v", s, ok, err)
		}
		return nil
	}
	list, err := v.Texts(i)
	if err != nil || len(list) != n || n != len(mf.texts) {
		return fmt.Errorf("%d strings, want %d: %v", len(list), len(mf.texts), err)
	}
	for k, s := range list {
		if s != *mf.texts[k] {
			return fmt.Errorf("string %d: %q, want %q", k, s, *mf.texts[k])
		}
	}
	return nil
}

func TestModel(t *testing.T) {
	for seed := range uint64(500) {
		if err := runModel(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) {
		if err := runModel(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	})
}

func runModel(seed uint64) error {
	g := &generator{r: rand.New(rand.NewPCG(seed, 1)), left: 200}
	built, err := New(g.format()...)
	if err != nil {
		return err
	}
	f, _, err := Parse(built.Body())
	if err != nil || f.ID() != built.ID() {
		return fmt.Errorf("parsed again: %v", err)
	}
	m := g.value(f, &f.layouts[0], 0)
	got, err := m.build(f.NewRecord()).Append(nil)
	if err != nil {
		return err
	}
	if want := new(plainEncoder).record(f, m); !bytes.Equal(got, want) {
		return fmt.Errorf("format %+v\n% x\nwant\n% x", f.Structs(), got, want)
	}
	r, n, err := f.Record(got)
	if err != nil || n != len(got) {
		return fmt.Errorf("%d bytes of %d: %w", n, len(got), err)
	}
	if err := m.compare(r.Top()); err != nil {
		return err
	}
	b, err := r.Builder()
	if err != nil {
		return err
	}
	if again, err := b.Append(nil); err != nil || !bytes.Equal(got, again) {
		return fmt.Errorf("copied: %v", err)
	}
	bufs, err := b.Buffers(1 + int(seed%40))
	if err != nil || !bytes.Equal(bytes.Join(bufs, nil), got) {
		return fmt.Errorf("buffers: %v", err)
	}
	return nil
}
