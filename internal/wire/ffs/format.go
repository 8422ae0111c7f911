package ffs

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Format is a top struct with the structs that it uses. It is immutable, but
// for what Derived keeps, and safe for concurrent use.
type Format struct {
	id      ID
	body    []byte
	structs []Struct
	layouts []layout // as structs
	derived atomic.Pointer[derived]
}

// derived is what a user has made of a format.
type derived struct {
	made any
	err  error
}

// Derived returns what derive returned when it was first called, which is kept
// with the format, and freed with it: for the one package that makes something
// costly of formats that come from outside. Two that call it at the same time may
// both derive; both get the same.
func (f *Format) Derived(derive func() (any, error)) (any, error) {
	d := f.derived.Load()
	if d == nil {
		made, err := derive()
		f.derived.CompareAndSwap(nil, &derived{made, err})
		d = f.derived.Load()
	}
	return d.made, d.err
}

// maxStructs is what the one-byte count of structs behind the top one allows.
const maxStructs = 1 + 255

// New builds a format. structs[0] is the top struct; the others are emitted in
// the given order, which is part of the format's identity (Ordered puts them
// into the order that real peers use). Fields must be in the order of their
// offsets, lie inside the record and not overlap; names must be distinct.
//
// The descriptions are copied.
func New(structs ...Struct) (*Format, error) {
	if len(structs) == 0 || len(structs) > maxStructs {
		return nil, fmt.Errorf("%w: %d structs, want 1 to %d", ErrFormat, len(structs), maxStructs)
	}
	// Alignments are filled in below, in structs of our own.
	own := make([]Struct, len(structs))
	for i, s := range structs {
		s.Fields = slices.Clone(s.Fields)
		own[i] = s
	}
	layouts, err := resolve(own)
	if err != nil {
		return nil, err
	}
	if err := checkNames(layouts); err != nil {
		return nil, err
	}
	for i := range layouts {
		layouts[i].computeAlign()
	}
	body, err := appendBody(nil, own)
	if err != nil {
		return nil, err
	}
	return &Format{id: IDOf(body), body: body, structs: own, layouts: layouts}, nil
}

// Ordered builds a format with the structs behind top in the order of EVPath
// peers, so that the same descriptions give the same ID as there
// (docs/wire/ffs.md §2.3): depth first, the children of a struct by ascending
// name, each struct after its children, and all of that reversed. Structs that
// top does not use are left out.
func Ordered(top Struct, subs ...Struct) (*Format, error) {
	o := order{byName: map[string]*Struct{top.Name: &top}, seen: map[string]bool{}}
	for i := range subs {
		if o.byName[subs[i].Name] != nil {
			return nil, fmt.Errorf("%w: two structs %q", ErrFormat, clip(subs[i].Name))
		}
		o.byName[subs[i].Name] = &subs[i]
	}
	o.visit(&top)         // children first
	slices.Reverse(o.out) // the top struct came last
	return New(o.out...)
}

// order is the search behind Ordered.
type order struct {
	byName map[string]*Struct
	seen   map[string]bool
	out    []Struct
}

// visit emits the structs below s, then s. What it has seen it does not visit
// again, so recursive formats end. The depth is that of a description that
// the caller wrote, never of a foreign one.
func (o *order) visit(s *Struct) {
	o.seen[s.Name] = true
	var names []string
	for i := range s.Fields {
		t, _, err := parseBase(strings.TrimSpace(s.Fields[i].Type))
		if err == nil && t.Kind == Substruct { // New reports the errors
			names = append(names, t.Struct)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if sub := o.byName[name]; sub != nil && !o.seen[name] {
			o.visit(sub)
		}
	}
	o.out = append(o.out, *s)
}

// checkNames refuses what Parse tolerates from others: names that occur twice,
// of which only the first could ever be found.
func checkNames(layouts []layout) error {
	names := make(map[string]bool, len(layouts))
	for i := range layouts {
		l := &layouts[i]
		if names[l.desc.Name] {
			return fmt.Errorf("%w: two structs %q", ErrFormat, clip(l.desc.Name))
		}
		names[l.desc.Name] = true
		for k := range l.desc.Fields {
			if l.find(l.desc.Fields[k].Name) != k {
				return l.fieldErr(k, fmt.Errorf("%w: two fields of one name", ErrFormat))
			}
		}
	}
	return nil
}

// computeAlign sets the alignment of the struct if it has none: the largest of
// its fields', where slots count 8, plain numbers their size and structs in
// place their own (docs/wire/ffs.md §2.4). Structs in place do not form cycles,
// so the recursion ends.
func (l *layout) computeAlign() {
	if l.desc.Align != 0 {
		return
	}
	align := 1
	for i := range l.fields {
		f := &l.fields[i]
		switch {
		case f.dynamic || f.elem == text || f.elem == pointer:
			align = max(align, slotSize)
		case f.elem == structure:
			f.sub.computeAlign()
			align = max(align, f.sub.desc.Align)
		case f.size == 2 || f.size == 4 || f.size == 8 || f.size == 16:
			align = max(align, f.size)
		}
	}
	l.desc.Align = align
}

// ID returns the format's ID.
func (f *Format) ID() ID { return f.id }

// Body returns the format body. It is shared: read only.
func (f *Format) Body() []byte { return f.body }

// Name returns the name of the top struct.
func (f *Format) Name() string { return f.structs[0].Name }

// Structs returns the descriptions, the top struct first, with alignments
// filled in. They are shared: read only.
func (f *Format) Structs() []Struct { return f.structs }

// Types returns the parsed types of the fields of Structs()[i], nil if there
// is no such struct. They are shared: read only.
func (f *Format) Types(i int) []Type {
	if i < 0 || i >= len(f.layouts) {
		return nil
	}
	return f.layouts[i].types
}

// Variant reports whether records have a variable part, and so a length of
// their own.
func (f *Format) Variant() bool { return f.layouts[0].variant }

// FieldIndex returns the index of a field of the top struct, -1 if there is
// none of that name.
func (f *Format) FieldIndex(name string) int { return f.layouts[0].find(name) }

// layout finds a struct by name, nil if there is none.
func (f *Format) layout(name string) *layout {
	for i := range f.layouts {
		if f.layouts[i].desc.Name == name {
			return &f.layouts[i]
		}
	}
	return nil
}
