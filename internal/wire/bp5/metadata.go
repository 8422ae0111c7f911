package bp5

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// Metadata is the metadata record of one writer rank and step. It points into the bytes it was made from.
//
// Index i of its methods is that of Schema.Vars, 0 <= i < len(Vars()). Safe for concurrent use.
type Metadata struct {
	schema   *Schema
	record   ffs.Record
	top      ffs.View // of the record, whose bytes it keeps alive
	bits     []byte   // whole u64 words, least significant bit first
	dataSize uint64
}

// Metadata checks the record at the front of rec, which must be of this format; bytes behind it are ignored. What the
// arrays say is checked when they are asked for.
func (s *Schema) Metadata(rec []byte) (*Metadata, error) {
	r, _, err := s.format.Record(rec)
	if err != nil {
		return nil, fmt.Errorf("bp5: metadata record: %w", err)
	}
	m, err := s.leading(r)
	if err != nil {
		return nil, fmt.Errorf("bp5: metadata record: %w", err)
	}
	// A bit without a variable means that record and format do not belong together.
	if i := m.Next(len(s.vars)); i >= 0 {
		return nil, fmt.Errorf("bp5: metadata record: bit %d is set, but its format has %d variables: %w", i, len(s.vars), ErrBadRecord)
	}
	return m, nil
}

// leading reads the fields in front of the variables.
func (s *Schema) leading(r ffs.Record) (*Metadata, error) {
	m := &Metadata{schema: s, record: r, top: r.Top()}
	// Fields 1 and 2 are what ParseSchema has made sure of.
	var err error
	if m.bits, err = m.top.Raw(1); err != nil {
		return nil, err
	}
	size, err := m.top.Int(2)
	m.dataSize = uint64(size) // any 64 bits: who reads data compares with what there is
	return m, err
}

// Repeat returns the record at the front of rec if it says the same as m but for the values of numbers: the same variables
// were written, and all arrays and strings are alike. That is so for most steps of most programs, and to find it out takes a
// fraction of the time of [Schema.Metadata]. Else ok is false, whatever rec is.
func (m *Metadata) Repeat(rec []byte) (again *Metadata, ok bool) {
	r, ok := m.record.Repeat(rec)
	if !ok {
		return nil, false
	}
	if again, err := m.schema.leading(r); err == nil && again.dataSize == m.dataSize {
		return again, true
	}
	return nil, false
}

// DataSize returns the bytes of the rank's data block of this step.
func (m *Metadata) DataSize() uint64 { return m.dataSize }

// Var returns the description of variable i. Read only.
func (m *Metadata) Var(i int) *VarDesc { return &m.schema.vars[i] }

// Has reports whether variable i was written in this step.
func (m *Metadata) Has(i int) bool {
	return i/64*8 < len(m.bits) && m.word(i/64)>>(i%64)&1 != 0
}

// Next returns the first variable from i on that was written in this step, -1 if there is none.
func (m *Metadata) Next(i int) int {
	for w := i / 64; w*8 < len(m.bits); w++ {
		word := m.word(w)
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// word returns word w of the bit field. The bits lie anywhere in the record, so they are not cast but loaded.
func (m *Metadata) word(w int) uint64 { return binary.LittleEndian.Uint64(m.bits[w*8:]) }

// Value returns the native bytes of single value i, which must not be a string. They are those of the record.
func (m *Metadata) Value(i int) ([]byte, error) {
	d := &m.schema.vars[i]
	if d.Kind.IsArray() || d.Type == String || d.Type == None {
		return nil, fmt.Errorf("bp5: variable %q is no number: %w", clip(d.Name), ErrBadRecord)
	}
	b, err := m.top.Raw(leadingFields + i)
	if err != nil {
		return nil, fmt.Errorf("bp5: value %q: %w", clip(d.Name), err)
	}
	// The field may be larger than its type: a foreign format can declare anything.
	if len(b) != d.ElemSize {
		return nil, fmt.Errorf("bp5: value %q has %d bytes, want %d: %w", clip(d.Name), len(b), d.ElemSize, ErrBadRecord)
	}
	return b, nil
}

// Text returns single string value i. A string that is NULL in the record is empty.
func (m *Metadata) Text(i int) (string, error) {
	d := &m.schema.vars[i]
	if d.Kind.IsArray() || d.Type != String {
		return "", fmt.Errorf("bp5: variable %q is no string: %w", clip(d.Name), ErrBadRecord)
	}
	s, _, err := m.top.Text(leadingFields + i)
	if err != nil {
		return "", fmt.Errorf("bp5: value %q: %w", clip(d.Name), err)
	}
	return s, nil
}

// Array returns what the record says of array i. The slices have exactly the lengths that Dims and Blocks call for, or
// are nil where the record has nothing: Shape, Offset, StoredSize and MinMax may be.
func (m *Metadata) Array(i int) (ArrayMeta, error) {
	d, fields := &m.schema.vars[i], m.schema.arrays[i]
	if fields == nil {
		return ArrayMeta{}, fmt.Errorf("bp5: variable %q is no array: %w", clip(d.Name), ErrBadRecord)
	}
	v, err := m.top.Struct(leadingFields + i)
	if err != nil {
		return ArrayMeta{}, fmt.Errorf("bp5: array %q: %w", clip(d.Name), err)
	}
	r := arrayReader{v: v}
	a := r.array(fields)
	if r.err != nil {
		return ArrayMeta{}, fmt.Errorf("bp5: array %q: %w", clip(d.Name), r.err)
	}
	return a, nil
}

// arrayReader reads one MetaArray struct; the first error sticks.
type arrayReader struct {
	v    ffs.View
	slab []uint64 // the numbers of all slices come from one allocation
	err  error
}

// maxArrayDims bounds Dims, so that products with it cannot overflow. It is generous: ADIOS2's own limit is 32.
const maxArrayDims = 1 << 10

// array reads the fields that f names. Nothing is allocated before all counts agree with what is really there.
func (r *arrayReader) array(f *arrayFields) ArrayMeta {
	a := ArrayMeta{Dims: r.number(f.dims), Blocks: r.number(f.blocks)}
	entries := r.number(f.entries)
	// Every block has a location of 8 bytes, so the number of blocks is bounded by the record. Ask before multiplying.
	location := r.raw(f.location)
	if r.err == nil && (a.Dims > maxArrayDims || a.Blocks != len(location)/8 || entries != a.Dims*a.Blocks) {
		r.err = fmt.Errorf("%d dimensions, %d blocks with %d locations, %d entries: %w", a.Dims, a.Blocks, len(location)/8, entries, ErrBadRecord)
	}
	if r.err != nil {
		return ArrayMeta{}
	}
	// What is really there bounds the allocation.
	shape, count, offset := r.words(f.shape, a.Dims, true), r.words(f.count, entries, false), r.words(f.offset, entries, true)
	var stored []byte
	if f.stored >= 0 {
		stored = r.words(f.stored, a.Blocks, false)
	}
	if f.stats >= 0 {
		a.MinMax = r.stats(f, a.Blocks)
	}
	if r.err != nil {
		return ArrayMeta{}
	}
	// One allocation for all lists: an array has up to five of them in each step.
	r.slab = make([]uint64, 0, (len(shape)+len(count)+len(offset)+len(location)+len(stored))/8)
	a.Shape, a.Count, a.Offset = r.take(shape), r.take(count), r.take(offset)
	a.Location, a.StoredSize = r.take(location), r.take(stored)
	return a
}

// number reads a count, which must not be negative.
func (r *arrayReader) number(i int) int {
	n, err := r.v.Int(i)
	if err == nil && n < 0 {
		err = fmt.Errorf("%s is %d: %w", r.v.Field(i).Name, n, ErrBadRecord)
	}
	if r.err == nil {
		r.err = err
	}
	return int(n)
}

// raw returns the bytes of a field.
func (r *arrayReader) raw(i int) []byte {
	b, err := r.v.Raw(i)
	if r.err == nil {
		r.err = err
	}
	return b
}

// words returns the bytes of n numbers; optional ones may be absent.
func (r *arrayReader) words(i, n int, optional bool) []byte {
	b := r.raw(i)
	if r.err == nil && len(b) != 8*n && !(optional && len(b) == 0) {
		r.err = fmt.Errorf("%s has %d numbers, want %d: %w", r.v.Field(i).Name, len(b)/8, n, ErrBadRecord)
	}
	return b
}

// stats returns MinMax, nil where the record has none: unordered types have the field, but no bytes (docs/wire/bp5.md
// §2.3).
func (r *arrayReader) stats(f *arrayFields, blocks int) []byte {
	b := r.raw(f.stats)
	if len(b) == 0 {
		return nil
	}
	if want := extrema * f.statsSize; r.err == nil && (len(b)%want != 0 || len(b)/want != blocks) {
		r.err = fmt.Errorf("MinMax has %d bytes for %d blocks: %w", len(b), blocks, ErrBadRecord)
	}
	return b
}

// take converts little-endian words; they come from the slab.
func (r *arrayReader) take(b []byte) []uint64 {
	if len(b) == 0 {
		return nil
	}
	at := len(r.slab) // the slab has room for all: no append moves it
	for ; len(b) >= 8; b = b[8:] {
		r.slab = append(r.slab, binary.LittleEndian.Uint64(b))
	}
	return r.slab[at:len(r.slab):len(r.slab)]
}
