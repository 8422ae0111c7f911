package ffs

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Append appends the whole record, header included, to dst. The bytes are those
// of EVPath's own encoder for the same values (docs/wire/ffs.md §5.2). On an
// error dst is returned as it was.
func (b *Builder) Append(dst []byte) ([]byte, error) {
	n, err := b.Len()
	if err != nil {
		return dst, err
	}
	// Measured first: one allocation, and nothing is written if there is an error.
	e := encoder{buf: slices.Grow(dst, n), large: math.MaxInt}
	e.stack = e.few[:0]
	if err := e.record(b); err != nil {
		return dst, err
	}
	return e.buf, nil
}

// Buffers returns the record in pieces, for a vectored write: their
// concatenation is what Append gives. Raw values of dynamic arrays of at least
// small bytes (and at least one) are not copied, the pieces are the slices that
// were set.
func (b *Builder) Buffers(small int) ([][]byte, error) {
	e := encoder{large: max(small, 1), buf: make([]byte, 0, firstBuffer)}
	e.stack = e.few[:0]
	if err := e.record(b); err != nil {
		return nil, err
	}
	return e.pieces(), nil
}

// Len returns the length of the record in bytes. It finds all errors that
// Append finds.
func (b *Builder) Len() (int, error) {
	e := encoder{dry: true}
	e.stack = e.few[:0]
	if err := e.record(b); err != nil {
		return 0, err
	}
	return e.head + e.pos, nil
}

// firstBuffer is how much memory, in bytes, Buffers begins with.
const firstBuffer = 512

// noHeader stands for what comes behind the format ID until it is known.
var noHeader [longHeader - IDLen]byte

// encoder writes one record. Structs are walked with an explicit stack, so that
// lists of any length need no deep recursion.
type encoder struct {
	dry   bool // only measure: buf stays empty
	large int  // raw values of this size on are not copied

	buf   []byte // what has been copied
	refs  []ref  // what has not, in order
	start int    // of the record in buf
	head  int    // length of the header
	pos   int    // length of the body so far
	top   int    // length of the top struct
	stack []frame
	few   [4]frame    // where stack begins
	root  [1]*Builder // the top struct

	opened int // structs so far
}

// ref is a piece of the record that lies between buf[:at] and buf[at:].
type ref struct {
	at int
	p  []byte
}

// maxDepth bounds how deep structs may be nested; a list of that many elements
// is nested that deep.
const maxDepth = 1 << 17

// maxNodes bounds the structs of a record: a few that are set in several places
// each can stand for any number.
const maxNodes = 1 << 26

// frame is a row of structs that is being written. They are either in place,
// step bytes apart from at on, or each behind a slot, and then the slots are.
type frame struct {
	kids   []*Builder
	behind bool
	at     int // index in buf
	step   int
	next   int // kids done
	open   bool
	self   int // index in buf of the struct that is open
	slot   int // fields with slots of it that are done
}

// record writes the header, the top struct and everything behind it.
func (e *encoder) record(b *Builder) error {
	e.head, e.start = shortHeader, len(e.buf)
	if b.l.variant {
		e.head = longHeader
	}
	if !e.dry {
		e.buf = append(e.buf, b.f.id[:]...)
		e.buf = append(e.buf, noHeader[:e.head-IDLen]...)
	}
	at := len(e.buf)
	e.write(b.fixed)
	e.top = e.pos
	// The top struct is a row of one, in place.
	e.root[0] = b
	e.stack = append(e.stack, frame{kids: e.root[:], at: at})
	if err := e.run(); err != nil {
		return err
	}
	if b.l.variant && !e.dry {
		binary.LittleEndian.PutUint64(e.buf[e.start+IDLen:], uint64(e.pos))
	}
	return nil
}

// run works the stack off. It leaves no builder marked as busy.
func (e *encoder) run() error {
	for len(e.stack) > 0 {
		if len(e.stack) > maxDepth {
			return e.abort(fmt.Errorf("%w: more than %d structs in one another", ErrValue, maxDepth))
		}
		f := &e.stack[len(e.stack)-1]
		if !f.open {
			if f.next == len(f.kids) {
				e.stack = e.stack[:len(e.stack)-1]
				continue
			}
			if err := e.open(f); err != nil {
				return e.abort(err)
			}
			continue
		}
		kid := f.kids[f.next]
		if f.slot == len(kid.l.slots) {
			kid.busy, f.open = false, false
			f.next++
			continue
		}
		i := kid.l.slots[f.slot]
		f.slot++
		if err := e.field(kid, f.self, i); err != nil {
			return e.abort(kid.l.fieldErr(i, err))
		}
	}
	return nil
}

// abort clears the marks of a walk that ends early.
func (e *encoder) abort(err error) error {
	for _, f := range e.stack {
		if f.open {
			f.kids[f.next].busy = false
		}
	}
	return err
}

// open begins the next struct of a row: it writes a struct behind a slot, and
// finds the place of one that has been written with its row.
func (e *encoder) open(f *frame) error {
	kid, at := f.kids[f.next], f.at+f.next*f.step
	if kid == nil { // NULL; the slot is zero
		f.next++
		return nil
	}
	if kid.err != nil {
		return kid.err
	}
	if kid.busy {
		return fmt.Errorf("%w: struct %q is inside itself", ErrValue, clip(kid.Name()))
	}
	if f.behind {
		at = e.point(at)
		e.write(kid.fixed)
	}
	// Shared structs are written at each place: a few lines can stand for 2^n of them.
	if e.opened++; e.opened > maxNodes {
		return fmt.Errorf("%w: more than %d structs in a record", ErrValue, maxNodes)
	}
	kid.busy = true
	f.open, f.self, f.slot = true, at, 0
	return nil
}

// field writes what field i of the struct b at buf[self:] holds.
func (e *encoder) field(b *Builder, self, i int) error {
	f := &b.l.fields[i]
	v := &b.vals[f.slot]
	if !v.set {
		return nil
	}
	at := self + f.offset
	if f.dynamic {
		return e.array(b, f, v, at)
	}
	switch f.elem {
	case text:
		return e.inPlaceTexts(f, v, at)
	case pointer:
		if len(v.kids) != f.n {
			return fmt.Errorf("%w: %d structs for %d pointers", ErrValue, len(v.kids), f.n)
		}
		e.stack = append(e.stack, frame{kids: v.kids, behind: true, at: at, step: slotSize})
	case structure:
		if len(v.kids) != f.n {
			return fmt.Errorf("%w: %d structs for a field of %d", ErrValue, len(v.kids), f.n)
		}
		e.place(v.kids, at, f.size)
	}
	return nil
}

// inPlaceTexts writes the strings of a field whose slots are in the struct.
func (e *encoder) inPlaceTexts(f *field, v *value, at int) error {
	if f.plain {
		e.set(at)
		e.write(v.raw)
		return nil
	}
	if len(v.list.texts) == 0 {
		return nil
	}
	if len(v.list.texts) != f.n {
		return fmt.Errorf("%w: %d strings for a field of %d", ErrValue, len(v.list.texts), f.n)
	}
	e.texts(v.list, at)
	return nil
}

// array writes a dynamic array and points the slot at buf[at:] at it.
func (e *encoder) array(b *Builder, f *field, v *value, at int) error {
	have, err := v.length(f)
	if err != nil || have == 0 {
		return err
	}
	// Counts are set apart from what they count; here they must agree.
	want, err := View{b.fixed, b.l, 0}.count(f)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrValue, err)
	}
	if want != have {
		return fmt.Errorf("%w: %d elements, but the counts say %d", ErrValue, have, want)
	}
	row := e.point(at) // where the elements begin
	if f.flat() && v.kids == nil {
		e.value(v)
		return nil
	}
	e.zeros(have * f.size)
	switch f.elem {
	case text:
		e.texts(v.list, row)
	case structure:
		e.place(v.kids, row, f.size)
	case pointer:
		e.stack = append(e.stack, frame{kids: v.kids, behind: true, at: row, step: slotSize})
	}
	return nil
}

// length returns the number of elements of a dynamic array.
func (v *value) length(f *field) (int, error) {
	size, n := len(v.raw), len(v.kids)
	if v.list != nil {
		size += v.list.size
		n += len(v.list.texts)
	}
	if size%f.size != 0 {
		return 0, fmt.Errorf("%w: %d bytes for elements of %d", ErrValue, size, f.size)
	}
	return n + size/f.size, nil
}

// place puts structs into a row of zeros, and on the stack.
func (e *encoder) place(kids []*Builder, at, step int) {
	if !e.dry {
		for k, kid := range kids {
			copy(e.buf[at+k*step:], kid.fixed)
		}
	}
	e.stack = append(e.stack, frame{kids: kids, at: at, step: step})
}

// texts writes an array of strings behind the slots at buf[at:].
func (e *encoder) texts(l *many, at int) {
	for k, s := range l.texts {
		if l.nulls != nil && l.nulls[k] {
			continue
		}
		e.set(at + k*slotSize)
		e.pos += len(s) + 1
		if !e.dry {
			e.buf = append(append(e.buf, s...), 0)
		}
	}
}

// point lets the slot at buf[at:] point at the next multiple of 8, and returns
// where in buf that is.
func (e *encoder) point(at int) int {
	e.zeros(-e.pos & (slotSize - 1))
	e.set(at)
	return len(e.buf)
}

// set lets the slot at buf[at:] point at the end of what is written. The first
// thing behind the top struct begins at a multiple of 8, whatever it is.
func (e *encoder) set(at int) {
	if e.pos == e.top {
		e.zeros(-e.pos & (slotSize - 1))
	}
	if !e.dry {
		binary.LittleEndian.PutUint64(e.buf[at:], uint64(e.pos))
	}
}

// write copies p, or only counts it in a dry run.
func (e *encoder) write(p []byte) {
	e.pos += len(p)
	if !e.dry {
		e.buf = append(e.buf, p...)
	}
}

// zeros writes n zero bytes.
func (e *encoder) zeros(n int) {
	e.pos += n
	if !e.dry {
		e.buf = append(e.buf, make([]byte, n)...)
	}
}

// value writes a raw value, which may lie in pieces.
func (e *encoder) value(v *value) {
	if v.list == nil {
		e.raw(v.raw)
		return
	}
	for _, p := range v.list.parts {
		e.raw(p)
	}
}

// raw writes the body of a flat array, or refers to it if it is large.
func (e *encoder) raw(p []byte) {
	if e.dry || len(p) < e.large {
		e.write(p)
		return
	}
	e.pos += len(p)
	e.refs = append(e.refs, ref{len(e.buf), p})
}

// pieces cuts buf where something else belongs in between.
func (e *encoder) pieces() [][]byte {
	out := make([][]byte, 0, 2*len(e.refs)+1)
	at := 0
	for _, r := range e.refs {
		if r.at > at {
			out = append(out, e.buf[at:r.at:r.at])
		}
		out = append(out, r.p)
		at = r.at
	}
	if at < len(e.buf) {
		out = append(out, e.buf[at:])
	}
	return out
}
