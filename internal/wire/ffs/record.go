package ffs

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Record header (docs/wire/ffs.md §5.1), little-endian:
//
//	not variant: format ID [12] | 0 u32
//	variant:     format ID [12] | length u64 | 0 u32
//
// length counts what follows the header. Offsets in the record count from the
// end of the header.
const (
	shortHeader = IDLen + 4
	longHeader  = IDLen + 8 + 4
)

// Record is a checked record: every View of it can be read without surprises.
// It points into the bytes it was made from.
type Record struct {
	f      *Format
	body   []byte
	inward bool // a slot points into the top struct
}

// Record checks the record at the front of b, which must begin with the ID of
// f. n is the number of bytes it takes, by the length inside it; BP5 files pad
// records with up to 7 bytes. The record keeps pointing into b.
//
// The check follows everything that can be reached. A record whose parts
// overlap so much that a walk over it would take more than in proportion to its
// length is refused, and so are cycles.
func (f *Format) Record(b []byte) (r Record, n int, err error) {
	id, ok := RecordID(b)
	if !ok {
		return Record{}, 0, fmt.Errorf("%w: %d bytes of a record's ID", ErrTruncated, len(b))
	}
	if id != f.id {
		return Record{}, 0, fmt.Errorf("%w: ID %v, want %v (%q)", ErrOtherFormat, id, f.id, clip(f.Name()))
	}
	head, size, err := f.recordSize(b)
	if err != nil {
		return Record{}, 0, fmt.Errorf("%w (record of %q)", err, clip(f.Name()))
	}
	n = head + size
	body := b[head:n:n]
	lowest, err := check(&f.layouts[0], body)
	if err != nil {
		return Record{}, 0, fmt.Errorf("%w (record of %q)", err, clip(f.Name()))
	}
	return Record{f, body, lowest < f.layouts[0].size}, n, nil
}

// recordSize returns the length of the header and of what follows it.
func (f *Format) recordSize(b []byte) (head, size int, err error) {
	top := &f.layouts[0]
	if !top.variant {
		if len(b)-shortHeader < top.size {
			return 0, 0, fmt.Errorf("%w: %d bytes of a record of %d", ErrTruncated, len(b), shortHeader+top.size)
		}
		return shortHeader, top.size, nil
	}
	if len(b) < longHeader {
		return 0, 0, fmt.Errorf("%w: %d bytes of a record header of %d", ErrTruncated, len(b), longHeader)
	}
	// Compared as it is: converted first, it could turn negative.
	n := binary.LittleEndian.Uint64(b[IDLen:])
	if n > uint64(len(b)-longHeader) {
		return 0, 0, fmt.Errorf("%w: %d bytes after the header, %d announced", ErrTruncated, len(b)-longHeader, n)
	}
	if n < uint64(top.size) {
		return 0, 0, fmt.Errorf("%w: length %d, but the top struct has %d bytes", ErrRecord, n, top.size)
	}
	return longHeader, int(n), nil
}

// Format returns the format of the record, nil for the zero Record.
func (r Record) Format() *Format { return r.f }

// Top returns the view of the top struct.
func (r Record) Top() View {
	if r.f == nil {
		return View{}
	}
	return View{body: r.body, l: &r.f.layouts[0]}
}

// reuse is how often the bytes of a record may be pointed at, on average. Real
// encoders point at each byte once, or a few times where the same memory occurs
// in several places of a recursive format (docs/wire/ffs.md §5.2).
const reuse = 4

// checker walks over a record with an explicit stack for what lies deep behind slots,
// so that a list of any length needs no deep recursion. left is what may still
// be pointed at; it bounds the work and ends cycles.
type checker struct {
	body   []byte
	left   int
	lowest int // offset that is pointed at
	depth  int // slots that row has followed
	stack  []run
}

// shallow is how many slots row follows by itself: an ordinary record needs no stack.
const shallow = 4

// run is a row of structs of one layout.
type run struct {
	l             *layout
	at, step, num int
}

// check follows everything that can be reached from the top struct, and returns the lowest
// offset that is pointed at. Formats without slots have nothing to follow.
func check(top *layout, body []byte) (lowest int, err error) {
	if !top.variant {
		return len(body), nil
	}
	// A stack on the heap: a list of a million elements is a million deep.
	c := checker{body: body, left: reuse * len(body), lowest: len(body)}
	err = c.row(run{l: top, num: 1})
	for err == nil && len(c.stack) > 0 {
		r := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		err = c.row(r)
	}
	return c.lowest, err
}

// row checks a row of structs. It calls itself for structs in place, which are
// nested as deep as there are structs in the format at most, and for those behind the
// first slots.
func (c *checker) row(r run) error {
	// Atoms in place are in range by the format alone; only slots lead elsewhere.
	for k := range r.num {
		v := View{c.body, r.l, r.at + k*r.step}
		for _, i := range r.l.slots {
			if err := c.field(v, &r.l.fields[i]); err != nil {
				return r.l.fieldErr(i, err)
			}
		}
	}
	return nil
}

// field checks what one field of v points at, and pushes the structs that it
// leads to.
func (c *checker) field(v View, f *field) error {
	if !f.dynamic && f.elem == structure {
		if !f.sub.variant {
			return nil
		}
		return c.row(run{f.sub, v.at + f.offset, f.size, f.n})
	}
	at, n, err := v.elements(f)
	if err != nil || n == 0 {
		return err
	}
	if f.dynamic {
		// elements has made sure that the product fits.
		if err := c.charge(at, n*f.size); err != nil {
			return err
		}
	}
	switch f.elem {
	case structure:
		return c.push(f.sub, at, f.size, n)
	case text:
		for k := range n {
			to, err := target(c.body, at+k*slotSize, 1)
			if err != nil {
				return err
			}
			if to == 0 {
				continue
			}
			s, err := cstring(c.body, at+k*slotSize)
			if err != nil {
				return err
			}
			if err := c.charge(to, len(s)+1); err != nil {
				return err
			}
		}
	case pointer:
		for k := range n {
			to, err := target(c.body, at+k*slotSize, f.sub.size)
			if err != nil {
				return err
			}
			if to == 0 {
				continue
			}
			if err := c.charge(to, f.sub.size); err != nil {
				return err
			}
			if err := c.push(f.sub, to, 0, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// push checks a row of structs, or puts it on the stack, unless nothing can be behind
// them.
func (c *checker) push(l *layout, at, step, n int) error {
	switch {
	case !l.variant:
		return nil
	case c.depth == shallow:
		c.stack = append(c.stack, run{l, at, step, n})
		return nil
	}
	c.depth++
	err := c.row(run{l, at, step, n})
	c.depth--
	return err
}

// charge takes n bytes, from at on, off what may still be pointed at.
func (c *checker) charge(at, n int) error {
	c.lowest = min(c.lowest, at)
	if c.left -= n; c.left < 0 {
		return fmt.Errorf("%w: its parts form a cycle or overlap too much (at offset %d)", ErrRecord, at)
	}
	return nil
}

// elements returns where the elements of f are in the body and how many there
// are, 0 for a NULL slot. All of them lie inside the body.
func (v View) elements(f *field) (at, n int, err error) {
	at = v.at + f.offset
	if !f.dynamic {
		return at, f.n, nil
	}
	// A NULL slot has no elements whatever the counts say, which may be left over.
	slot := binary.LittleEndian.Uint64(v.body[at:])
	if slot == 0 {
		return 0, 0, nil
	}
	if n, err = v.count(f); err != nil {
		return 0, 0, err
	}
	if slot > uint64(len(v.body)) || n > (len(v.body)-int(slot))/f.size {
		return 0, 0, fmt.Errorf("%w: %d elements of %d bytes at offset %d of %d", ErrRecord, n, f.size, slot, len(v.body))
	}
	return int(slot), n, nil
}

// count multiplies the dimensions of a dynamic array.
func (v View) count(f *field) (int, error) {
	n := f.n
	for _, i := range f.counts {
		c := v.number(&v.l.fields[i])
		if c < 0 {
			return 0, fmt.Errorf("%w: %q is %d", ErrRecord, clip(v.l.desc.Fields[i].Name), c)
		}
		var ok bool
		if n, ok = product(n, int(c)); !ok {
			return 0, fmt.Errorf("%w: %q is %d, too many elements", ErrRecord, clip(v.l.desc.Fields[i].Name), c)
		}
	}
	return n, nil
}

// number reads a plain integer field, sign-extended unless it is unsigned.
func (v View) number(f *field) int64 {
	b := v.body[v.at+f.offset:]
	signed := f.kind != Unsigned && f.kind != Boolean
	switch f.size {
	case 1:
		if signed {
			return int64(int8(b[0]))
		}
		return int64(b[0])
	case 2:
		u := binary.LittleEndian.Uint16(b)
		if signed {
			return int64(int16(u))
		}
		return int64(u)
	case 4:
		u := binary.LittleEndian.Uint32(b)
		if signed {
			return int64(int32(u))
		}
		return int64(u)
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// target reads the slot at the given offset and checks that size bytes are
// where it points; 0 is NULL.
func target(body []byte, at, size int) (int, error) {
	slot := binary.LittleEndian.Uint64(body[at:])
	if slot == 0 {
		return 0, nil
	}
	if slot > uint64(len(body)) || int(slot) > len(body)-size {
		return 0, fmt.Errorf("%w: slot at offset %d points at %d, %d bytes wanted of %d", ErrRecord, at, slot, size, len(body))
	}
	return int(slot), nil
}

// cstring returns the string that the slot at the given offset points at,
// without its NUL, which only its capacity includes; nil is NULL.
func cstring(body []byte, at int) ([]byte, error) {
	to, err := target(body, at, 1)
	if to == 0 || err != nil {
		return nil, err
	}
	n := bytes.IndexByte(body[to:], 0)
	if n < 0 {
		return nil, fmt.Errorf("%w: string at offset %d does not end", ErrRecord, to)
	}
	return body[to : to+n : to+n+1], nil
}
