package ffs

import (
	"fmt"
	"math"
)

// element is what a field has one or many of.
type element uint8

const (
	atom      element = iota // bytes without offsets in them
	structure                // a struct in place
	text                     // a slot that points at a NUL-terminated string
	pointer                  // a slot that points at a struct
)

// field is a Field with its type resolved.
type field struct {
	elem    element
	plain   bool // no array of any sort
	dynamic bool // one slot that points at the elements, wherever they are counted
	kind    Kind
	sub     *layout // for structure and pointer
	size    int     // bytes from one element to the next
	offset  int
	n       int   // product of the constant dimensions, 1 if there are none
	counts  []int // the counting fields
	slot    int   // index in layout.slots, -1 for atoms in place
}

// span is the number of bytes that the field certainly takes in its struct. A
// struct may declare a size beyond its record length; those bytes are a gap.
func (f *field) span() int {
	switch {
	case f.dynamic:
		return slotSize
	case f.elem == structure:
		return (f.n-1)*f.size + f.sub.size
	}
	return f.n * f.size
}

// flat reports whether an element has no offsets in it.
func (f *field) flat() bool {
	return f.elem == atom || f.elem == structure && !f.sub.variant
}

// layout is a Struct with its types resolved.
type layout struct {
	desc    *Struct
	size    int // record length, at least 1 where the struct is used by another
	fields  []field
	types   []Type
	index   map[string]int
	slots   []int  // the fields that are not atoms in place, in order
	variant bool   // has a slot, directly or in a struct in place or behind one
	fixed   []part // of the top struct, see fixedParts
	state   visit
}

// visit is the state of the depth-first searches over structs in place.
type visit uint8

const (
	fresh visit = iota
	active
	done
)

// resolve turns descriptions into layouts and checks everything that records
// rely on. The first struct is the top one; structs refer to each other by
// name, the first of a name counts.
func resolve(structs []Struct) ([]layout, error) {
	layouts := make([]layout, len(structs))
	byName := make(map[string]*layout, len(structs))
	for i := range structs {
		s := &structs[i]
		layouts[i].desc, layouts[i].size = s, s.RecordLen
		if _, ok := byName[s.Name]; !ok {
			byName[s.Name] = &layouts[i]
		}
	}
	// In three passes: names may refer forward, sizes are known after the first, and
	// what is variant after the second.
	for i := range layouts {
		if err := layouts[i].resolveFields(byName); err != nil {
			return nil, err
		}
	}
	for i := range layouts {
		if err := layouts[i].close(); err != nil {
			return nil, err
		}
	}
	for i := range layouts {
		if err := layouts[i].checkPlaces(); err != nil {
			return nil, err
		}
	}
	layouts[0].fixed = layouts[0].fixedParts()
	return layouts, nil
}

// resolveFields parses the types of all fields. A count may stand behind the
// array it counts, so names are indexed first.
func (l *layout) resolveFields(byName map[string]*layout) error {
	s := l.desc
	if s.RecordLen < 0 || s.RecordLen > maxRecordLen {
		return fmt.Errorf("%w: struct %q: record length %d", ErrFormat, clip(s.Name), s.RecordLen)
	}
	l.fields = make([]field, len(s.Fields))
	l.types = make([]Type, len(s.Fields))
	// Of equal names the first counts, as it does for structs.
	l.index = make(map[string]int, len(s.Fields))
	for i := range s.Fields {
		if _, ok := l.index[s.Fields[i].Name]; !ok {
			l.index[s.Fields[i].Name] = i
		}
	}
	lookup := func(name string) int { return l.find(name) }
	for i := range s.Fields {
		t, err := parseType(s.Fields[i].Type, lookup)
		if err == nil {
			l.types[i] = t
			err = l.fields[i].resolve(&s.Fields[i], &t, byName)
		}
		if err != nil {
			return l.fieldErr(i, err)
		}
		l.fields[i].slot = -1
		if l.fields[i].dynamic || l.fields[i].elem != atom {
			l.fields[i].slot = len(l.slots)
			l.slots = append(l.slots, i)
		}
	}
	return l.checkCounts()
}

// resolve fills f from its description and parsed type.
func (f *field) resolve(d *Field, t *Type, byName map[string]*layout) error {
	f.kind, f.size, f.offset, f.n = t.Kind, d.Size, d.Offset, 1
	f.plain = len(t.Dims) == 0
	if d.Size < 0 || d.Size > maxRecordLen {
		return fmt.Errorf("%w: element size %d", ErrFormat, d.Size)
	}
	if t.Kind == Substruct {
		if f.sub = byName[t.Struct]; f.sub == nil {
			return fmt.Errorf("%w: no struct %q in this format", ErrFormat, clip(t.Struct))
		}
		f.elem = structure
		if f.size < f.sub.size && !t.Pointer {
			return fmt.Errorf("%w: size %d, but struct %q has %d bytes", ErrFormat, f.size, clip(t.Struct), f.sub.size)
		}
	}
	switch {
	case t.Pointer:
		f.elem, f.size = pointer, slotSize
	case t.Kind == String:
		f.elem, f.size = text, slotSize
	}
	// Elements without a size could be in a record any number of times for nothing.
	if f.size < 1 || f.sub != nil && f.sub.size < 1 {
		return fmt.Errorf("%w: element size %d", ErrFormat, f.size)
	}
	for _, dim := range t.Dims {
		if dim.Field >= 0 {
			f.dynamic = true
			f.counts = append(f.counts, dim.Field)
			continue
		}
		// A bound in each step keeps the product in range.
		if f.n > maxRecordLen/dim.Const {
			return fmt.Errorf("%w: too many elements", ErrFormat)
		}
		f.n *= dim.Const
	}
	return nil
}

// checkCounts refuses arrays that are counted by anything but a plain integer.
func (l *layout) checkCounts() error {
	for i := range l.fields {
		for _, c := range l.fields[i].counts {
			f := &l.fields[c]
			if !f.plain || f.kind != Integer && f.kind != Unsigned || !intSize(f.size) {
				return l.fieldErr(i, fmt.Errorf("%w: field %q cannot count elements", ErrFormat, clip(l.desc.Fields[c].Name)))
			}
		}
	}
	return nil
}

// intSize reports whether integers of n bytes exist.
func intSize(n int) bool { return n == 1 || n == 2 || n == 4 || n == 8 }

// close follows the structs in place below l: it finds out whether l is
// variant and refuses a struct that contains itself. The depth of the recursion
// is bounded by the number of structs, at most 256.
func (l *layout) close() error {
	switch l.state {
	case done:
		return nil
	case active:
		return fmt.Errorf("%w: struct %q contains itself", ErrFormat, clip(l.desc.Name))
	}
	l.state = active
	for _, i := range l.slots {
		f := &l.fields[i]
		if f.elem == structure && !f.dynamic {
			if err := f.sub.close(); err != nil {
				return err
			}
		}
		if f.dynamic || f.elem != structure || f.sub.variant {
			l.variant = true
		}
	}
	l.state = done
	return nil
}

// checkPlaces refuses fields outside the record and fields that overlap: with
// overlaps, a small record could have any number of nested structs in it.
func (l *layout) checkPlaces() error {
	end := 0
	for i := range l.fields {
		f := &l.fields[i]
		if f.n > maxRecordLen/f.size {
			return l.fieldErr(i, fmt.Errorf("%w: too many elements", ErrFormat))
		}
		span := f.span()
		if f.offset < 0 || f.offset > l.size-span {
			return l.fieldErr(i, fmt.Errorf("%w: bytes %d..%d lie outside the record of %d", ErrFormat, f.offset, f.offset+span, l.size))
		}
		// Gaps are allowed, ADIOS2 leaves many.
		if f.offset < end {
			return l.fieldErr(i, fmt.Errorf("%w: offset %d, but the field before it ends at %d", ErrFormat, f.offset, end))
		}
		end = f.offset + span
	}
	return nil
}

// find returns the index of a field, -1 if there is none of that name.
func (l *layout) find(name string) int {
	if i, ok := l.index[name]; ok {
		return i
	}
	return -1
}

// fieldErr says in which field err happened.
func (l *layout) fieldErr(i int, err error) error {
	return fmt.Errorf("%w (struct %q, field %d %q)", err, clip(l.desc.Name), i, clip(l.desc.Fields[i].Name))
}

// product multiplies a count into n, both non-negative.
func product(n, count int) (int, bool) {
	if count != 0 && n > math.MaxInt/count {
		return 0, false
	}
	return n * count, true
}
