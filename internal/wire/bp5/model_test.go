package bp5

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// model makes random values that have a BP5 form.
type model struct {
	*rand.Rand
	n int // names so far
}

// name returns a new name with what makes names hard in it.
func (m *model) name() string {
	parts := []string{"_", "4_10_", "/", " ", "[3]", "(x)", "é", "-5-", "BPG_", "T", "ElemCounts", "0"}
	var s strings.Builder
	for range m.IntN(4) {
		s.WriteString(parts[m.IntN(len(parts))])
	}
	m.n++
	return fmt.Sprintf("%s%d", s.String(), m.n)
}

func (m *model) words(n int) []uint64 {
	if n == 0 {
		return nil
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = m.Uint64() >> m.IntN(64)
	}
	return list
}

func (m *model) bytes(n int) []byte {
	if n == 0 {
		return nil
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.Uint32())
	}
	return b
}

func (m *model) text() string {
	b := m.bytes(m.IntN(12))
	for i := range b {
		b[i] |= 1 // no NUL
	}
	return string(b)
}

// scalar types that values may have; a char value is indistinguishable from int8.
var scalars = []Type{Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float, Double, LongDouble, ComplexFloat, ComplexDouble}

func (m *model) variable() VarDesc {
	v := VarDesc{Name: m.name(), Kind: []Kind{GlobalValue, LocalValue, GlobalArray, LocalArray, JoinedArray}[m.IntN(5)]}
	if !v.Kind.IsArray() && m.IntN(4) == 0 {
		v.Type = String
		return v
	}
	v.Type = scalars[m.IntN(len(scalars))]
	v.ElemSize = v.Type.Size()
	if !v.Kind.IsArray() {
		return v
	}
	switch m.IntN(4) {
	case 0:
		v.Type = Char
		v.ElemSize = 1
	case 1:
		v.Type, v.ElemSize = Struct, 1+m.IntN(40)
		copy(v.StructID[:], m.bytes(len(v.StructID)))
	}
	v.Operator = m.IntN(3) == 0
	if m.IntN(2) == 0 {
		v.MinMax = StatsSize(v.ElemSize)
	}
	if m.IntN(4) == 0 {
		v.Expression = "eCt5IHdpdGggLSBhbmQgXw=="
	}
	return v
}

func (m *model) array(v VarDesc) *ArrayMeta {
	a := &ArrayMeta{Dims: 1 + m.IntN(5), Blocks: m.IntN(6)}
	n := a.Dims * a.Blocks
	a.Count, a.Location = m.words(n), m.words(a.Blocks)
	if v.Kind != LocalArray {
		a.Shape = m.words(a.Dims)
	}
	if v.Kind == GlobalArray {
		a.Offset = m.words(n)
	}
	if v.Operator {
		a.StoredSize = m.words(a.Blocks)
	}
	if m.IntN(2) == 0 {
		a.MinMax = m.bytes(2 * v.MinMax * a.Blocks)
	}
	return a
}

// written is what a step has of one variable.
type written struct {
	value []byte
	text  string
	array *ArrayMeta
}

// Whatever an encoder is given comes back, step after step, while variables are
// added and others are left out.
func TestMetadataModel(t *testing.T) {
	m := &model{Rand: testutil.Rand(t)}
	for range 60 {
		enc := NewMetadataEncoder()
		var vars []VarDesc
		for range 1 + m.IntN(4) {
			for range m.IntN(12) {
				v := m.variable()
				if _, err := enc.Add(v); err != nil {
					t.Fatalf("%+v: %v", v, err)
				}
				vars = append(vars, v)
			}
			m.checkStep(t, enc, vars)
		}
	}
}

func (m *model) checkStep(t *testing.T, enc *MetadataEncoder, vars []VarDesc) {
	t.Helper()
	enc.Begin()
	want := make([]*written, len(vars))
	for i, v := range vars {
		if m.IntN(3) == 0 {
			continue
		}
		w := &written{}
		var err error
		switch {
		case v.Kind.IsArray():
			w.array = m.array(v)
			err = enc.SetArray(i, w.array)
		case v.Type == String:
			w.text = m.text()
			err = enc.SetText(i, w.text)
		default:
			w.value = m.bytes(v.ElemSize)
			err = enc.SetValue(i, w.value)
		}
		if err != nil {
			t.Fatalf("%+v: %v", v, err)
		}
		want[i] = w
	}
	size := m.Uint64() >> (1 + m.IntN(63))
	rec, err := enc.Append([]byte("before"), size)
	if err != nil {
		t.Fatal(err)
	}
	f, err := enc.Format()
	if err != nil {
		t.Fatal(err)
	}
	// A reader has only the bytes of the format.
	f, _, err = ffs.Parse(f.Body())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSchema(f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(vars, slices.Clone(s.Vars())); diff != "" && len(vars) > 0 {
		t.Fatal(diff)
	}
	md, err := s.Metadata(append(rec[len("before"):], "behind"...))
	if err != nil {
		t.Fatal(err)
	}
	if md.DataSize() != size {
		t.Errorf("data size %d, want %d", md.DataSize(), size)
	}
	for i := range vars {
		compareVariable(t, md, i, want[i])
	}
}

func compareVariable(t *testing.T, md *Metadata, i int, want *written) {
	t.Helper()
	v := md.Var(i)
	if md.Has(i) != (want != nil) {
		t.Errorf("%q written: %v", v.Name, md.Has(i))
		return
	}
	if want == nil {
		return
	}
	var got written
	var err error
	switch {
	case v.Kind.IsArray():
		var a ArrayMeta
		a, err = md.Array(i)
		got.array = &a
	case v.Type == String:
		got.text, err = md.Text(i)
	default:
		got.value, err = md.Value(i)
	}
	if err != nil {
		t.Errorf("%q: %v", v.Name, err)
		return
	}
	if diff := cmp.Diff(*want, got, cmp.AllowUnexported(written{})); diff != "" {
		t.Errorf("%q: (-want +got)\n%s", v.Name, diff)
	}
}

// attribute returns a random attribute that both styles can carry if old is set.
func (m *model) attribute(old bool) Attr {
	a := Attr{Name: m.name(), Type: scalars[m.IntN(len(scalars))], Array: m.IntN(2) == 0}
	if old && a.Array {
		a.Name = strings.NewReplacer("[", "", "]", "").Replace(a.Name)
	}
	if m.IntN(4) == 0 && !(old && a.Array) {
		a.Type = String
		n := 1
		if a.Array {
			n = m.IntN(5)
		}
		for range n {
			a.Strings = append(a.Strings, m.text())
		}
		return a
	}
	if !old && m.IntN(8) == 0 {
		a.Type = Char
	}
	n := 1
	if a.Array {
		n = m.IntN(5)
	}
	a.Data = m.bytes(n * a.Type.Size())
	return a
}

// Any set of attributes comes back in both styles.
func TestAttributesModel(t *testing.T) {
	m := &model{Rand: testutil.Rand(t)}
	generic, err := GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		for _, old := range []bool{true, false} {
			var attrs []Attr
			for range m.IntN(20) {
				attrs = append(attrs, m.attribute(old))
			}
			f := generic
			var rec []byte
			if old {
				rec, f, err = AppendOldAttributes(nil, attrs)
			} else {
				rec, err = AppendGenericAttributes(nil, attrs)
				slices.SortStableFunc(attrs, func(a, b Attr) int { return textLast(a) - textLast(b) }) // numbers come first
			}
			if err != nil {
				t.Fatalf("old %v: %v", old, err)
			}
			got, all, err := ParseAttributes(f, rec)
			if err != nil || all != old {
				t.Fatalf("old %v: all %v, %v", old, all, err)
			}
			if diff := cmp.Diff(attrs, got); diff != "" && len(attrs) > 0 {
				t.Fatalf("old %v: (-want +got)\n%s", old, diff)
			}
		}
	}
}

func textLast(a Attr) int {
	if a.Type == String {
		return 1
	}
	return 0
}

// Any struct that has a format is described by it.
func TestStructModel(t *testing.T) {
	m := &model{Rand: testutil.Rand(t)}
	for range 50 {
		d := StructDef{Name: m.name()}
		for range 1 + m.IntN(6) {
			f := StructMember{Name: m.name(), Type: scalars[m.IntN(len(scalars))], Count: 1 + m.IntN(3)}
			f.Offset = d.Size + m.IntN(5) // padding, and no alignment at all
			d.Size = f.Offset + f.Count*f.Type.Size()
			d.Fields = append(d.Fields, f)
		}
		d.Size += m.IntN(8)
		f, err := NewStructFormat(d)
		if err != nil {
			t.Fatalf("%+v: %v", d, err)
		}
		if f, _, err = ffs.Parse(f.Body()); err != nil {
			t.Fatal(err)
		}
		got, err := ParseStruct(f)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// A file of index records can be read in pieces of any size: what is cut off is
// left for later, nothing is lost or seen twice.
func TestIndexModel(t *testing.T) {
	m := &model{Rand: testutil.Rand(t)}
	for range 50 {
		var want []IndexRecord
		var file []byte
		writers := 0
		for range 1 + m.IntN(8) {
			if writers == 0 || m.IntN(3) == 0 {
				w := WriterMap{Writers: uint64(1 + m.IntN(5)), Aggregators: uint64(m.IntN(9)), Subfiles: uint64(1 + m.IntN(3))}
				for range w.Writers {
					w.Subfile = append(w.Subfile, m.Uint64N(w.Subfiles))
				}
				writers = int(w.Writers)
				want, file = append(want, w), w.Append(file)
			}
			s := StepIndex{MetaPos: m.Uint64() >> 2, MetaLen: m.Uint64() >> 2, Flushes: m.IntN(3)}
			for range writers {
				var pieces []Piece
				for range s.Flushes {
					pieces = append(pieces, Piece{m.Uint64(), m.Uint64()})
				}
				s.Pieces = append(s.Pieces, append(pieces, Piece{m.Uint64(), UnknownSize}))
			}
			want, file = append(want, s), s.Append(file)
			if m.IntN(4) == 0 {
				body := m.bytes(m.IntN(20))
				want = append(want, SkippedRecord{Type: 'x', Size: uint64(len(body))})
				file = append(append(file, 'x', byte(len(body)), 0, 0, 0, 0, 0, 0, 0), body...)
			}
		}
		var got []IndexRecord
		writers = 0
		for at, have := 0, 0; at < len(file); {
			have = min(len(file), max(have, at)+1+m.IntN(60))
			rec, n, err := ParseIndexRecord(file[at:have], writers)
			if err != nil {
				if n != 0 || have == len(file) {
					t.Fatalf("%d of %d bytes: %v", have, len(file), err)
				}
				continue
			}
			if w, ok := rec.(WriterMap); ok {
				writers = int(w.Writers)
			}
			got = append(got, rec)
			at += n
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The same for mmd.0 and for the steps of md.0.
func TestFilesModel(t *testing.T) {
	m := &model{Rand: testutil.Rand(t)}
	for range 50 {
		var want []FormatEntry
		var file []byte
		for i := range m.IntN(6) {
			e := FormatEntry{Description: m.bytes(8 + m.IntN(50))}
			e.ID[0] = byte(i)
			n := len(e.Description)
			copy(e.Description, []byte{byte(n >> 8), byte(n), 0, 2, 0, 0, 0, 0})
			want, file = append(want, e), e.Append(file)
		}
		var got []FormatEntry
		for at, have := 0, 0; at < len(file); {
			have = min(len(file), max(have, at)+1+m.IntN(100))
			entries, n, err := ParseMMD(file[at:have])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, entries...)
			at += n
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		meta, attrs := make([][]byte, 1+m.IntN(5)), [][]byte{}
		for i := range meta {
			meta[i] = m.bytes(8 * m.IntN(5))
			if m.IntN(2) == 0 {
				attrs = append(attrs, m.bytes(8*m.IntN(3)))
			}
		}
		step := AppendStepMeta(nil, meta, attrs)
		gotMeta, gotAttrs, err := ParseStepMeta(step, len(meta))
		if err != nil {
			t.Fatal(err)
		}
		attrs = append(attrs, make([][]byte, len(meta)-len(attrs))...)
		if diff := cmp.Diff([][][]byte{meta, attrs}, [][][]byte{gotMeta, gotAttrs}); diff != "" {
			t.Fatal(diff)
		}
	}
}
