package ffs

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Builder is one struct of a record that is being written. The setters mirror
// the methods of View; fields that are not set are zero or NULL. The first
// error of a setter is kept and returned by Append, Buffers and Len of any
// record that the struct is part of.
//
// A Builder and all that were made from it with Child belong to one goroutine
// at a time, also while they are being encoded.
type Builder struct {
	f     *Format
	l     *layout
	fixed []byte  // the struct itself; slots and structs in place are put in when it is encoded
	vals  []value // what the fields of l.slots hold
	mem   *arena
	err   error
	busy  bool // on the encoder's stack; finds cycles
}

// value is what a field that is not an atom in place holds.
type value struct {
	set  bool
	raw  []byte     // bytes of a dynamic flat array, or of a plain string
	kids []*Builder // structs; nil entries are NULL
	list *many      // an array of strings, or a raw value in pieces
}

// many is what only few fields hold, so that values stay small.
type many struct {
	texts []string
	nulls []bool   // which of texts are NULL; nil for none
	parts [][]byte // a raw value
	size  int      // bytes of parts
}

// NewRecord returns an empty top struct.
func (f *Format) NewRecord() *Builder {
	return newBuilder(f, &f.layouts[0], newArena())
}

// newBuilder returns an empty instance of l with memory from mem.
func newBuilder(f *Format, l *layout, mem *arena) *Builder {
	b := mem.builder()
	*b = Builder{f: f, l: l, mem: mem, fixed: mem.bytes(l.size), vals: mem.values(len(l.slots))}
	return b
}

// Child returns an empty instance of a struct of the same format, to be put
// into a field with SetStructs. An unknown name is an error of b.
func (b *Builder) Child(structName string) *Builder {
	l := b.f.layout(structName)
	if l == nil {
		b.fail(fmt.Errorf("%w: no struct %q in format %q", ErrKind, clip(structName), clip(b.f.Name())))
		return &Builder{f: b.f, l: &layout{desc: &Struct{Name: structName}}, mem: b.mem, err: b.err}
	}
	return newBuilder(b.f, l, b.mem)
}

// Name returns the name of the struct.
func (b *Builder) Name() string { return b.l.desc.Name }

// Index returns the index of the field of that name, -1 if there is none.
func (b *Builder) Index(name string) int { return b.l.find(name) }

// fail keeps the first error.
func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// field returns field i, nil (and an error of b) if there is none.
func (b *Builder) field(i int) *field {
	if i < 0 || i >= len(b.l.fields) {
		b.fail(fmt.Errorf("%w: no field %d in struct %q of %d fields", ErrKind, i, clip(b.l.desc.Name), len(b.l.fields)))
		return nil
	}
	return &b.l.fields[i]
}

// bad makes a wrong value of field i an error of b.
func (b *Builder) bad(i int, format string, args ...any) {
	b.fail(b.l.fieldErr(i, fmt.Errorf("%w: %s", ErrValue, fmt.Sprintf(format, args...))))
}

// SetInt sets a plain integer, unsigned integer, enumeration, boolean or char,
// which the value must fit into. An unsigned integer of 8 bytes takes the bits
// of v.
func (b *Builder) SetInt(i int, v int64) {
	f := b.field(i)
	if f == nil {
		return
	}
	if !f.integer() {
		b.fail(b.l.kindErr(i, "a plain integer"))
		return
	}
	if !f.fits(v) {
		b.bad(i, "%d does not fit into %d bytes", v, f.size)
		return
	}
	// The range was checked: cutting to the size loses nothing.
	p := b.fixed[f.offset:]
	switch f.size {
	case 1:
		p[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(v))
	default:
		binary.LittleEndian.PutUint64(p, uint64(v))
	}
}

// fits reports whether v is in the range of an integer field. Chars and
// enumerations may be meant either way, so both ranges are taken.
func (f *field) fits(v int64) bool {
	if f.size == 8 {
		return true
	}
	half := int64(1) << (8*f.size - 1)
	low, high := -half, half-1
	if f.kind != Integer {
		high = 2*half - 1
	}
	if f.kind == Unsigned || f.kind == Boolean {
		low = 0
	}
	return low <= v && v <= high
}

// SetFloat sets a plain float of 4 or 8 bytes.
func (b *Builder) SetFloat(i int, v float64) {
	f := b.field(i)
	if f == nil {
		return
	}
	if !f.float() {
		b.fail(b.l.kindErr(i, "a plain float of 4 or 8 bytes"))
		return
	}
	if f.size == 4 {
		binary.LittleEndian.PutUint32(b.fixed[f.offset:], math.Float32bits(float32(v)))
		return
	}
	binary.LittleEndian.PutUint64(b.fixed[f.offset:], math.Float64bits(v))
}

// SetRaw sets the bytes of a field that Raw can read. For a field in place p
// must have exactly its size and is copied. For a dynamic array p is kept, and
// must not change until the record has been encoded (with Buffers: until the
// buffers have been used); its length is compared with the counts of the record
// then. An empty p is NULL, whatever the counts are.
func (b *Builder) SetRaw(i int, p []byte) {
	f := b.field(i)
	if f == nil {
		return
	}
	if !f.flat() {
		b.fail(b.l.kindErr(i, "flat"))
		return
	}
	if f.dynamic {
		b.vals[f.slot] = value{set: true, raw: p}
		return
	}
	if len(p) != f.span() {
		b.bad(i, "%d bytes for a field of %d", len(p), f.span())
		return
	}
	copy(b.fixed[f.offset:], p)
	if f.slot >= 0 {
		b.vals[f.slot] = value{} // the bytes take the place of a struct
	}
}

// SetParts is SetRaw for a dynamic array whose bytes lie in several pieces: the
// value is their concatenation. The slice and the pieces are kept.
func (b *Builder) SetParts(i int, parts [][]byte) {
	f := b.field(i)
	if f == nil {
		return
	}
	if !f.flat() || !f.dynamic {
		b.fail(b.l.kindErr(i, "a flat dynamic array"))
		return
	}
	if len(parts) == 1 {
		b.SetRaw(i, parts[0])
		return
	}
	m := &many{parts: parts} // apart from value: few fields need it
	for _, p := range parts {
		m.size += len(p)
	}
	b.vals[f.slot] = value{set: true, list: m}
}

// SetText sets a string, which must not contain a NUL.
func (b *Builder) SetText(i int, s string) {
	if f := b.textField(i); f != nil && b.checkText(i, s) {
		p := b.mem.bytes(len(s) + 1)
		copy(p, s)
		b.vals[f.slot] = value{set: true, raw: p}
	}
}

// SetTextNil makes a string NULL, which it is if it was never set.
func (b *Builder) SetTextNil(i int) {
	if f := b.textField(i); f != nil {
		b.vals[f.slot] = value{}
	}
}

// textField returns field i if it is a single string.
func (b *Builder) textField(i int) *field {
	f := b.field(i)
	if f != nil && (f.elem != text || !f.plain) {
		b.fail(b.l.kindErr(i, "a plain string"))
		return nil
	}
	return f
}

// checkText refuses what a reader would see cut.
func (b *Builder) checkText(i int, s string) bool {
	if strings.IndexByte(s, 0) >= 0 {
		b.bad(i, "NUL in string %q", clip(s))
		return false
	}
	return true
}

// SetTexts sets an array of strings. s is kept until the record has been
// encoded. An empty array is NULL.
func (b *Builder) SetTexts(i int, s []string) {
	f := b.field(i)
	if f == nil {
		return
	}
	if f.elem != text || f.plain {
		b.fail(b.l.kindErr(i, "an array of strings"))
		return
	}
	for _, t := range s {
		if !b.checkText(i, t) {
			return
		}
	}
	b.vals[f.slot] = value{set: true, list: &many{texts: s}}
}

// SetStructs sets a field of type S, *S, S[n] or (*S)[n]. Pointers may be nil
// for NULL; no structs at all make the field NULL, or zero where the structs
// are in place. The structs are kept, not copied: they may still be filled
// afterwards. The same struct may be set in several places and is then written
// several times; a struct inside itself is an error when it is encoded.
func (b *Builder) SetStructs(i int, s ...*Builder) {
	f := b.field(i)
	if f == nil {
		return
	}
	if f.sub == nil {
		b.fail(b.l.kindErr(i, "a struct"))
		return
	}
	for k, kid := range s {
		switch {
		case kid == nil && f.elem != pointer:
			b.bad(i, "struct %d is nil, but not behind a pointer", k)
			return
		case kid != nil && kid.l != f.sub:
			if kid.err != nil {
				b.fail(kid.err)
			}
			b.bad(i, "struct %d is a %q of format %v", k, clip(kid.Name()), kid.f.id)
			return
		}
	}
	if len(s) == 0 {
		b.vals[f.slot] = value{}
		return
	}
	b.vals[f.slot] = value{set: true, kids: b.mem.row(s)}
}
