package sstmsg

import (
	"encoding/binary"
	"reflect"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// A TimestepMetadata goes out and comes in with every step, so it has a way of its own
// here. It knows the ordinary one: no formats, and blocks small enough to be copied. All
// else, and whatever is wrong, is left to the way that works for every message, which
// also has the words for errors. Both make the same bytes.
//
// Behind the struct come, for each array of blocks that is not empty, the array, one
// (size u64, slot u64) a rank, and then the bytes of each block. Each of them begins at a
// multiple of 8.

// stepLayout says where in the struct the fields of a TimestepMetadata are.
type stepLayout struct {
	id      ffs.ID
	size    int // bytes of the struct
	numbers [stepNumbers]flatField
	rows    [stepRows]int // offsets of the slots of the arrays, 0 of one that is not there
}

// Numbers and arrays of a TimestepMetadata, in the order of its fields.
const (
	stepNumbers = 4
	stepRows    = 3
)

// blockSize is what one Block takes in an array: its size, and the slot of its bytes.
const blockSize = 16

// stepFields returns the wire fields of the numbers and arrays of blocks of a
// TimestepMetadata, by their names; -1 for one that is not there.
func stepFields(find func(goName string) int) (numbers [stepNumbers]int, rows [stepRows]int) {
	for i, name := range [...]string{"ReaderID", "Step", "CohortSize", "PreloadMode"} {
		numbers[i] = find(name)
	}
	for i, name := range [...]string{"Metadata", "Attributes", "Native"} {
		rows[i] = find(name)
	}
	return numbers, rows
}

// goField returns the index of the binding of a Go field, -1 if there is none.
func (l *layout) goField(t reflect.Type, name string) int {
	f, _ := t.FieldByName(name)
	for i := range l.bindings {
		if l.bindings[i].goIdx == f.Index[0] {
			return i
		}
	}
	return -1
}

var stepType = reflect.TypeFor[TimestepMetadata]()

// stepLayoutOf returns the layout of a TimestepMetadata, nil of other messages and of
// those that carry rdma's structs.
func stepLayoutOf(t reflect.Type, v variant, l *layout, f *ffs.Format) *stepLayout {
	if t != stepType || v.plane == "rdma" {
		return nil
	}
	out := &stepLayout{id: f.ID(), size: l.wire.RecordLen}
	numbers, rows := stepFields(func(name string) int { return l.goField(t, name) })
	for i, n := range numbers {
		w := &l.wire.Fields[l.bindings[n].wire]
		out.numbers[i] = flatField{offset: w.Offset, size: w.Size}
	}
	for i, n := range rows {
		if n >= 0 {
			out.rows[i] = l.wire.Fields[l.bindings[n].wire].Offset
		}
	}
	return out
}

// encode returns the record of m. ok is false for what is not ordinary.
func (l *stepLayout) encode(m *TimestepMetadata) (parts [][]byte, ok bool) {
	if l == nil || len(m.Formats) > 0 {
		return nil, false
	}
	rows := [stepRows][]Block{m.Metadata, m.Attributes, m.Native}
	size := roundUp(l.size, slotSize)
	for i, blocks := range rows {
		if l.rows[i] == 0 {
			continue
		}
		n, ok := rowSize(blocks)
		if !ok || len(blocks) != 0 && len(blocks) != int(m.CohortSize) {
			return nil, false
		}
		size += n
	}
	parts = onePart(longHeader + size)
	buf := parts[0]
	copy(buf, l.id[:])
	body := buf[longHeader:]
	for i, n := range [stepNumbers]int64{m.ReaderID, m.Step, int64(m.CohortSize), int64(m.PreloadMode)} {
		if !l.numbers[i].put(body, n) {
			return nil, false
		}
	}
	end := l.size // of what is written
	for i, blocks := range rows {
		if l.rows[i] != 0 && len(blocks) > 0 {
			end = putRow(body, end, l.rows[i], blocks)
		}
	}
	binary.LittleEndian.PutUint64(buf[ffs.IDLen:], uint64(end))
	parts[0] = buf[:longHeader+end]
	return parts, true
}

// put writes a number; ok is false if it does not fit.
func (f *flatField) put(body []byte, n int64) (ok bool) {
	if f.size == 4 {
		binary.LittleEndian.PutUint32(body[f.offset:], uint32(n))
		return n == int64(int32(n))
	}
	binary.LittleEndian.PutUint64(body[f.offset:], uint64(n))
	return true
}

// rowSize returns the most that an array of blocks takes; ok is false if one is large.
func rowSize(blocks []Block) (n int, ok bool) {
	n = len(blocks) * blockSize
	for i := range blocks {
		for _, p := range blocks[i].Data {
			if len(p) >= smallBlob {
				return 0, false
			}
		}
		n += roundUp(blocks[i].Data.Len(), slotSize)
	}
	return n, true
}

// putRow writes an array of blocks behind end, and where that is into slot. It returns the
// new end.
func putRow(body []byte, end, slot int, blocks []Block) int {
	at := roundUp(end, slotSize)
	binary.LittleEndian.PutUint64(body[slot:], uint64(at))
	end = at + len(blocks)*blockSize
	for i := range blocks {
		b := body[at+i*blockSize:]
		n := blocks[i].Data.Len()
		if n == 0 {
			continue // all zero
		}
		end = roundUp(end, slotSize)
		binary.LittleEndian.PutUint64(b, uint64(n))
		binary.LittleEndian.PutUint64(b[slotSize:], uint64(end))
		for _, p := range blocks[i].Data {
			end += copy(body[end:], p)
		}
	}
	return end
}

// stepPlan says which wire fields of one format a TimestepMetadata is made of.
type stepPlan struct {
	numbers [stepNumbers]int
	rows    [stepRows]blockPlan
	formats int // -1 if there is no such field
}

// blockPlan is the wire field of an array of blocks, -1 if there is none, and the one of
// their bytes in each.
type blockPlan struct{ field, data int }

// stepPlanOf returns the plan of a TimestepMetadata, nil of other messages, and of formats
// that no peer should send.
func stepPlanOf(p *plan) *stepPlan {
	if p.t != stepType {
		return nil
	}
	l := p.top.layout
	if l.goField(p.t, "Rdma") >= 0 {
		return nil
	}
	numbers, rows := stepFields(func(name string) int { return l.goField(p.t, name) })
	s := &stepPlan{formats: p.top.wire[l.goField(p.t, "Formats")]}
	for i, n := range numbers {
		s.numbers[i] = p.top.wire[n]
	}
	for i, n := range rows {
		s.rows[i] = blockPlan{field: p.top.wire[n], data: -1}
		sub := p.top.subs[n]
		switch {
		case s.rows[i].field < 0:
			continue
		case sub == nil:
			return nil
		}
		s.rows[i].data = sub.wire[sub.layout.goField(reflect.TypeFor[Block](), "Data")]
	}
	return s
}

// smallStep is a step of one writer rank, in one piece.
type smallStep struct {
	msg    TimestepMetadata
	blocks [stepRows]Block
	blobs  [stepRows][]byte
}

// read makes the message of a record. ok is false for what is not ordinary.
func (s *stepPlan) read(top ffs.View, budget int) (m *TimestepMetadata, ok bool) {
	if s == nil {
		return nil, false
	}
	if s.formats >= 0 {
		if first, err := top.Struct(s.formats); err != nil || !first.IsNil() {
			return nil, false
		}
	}
	var n [stepNumbers]int64
	for i, field := range s.numbers {
		var err error
		if field < 0 {
			continue
		}
		if n[i], err = top.Int(field); err != nil {
			return nil, false
		}
	}
	var counts [stepRows]int
	all := 0
	for i := range s.rows {
		var err error
		if s.rows[i].field < 0 {
			continue
		}
		if counts[i], err = top.Count(s.rows[i].field); err != nil || counts[i] >= budget-all {
			return nil, false
		}
		all += counts[i]
	}
	in := &smallStep{}
	m = &in.msg
	m.ReaderID, m.Step, m.CohortSize, m.PreloadMode = n[0], n[1], int32(n[2]), int32(n[3])
	if int64(m.CohortSize) != n[2] || int64(m.PreloadMode) != n[3] {
		return nil, false
	}
	blocks, blobs := in.blocks[:], in.blobs[:]
	if all > stepRows {
		blocks, blobs = make([]Block, all), make([][]byte, all)
	}
	for i, to := range [stepRows]*[]Block{&m.Metadata, &m.Attributes, &m.Native} {
		k := counts[i]
		if k == 0 {
			continue
		}
		*to = blocks[:k:k]
		if !s.rows[i].read(top, *to, blobs[:k:k]) {
			return nil, false
		}
		blocks, blobs = blocks[k:], blobs[k:]
	}
	return m, true
}

// read fills in the blocks of an array; blobs are memory for what they hold.
func (p *blockPlan) read(top ffs.View, blocks []Block, blobs [][]byte) (ok bool) {
	for i := range blocks {
		b, err := top.At(p.field, i)
		if err != nil || b.IsNil() {
			return false
		}
		if p.data < 0 {
			continue
		}
		raw, err := b.Raw(p.data)
		if err != nil {
			return false
		}
		if len(raw) > 0 {
			blobs[i] = raw
			blocks[i].Data = blobs[i : i+1 : i+1]
		}
	}
	return true
}
