package bp5

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// open reads the metadata record rec.
func open(t testing.TB, formats map[ffs.ID]*ffs.Format, rec []byte) *Metadata {
	t.Helper()
	id, _ := ffs.RecordID(rec)
	if formats[id] == nil {
		t.Fatalf("format %v is not known", id)
	}
	s, err := ParseSchema(formats[id])
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Metadata(rec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// find returns the index of a variable.
func find(t testing.TB, m *Metadata, name string) int {
	t.Helper()
	i := slices.IndexFunc(m.schema.Vars(), func(d VarDesc) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("no variable %q", name)
	}
	return i
}

// The example of docs/wire/bp5.md §2.6: all that the bytes say.
func TestMetadataOfDocumentedExample(t *testing.T) {
	steps, formats := realSteps(t, "main-nostats")
	m := open(t, formats, steps[0].meta[0])
	want := []VarDesc{
		{Name: "x", Kind: GlobalArray, Type: Int32, ElemSize: 4},
		{Name: "s", Kind: GlobalValue, Type: Double, ElemSize: 8},
	}
	if diff := cmp.Diff(want, m.schema.Vars()); diff != "" {
		t.Error(diff)
	}
	if m.DataSize() != 16 || !m.Has(0) || !m.Has(1) || m.Has(2) || m.Has(1000) {
		t.Errorf("data size %d, %v %v", m.DataSize(), m.Has(0), m.Has(1))
	}
	a, err := m.Array(0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ArrayMeta{Dims: 1, Blocks: 1, Shape: []uint64{4}, Count: []uint64{4}, Offset: []uint64{0}, Location: []uint64{0}}, a); diff != "" {
		t.Error(diff)
	}
	v, err := m.Value(1)
	if err != nil || binary.LittleEndian.Uint64(v) != 0x3fd0000000000000 {
		t.Errorf("s = % x, %v", v, err)
	}
	if m.Var(1).Name != "s" {
		t.Error("Var")
	}
}

func TestMetadataOfEveryKind(t *testing.T) {
	steps, formats := realSteps(t, "main-shapes-3ranks")
	m := open(t, formats, steps[1].meta[1])
	for _, tc := range []struct {
		name string
		kind Kind
		want ArrayMeta
	}{
		{"g2", GlobalArray, ArrayMeta{Dims: 2, Blocks: 1, Shape: []uint64{6, 3}, Count: []uint64{2, 3}, Offset: []uint64{2, 0}}},
		{"mb", GlobalArray, ArrayMeta{Dims: 1, Blocks: 3, Shape: []uint64{18}, Count: []uint64{2, 2, 2}, Offset: []uint64{10, 8, 6}}},
		{"la", LocalArray, ArrayMeta{Dims: 2, Blocks: 2, Count: []uint64{2, 2, 2, 3}}},
		{"joined", JoinedArray, ArrayMeta{Dims: 2, Blocks: 1, Shape: []uint64{JoinedDim, 2}, Count: []uint64{2, 2}}},
	} {
		i := find(t, m, tc.name)
		a, err := m.Array(i)
		if err != nil || m.Var(i).Kind != tc.kind || !m.Has(i) {
			t.Errorf("%s: %v, kind %q", tc.name, err, m.Var(i).Kind)
		}
		if len(a.Location) != a.Blocks || len(a.MinMax) != 2*a.Blocks*m.Var(i).ElemSize || m.Var(i).MinMax != m.Var(i).ElemSize {
			t.Errorf("%s: %d locations, %d bytes of statistics", tc.name, len(a.Location), len(a.MinMax))
		}
		a.Location, a.MinMax = nil, nil
		if diff := cmp.Diff(tc.want, a); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	if lv := m.Var(find(t, m, "lv")); lv.Kind != LocalValue || lv.Type != Int32 {
		t.Errorf("lv: %+v", lv)
	}
	for _, name := range []string{"g2", "lv"} {
		if _, err := m.Text(find(t, m, name)); !errors.Is(err, ErrBadRecord) {
			t.Errorf("text of %s: %v", name, err)
		}
	}
	if _, err := m.Value(find(t, m, "g2")); !errors.Is(err, ErrBadRecord) {
		t.Errorf("value of an array: %v", err)
	}
	if _, err := m.Array(find(t, m, "lv")); !errors.Is(err, ErrBadRecord) {
		t.Errorf("array of a value: %v", err)
	}
}

// TestMetadataRepeat: a record repeats another one if nothing but values has changed.
func TestMetadataRepeat(t *testing.T) {
	enc := NewMetadataEncoder()
	for _, v := range []VarDesc{
		{Name: "x", Kind: GlobalArray, Type: Int32, ElemSize: 4},
		{Name: "v", Kind: GlobalValue, Type: Double, ElemSize: 8},
		{Name: "s", Kind: GlobalValue, Type: String},
		{Name: "seldom", Kind: LocalValue, Type: Int64, ElemSize: 8},
	} {
		if _, err := enc.Add(v); err != nil {
			t.Fatal(err)
		}
	}
	record := func(loc uint64, value byte, text string, seldom bool, size uint64) []byte {
		t.Helper()
		enc.Begin()
		err := errors.Join(
			enc.SetArray(0, &ArrayMeta{Dims: 1, Blocks: 1, Shape: []uint64{4}, Count: []uint64{4}, Offset: []uint64{0}, Location: []uint64{loc}}),
			enc.SetValue(1, []byte{value, 0, 0, 0, 0, 0, 0, 0}), enc.SetText(2, text))
		if seldom {
			err = errors.Join(err, enc.SetValue(3, make([]byte, 8)))
		}
		rec, failed := enc.Append(nil, size)
		if err = errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		return rec
	}
	rec := record(0, 1, "text", false, 32)
	f, err := enc.Format()
	if err != nil {
		t.Fatal(err)
	}
	m := open(t, map[ffs.ID]*ffs.Format{f.ID(): f}, rec)
	again, ok := m.Repeat(record(0, 2, "text", false, 32))
	if !ok {
		t.Fatal("another value makes another record")
	}
	v, err := again.Value(1)
	if s, failed := again.Text(2); v[0] != 2 || s != "text" || err != nil || failed != nil || again.DataSize() != 32 || !again.Has(1) || again.Has(3) {
		t.Errorf("% x, %q, %v, %v", v, s, err, failed)
	}
	if old, _ := m.Value(1); old[0] != 1 {
		t.Error("the first one has changed")
	}
	for what, other := range map[string][]byte{
		"a block elsewhere": record(16, 1, "text", false, 32), "another string": record(0, 1, "Text", false, 32),
		"one variable more": record(0, 1, "text", true, 32), "more data": record(0, 1, "text", false, 48), "nothing": nil,
		"a truncated one": rec[:len(rec)-1],
	} {
		if _, ok := m.Repeat(other); ok {
			t.Errorf("%s: it repeats", what)
		}
	}
}

func TestMetadataBits(t *testing.T) {
	steps, formats := realSteps(t, "main-many")
	for st, in := range map[int]func(k int) bool{
		0: func(int) bool { return true }, 1: func(k int) bool { return k%7 == 3 }, 2: func(k int) bool { return k == 139 },
	} {
		m := open(t, formats, steps[st].meta[0])
		var want, got, has []int
		for k := range m.schema.Vars() {
			if in(k) {
				want = append(want, k)
			}
			if m.Has(k) {
				has = append(has, k)
			}
		}
		for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
			got = append(got, i)
		}
		if !slices.Equal(got, want) || !slices.Equal(has, want) {
			t.Errorf("step %d: bits %v, want %v", st, got, want)
		}
	}
}

func TestMetadataStringsAndOperators(t *testing.T) {
	steps, formats := realSteps(t, "main-types")
	m := open(t, formats, steps[1].meta[0])
	if s, err := m.Text(find(t, m, "s_string")); err != nil || s != "step 1 é" {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := m.Value(find(t, m, "s_string")); !errors.Is(err, ErrBadRecord) {
		t.Errorf("value of a string: %v", err)
	}
	if d := m.Var(find(t, m, "s_char")); d.Type != Int8 || d.ElemSize != 1 {
		t.Errorf("a single char: %+v", d)
	}
	if d := m.Var(find(t, m, "s_cdouble")); d.Type != ComplexDouble || d.ElemSize != 16 {
		t.Errorf("a complex value: %+v", d)
	}
	steps, formats = realSteps(t, "main-nullop")
	m = open(t, formats, steps[0].meta[0])
	a, err := m.Array(find(t, m, "x"))
	if err != nil || !m.Var(find(t, m, "x")).Operator || len(a.StoredSize) != 2 || a.StoredSize[0] != 12+2400 {
		t.Errorf("operator: %v, %+v", err, a.StoredSize)
	}
	if a, err := m.Array(find(t, m, "plain")); err != nil || m.Var(find(t, m, "plain")).Operator || a.StoredSize != nil {
		t.Errorf("no operator: %v, %+v", err, a)
	}
}

func TestStructDef(t *testing.T) {
	for _, name := range []string{"main-struct", "v2.10.2-struct"} {
		steps, formats := realSteps(t, name)
		m := open(t, formats, steps[0].meta[0])
		d := m.Var(find(t, m, "particles"))
		if d.Type != Struct || d.ElemSize != 32 || formats[d.StructID] == nil {
			t.Fatalf("%s: %+v", name, d)
		}
		def, err := ParseStruct(formats[d.StructID])
		if err != nil {
			t.Fatal(err)
		}
		want := StructDef{Name: def.Name, Size: 32, Fields: []StructMember{{"a", Int8, 0, 1}, {"b", Int32, 4, 4}, {"c", Double, 24, 1}}}
		if diff := cmp.Diff(want, def); diff != "" || def.Name == "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	f, err := ffs.New(ffs.Struct{Name: "s", RecordLen: 8, Fields: []ffs.Field{{Name: "t", Type: "string", Size: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseStruct(f); !errors.Is(err, ErrBadRecord) {
		t.Errorf("member outside the struct: %v", err)
	}
}

// format builds a metadata format with the given fields behind the leading ones.
func format(t *testing.T, name string, leading []ffs.Field, more []ffs.Field, subs ...ffs.Struct) *ffs.Format {
	t.Helper()
	if leading == nil {
		leading = []ffs.Field{{Name: "BitFieldCount", Type: "integer", Size: 8}, {Name: "BitField", Type: "integer[BitFieldCount]", Size: 8}, {Name: "DataBlockSize", Type: "integer", Size: 8}}
	}
	top := ffs.Struct{Name: name, Fields: append(slices.Clone(leading), more...)}
	for i := range top.Fields {
		top.Fields[i].Offset = top.RecordLen
		top.RecordLen += 64 // room for anything; gaps are legal
	}
	f, err := ffs.New(append([]ffs.Struct{top}, subs...)...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseSchemaRefuses(t *testing.T) {
	count := ffs.Field{Name: "BitFieldCount", Type: "integer", Size: 8}
	bits := ffs.Field{Name: "BitField", Type: "integer[BitFieldCount]", Size: 8}
	size := ffs.Field{Name: "DataBlockSize", Type: "integer", Size: 8}
	lacking := ffs.Struct{Name: "MetaArray", RecordLen: 16, Fields: []ffs.Field{{Name: "Dims", Type: "integer", Size: 8}, {Name: "BlockCount", Type: "integer", Size: 8, Offset: 8}}}
	for _, tc := range []struct {
		name string
		f    *ffs.Format
		want error
	}{
		{"other name", format(t, "Attributes", nil, nil), ErrBadRecord},
		{"two fields", format(t, "MetaData", []ffs.Field{count, bits}, nil), ErrBadRecord},
		{"other order", format(t, "MetaData", []ffs.Field{count, size, bits}, nil), ErrBadRecord},
		{"short bits", format(t, "MetaData", []ffs.Field{count, {Name: "BitField", Type: "integer[BitFieldCount]", Size: 4}, size}, nil), ErrBadRecord},
		{"bits in place", format(t, "MetaData", []ffs.Field{count, {Name: "BitField", Type: "integer", Size: 8}, size}, nil), ErrBadRecord},
		{"float size", format(t, "MetaData", []ffs.Field{count, bits, {Name: "DataBlockSize", Type: "float", Size: 8}}, nil), ErrBadRecord},
		{"no variable", format(t, "MetaData", nil, []ffs.Field{{Name: "x", Type: "integer", Size: 8}}), ErrBadRecord},
		{"unknown kind", format(t, "MetaData", nil, []ffs.Field{{Name: "BPU_8_10_x", Type: "integer", Size: 8}}), ErrBadRecord},
		{"2.8", format(t, "MetaData", nil, []ffs.Field{{Name: "BPG_8_10_xDims", Type: "integer", Size: 8}}), ErrOldMetadata},
		{"other struct", format(t, "MetaData", nil, []ffs.Field{{Name: "BPG_8_10_x", Type: "Mystery", Size: 16}}, ffs.Struct{Name: "Mystery", RecordLen: 16}), ErrBadRecord},
		{"fields missing", format(t, "MetaData", nil, []ffs.Field{{Name: "BPG_8_10_x", Type: "MetaArray", Size: 16}}, lacking), ErrBadRecord},
		{"two of them", format(t, "MetaData", nil, []ffs.Field{{Name: "BPG_8_10_x", Type: "MetaArray[2]", Size: 16}, {Name: "BPg_y", Type: "integer", Size: 8}}, lacking), nil},
	} {
		_, err := ParseSchema(tc.f)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if tc.want == ErrOldMetadata && !strings.Contains(err.Error(), "2.8") {
			t.Errorf("unclear: %v", err)
		}
	}
}

// A value of a type that BP5 does not use is listed, without a type.
func TestUnknownValueType(t *testing.T) {
	s, err := ParseSchema(format(t, "MetaData", nil, []ffs.Field{{Name: "BPg_x", Type: "integer[3]", Size: 8}, {Name: "BPg_y", Type: "integer", Size: 3}}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]VarDesc{{Name: "x", Kind: GlobalValue}, {Name: "y", Kind: GlobalValue, ElemSize: 3}}, s.Vars()); diff != "" {
		t.Error(diff)
	}
}

// The record and its slots, all of it from real writers.
func TestMetadataTruncated(t *testing.T) {
	eachRealStep(t, func(st realStep, formats map[ffs.ID]*ffs.Format) {
		for rank, rec := range st.meta {
			id, _ := ffs.RecordID(rec)
			s, err := ParseSchema(formats[id])
			if err != nil {
				t.Fatalf("%s: %v", st.name, err)
			}
			length := 24 + int(binary.LittleEndian.Uint64(rec[12:]))
			for n := 0; n < length; n += 1 + length/500 {
				if _, err := s.Metadata(rec[:n:n]); err == nil {
					t.Errorf("%s: rank %d: %d of %d bytes accepted", st.name, rank, n, length)
				}
			}
		}
	})
}

// touch asks for everything in a record.
func touch(m *Metadata) {
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		if m.Var(i).Kind.IsArray() {
			if a, err := m.Array(i); err == nil && (len(a.Count) != a.Dims*a.Blocks || len(a.Location) != a.Blocks) {
				panic("lengths")
			}
			continue
		}
		_, _ = m.Value(i)
		_, _ = m.Text(i)
	}
}

func FuzzMetadata(f *testing.F) {
	for _, name := range bpfixture.Names() {
		files := bpfixture.Files(f, name)
		entries, _, err := ParseMMD(files["mmd.0"])
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			for at := 0; at+24 < len(files["md.0"]); at++ {
				if string(files["md.0"][at:at+12]) == string(e.ID[:]) {
					n := binary.LittleEndian.Uint64(files["md.0"][at+12:])
					f.Add(e.Description, files["md.0"][at+12:][:min(12+n, uint64(len(files["md.0"])-at-12))])
					break
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, body, rest []byte) {
		format, _, err := ffs.Parse(body)
		if err != nil {
			return
		}
		id := format.ID()
		rec := append(id[:], rest...)
		if _, _, err := ParseAttributes(format, rec); err == nil {
			return
		}
		_, _ = ParseStruct(format)
		s, err := ParseSchema(format)
		if err != nil {
			return
		}
		if m, err := s.Metadata(rec); err == nil {
			touch(m)
		}
	})
}

// Records that contradict themselves are refused when the array is asked for.
func TestArrayRefuses(t *testing.T) {
	enc := newEncoder(t, VarDesc{Name: "x", Kind: GlobalArray, Type: Double, ElemSize: 8, MinMax: 8, Operator: true})
	a := &ArrayMeta{Dims: 2, Blocks: 3, Shape: []uint64{9, 9}, Count: make([]uint64, 6), Offset: make([]uint64, 6), Location: make([]uint64, 3), StoredSize: make([]uint64, 3), MinMax: make([]byte, 48)}
	if err := enc.SetArray(0, a); err != nil {
		t.Fatal(err)
	}
	rec, s := encoded(t, enc, 0)
	const base = 24 + 24 // record header, leading fields; then the struct's nine words
	refused := 0
	for field := range 9 {
		for _, v := range []uint64{0, 1, 2, 4, 7, 1 << 20, 1 << 40, 1 << 62, 1 << 63, ^uint64(0)} {
			bad := slices.Clone(rec)
			binary.LittleEndian.PutUint64(bad[base+8*field:], v)
			m, err := s.Metadata(bad)
			if err == nil {
				_, err = m.Array(0)
			}
			if err != nil {
				refused++
			} else if field < 3 && v != uint64([]int{2, 3, 6}[field]) {
				t.Errorf("field %d = %d accepted", field, v)
			}
		}
	}
	if refused < 60 {
		t.Errorf("%d refused", refused)
	}
	bits := slices.Clone(rec)
	at := binary.LittleEndian.Uint64(bits[24+8:])
	bits[24+at] = 3
	if _, err := s.Metadata(bits); !errors.Is(err, ErrBadRecord) {
		t.Errorf("bit of no variable: %v", err)
	}
}
