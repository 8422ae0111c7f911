package sstmsg

import (
	"encoding/binary"
	"reflect"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// Record headers (docs/wire/ffs.md §5.1): the format ID, then, if the record has a
// variable part, its length.
const (
	shortHeader = ffs.IDLen + 4
	longHeader  = ffs.IDLen + 8 + 4
)

// flatLayout is a message of numbers and at most one blob: nearly all that is said
// for each step. Its record is written in one go. The bytes are those that
// ffs.Builder makes, which knows everything else.
type flatLayout struct {
	id     ffs.ID
	head   int // bytes of the header
	size   int // bytes of the struct
	fields []flatField
}

// flatField is one field of a flat message.
type flatField struct {
	role   role
	goIdx  int // of the Go field; roleCount: of the blob
	offset int
	size   int
}

// flatten returns the flat layout of a message, nil if it is not that simple.
func flatten(l *layout, f *ffs.Format) *flatLayout {
	out := &flatLayout{id: f.ID(), head: shortHeader, size: l.wire.RecordLen}
	if f.Variant() {
		out.head = longHeader
	}
	blobs := 0
	for _, b := range l.bindings {
		w := l.wire.Fields[b.wire]
		at := flatField{role: b.role, goIdx: b.goIdx, offset: w.Offset, size: w.Size}
		switch b.role {
		case roleInt:
		case roleCount:
			at.goIdx = b.counts
		case roleBlob:
			blobs++
		default:
			return nil
		}
		if b.role != roleBlob && at.size != 4 && at.size != 8 {
			return nil
		}
		out.fields = append(out.fields, at)
	}
	if blobs > 1 {
		return nil
	}
	return out
}

// encode returns the record of the message v in pieces. ok is false for what it
// leaves to the builder: numbers that do not fit, and blobs of large and small
// pieces mixed.
func (l *flatLayout) encode(v reflect.Value) (parts [][]byte, ok bool) {
	if l == nil {
		return nil, false
	}
	blob, copied, ok := l.blob(v)
	if !ok {
		return nil, false
	}
	n := l.head + l.size + slotSize + copied
	if blob.Len() > copied {
		parts = append(make([][]byte, 0, 1+len(blob)), make([]byte, n))
	} else {
		parts = onePart(n)
	}
	buf := parts[0][:l.head+l.size]
	copy(buf, l.id[:])
	body := buf[l.head:]
	for _, f := range l.fields {
		var n int64
		switch f.role {
		case roleInt:
			n = v.Field(f.goIdx).Int()
		case roleCount:
			n = int64(blob.Len())
		case roleBlob:
			if blob.Len() > 0 {
				n = int64(roundUp(l.size, slotSize))
			}
		}
		if f.size == 4 && f.role != roleBlob {
			if n != int64(int32(n)) {
				return nil, false
			}
			binary.LittleEndian.PutUint32(body[f.offset:], uint32(n))
			continue
		}
		binary.LittleEndian.PutUint64(body[f.offset:], uint64(n))
	}
	return l.finish(parts, buf, blob, copied), true
}

// blob returns the message's blob, and how many of its bytes are to be copied: all
// or none.
func (l *flatLayout) blob(v reflect.Value) (blob Blob, copied int, ok bool) {
	for _, f := range l.fields {
		if f.role == roleBlob {
			blob = *blobIn(v.Field(f.goIdx))
		}
	}
	large := 0
	for _, p := range blob {
		if len(p) >= smallBlob {
			large++
		} else {
			copied += len(p)
		}
	}
	return blob, copied, large == 0 || copied == 0
}

// onePart returns n zero bytes as the only part of a record: in one piece with the list,
// if they are as few as those of most records.
func onePart(n int) [][]byte {
	const few, some = 40, 360 // a release; a step of one rank and some variables
	switch {
	case n <= few:
		r := &struct {
			parts [1][]byte
			bytes [few]byte
		}{}
		r.parts[0] = r.bytes[:n]
		return r.parts[:]
	case n <= some:
		r := &struct {
			parts [1][]byte
			bytes [some]byte
		}{}
		r.parts[0] = r.bytes[:n]
		return r.parts[:]
	}
	return [][]byte{make([]byte, n)}
}

// finish adds the blob and the length. buf is the beginning of the first part.
func (l *flatLayout) finish(parts [][]byte, buf []byte, blob Blob, copied int) [][]byte {
	n := blob.Len()
	if n > 0 {
		buf = append(buf, make([]byte, -l.size&(slotSize-1))...)
	}
	if l.head == longHeader {
		binary.LittleEndian.PutUint64(buf[ffs.IDLen:], uint64(len(buf)-l.head+n))
	}
	for _, p := range blob {
		switch {
		case copied > 0:
			buf = append(buf, p...)
		case len(p) > 0:
			parts = append(parts, p)
		}
	}
	parts[0] = buf
	return parts
}
