package ffs

import "encoding/binary"

// Tail is what the beginning of a record tells about one that ends in a single
// array.
type Tail struct {
	// Top is the top struct. Only its fields in place can be read.
	Top View
	// Field is the array, the only field that has a variable part.
	Field int
	// Offset is where the array begins in the record, header included; it ends
	// where the record ends.
	Offset int
}

// Tail looks at the beginning of a record whose whole length is total, and which
// has not arrived yet. ok is false if it is not one of f, if its fixed part is not
// whole, or if it does not end in its only array, of numbers or chars. If ok, the
// record is one that Record accepts, whatever the array holds.
func (f *Format) Tail(head []byte, total int) (t Tail, ok bool) {
	top := &f.layouts[0]
	if id, has := RecordID(head); !has || id != f.id || !top.variant || len(top.slots) != 1 {
		return Tail{}, false
	}
	if len(head) < longHeader+top.size || total < longHeader+top.size {
		return Tail{}, false
	}
	size := uint64(total - longHeader)
	if binary.LittleEndian.Uint64(head[IDLen:]) != size {
		return Tail{}, false
	}
	i := top.slots[0]
	fd := &top.fields[i]
	if !fd.dynamic || !fd.flat() {
		return Tail{}, false
	}
	t.Top = View{body: head[longHeader:][:top.size:top.size], l: top}
	t.Field = i
	slot := binary.LittleEndian.Uint64(t.Top.body[fd.offset:])
	n, err := t.Top.count(fd)
	// Compared without a product: n is the peer's word.
	if err != nil || slot < uint64(top.size) || slot > size || uint64(n) != (size-slot)/uint64(fd.size) || (size-slot)%uint64(fd.size) != 0 {
		return Tail{}, false
	}
	t.Offset = longHeader + int(slot)
	return t, true
}
