package bp5

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

func TestFormatIDs(t *testing.T) {
	generic, err := GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	if got := generic.ID().String(); got != "0200008d72b6d67f54032261" {
		t.Errorf("generic attributes: id %s", got)
	}
	empty, err := NewMetadataEncoder().Format()
	if err != nil {
		t.Fatal(err)
	}
	if got := empty.ID().String(); got != "0200002eb807f4459b36b2af" {
		t.Errorf("metadata without variables: id %s", got)
	}
}

func TestFieldNames(t *testing.T) {
	var id ffs.ID
	for i := range id {
		id[i] = byte(0xa0 + i)
	}
	for _, tc := range []struct {
		v    VarDesc
		want string
	}{
		{VarDesc{Name: "x", Kind: GlobalValue, Type: Int32, ElemSize: 4}, "BPg_x"},
		{VarDesc{Name: "a_1_2", Kind: LocalValue, Type: String}, "BPl_a_1_2"},
		{VarDesc{Name: "T", Kind: GlobalArray, Type: Double, ElemSize: 8}, "BPG_8_10_T"},
		{VarDesc{Name: "été", Kind: LocalArray, Type: Char, ElemSize: 1}, "BPL_1_15_été"},
		{VarDesc{Name: "j", Kind: JoinedArray, Type: ComplexDouble, ElemSize: 16}, "BPJ_16_13_j"},
		{VarDesc{Name: "p", Kind: GlobalArray, Type: Struct, ElemSize: 32, StructID: id}, "BPG_32_16_a0a1a2a3a4a5a6a7a8a9aaab_p"},
		{VarDesc{Name: "d", Kind: GlobalArray, Type: Float, ElemSize: 4, Expression: "eCt5AA=="}, "BPG-8-eCt5AA==-4_9_d"},
	} {
		if got := tc.v.FieldName(); got != tc.want {
			t.Errorf("FieldName() = %q, want %q", got, tc.want)
		}
		back, err := ParseFieldName(tc.want)
		if err != nil {
			t.Errorf("%q: %v", tc.want, err)
		}
		if !tc.v.Kind.IsArray() {
			back.Type, back.ElemSize = tc.v.Type, tc.v.ElemSize // not in the name
		}
		if diff := cmp.Diff(tc.v, back); diff != "" {
			t.Errorf("%q parses to something else: %s", tc.want, diff)
		}
	}
}

// Descriptions of the struct of an array, with all that can be in it.
func TestMetaArrayStruct(t *testing.T) {
	v := VarDesc{Name: "x", Kind: GlobalArray, Type: Double, ElemSize: 8, Operator: true, MinMax: 8}
	want := ffs.Struct{Name: "MetaArrayOpMM8", RecordLen: 72, Align: 8, Fields: []ffs.Field{
		{Name: "Dims", Type: "integer", Size: 8, Offset: 0},
		{Name: "BlockCount", Type: "integer", Size: 8, Offset: 8},
		{Name: "DBCount", Type: "integer", Size: 8, Offset: 16},
		{Name: "Shape", Type: "integer[Dims]", Size: 8, Offset: 24},
		{Name: "Count", Type: "integer[DBCount]", Size: 8, Offset: 32},
		{Name: "Offset", Type: "integer[DBCount]", Size: 8, Offset: 40},
		{Name: "DataBlockLocation", Type: "integer[BlockCount]", Size: 8, Offset: 48},
		{Name: "DataBlockSize", Type: "integer[BlockCount]", Size: 8, Offset: 56},
		{Name: "MinMax", Type: "char[16][BlockCount]", Size: 1, Offset: 64},
	}}
	if diff := cmp.Diff(want, v.metaArrayStruct()); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		op   bool
		mm   int
		name string
		size int
	}{
		{false, 0, "MetaArray", 56}, {true, 0, "MetaArrayOp", 64}, {false, 16, "MetaArrayMM16", 64},
	} {
		v.Operator, v.MinMax = tc.op, tc.mm
		s := v.metaArrayStruct()
		if s.Name != tc.name || s.RecordLen != tc.size || v.metaArrayStructLen() != tc.size {
			t.Errorf("struct %q of %d bytes, want %q of %d", s.Name, s.RecordLen, tc.name, tc.size)
		}
	}
}

func TestNaturalOffsets(t *testing.T) {
	m := NewMetadataEncoder()
	for _, v := range []VarDesc{
		{Name: "i1", Kind: GlobalValue, Type: Int8, ElemSize: 1},
		{Name: "u2", Kind: LocalValue, Type: Uint16, ElemSize: 2},
		{Name: "c8", Kind: GlobalValue, Type: ComplexFloat, ElemSize: 8},
		{Name: "c", Kind: GlobalValue, Type: Char, ElemSize: 1},
		{Name: "ld", Kind: GlobalValue, Type: LongDouble, ElemSize: 16},
		{Name: "b", Kind: GlobalValue, Type: Uint8, ElemSize: 1},
		{Name: "c16", Kind: GlobalValue, Type: ComplexDouble, ElemSize: 16},
		{Name: "z", Kind: GlobalValue, Type: Int8, ElemSize: 1},
		{Name: "s", Kind: GlobalValue, Type: String},
		{Name: "G", Kind: GlobalArray, Type: Float, ElemSize: 4, MinMax: 4},
		{Name: "L", Kind: LocalArray, Type: Float, ElemSize: 4},
		{Name: "f", Kind: GlobalValue, Type: Float, ElemSize: 4},
	} {
		if _, err := m.Add(v); err != nil {
			t.Fatal(err)
		}
	}
	f, err := m.Format()
	if err != nil {
		t.Fatal(err)
	}
	checkNatural(t, f)
	top := f.Structs()[0]
	var got []int
	for _, field := range top.Fields {
		got = append(got, field.Offset)
	}
	want := []int{0, 8, 16, 24, 26, 28, 36, 48, 64, 72, 88, 96, 104, 168, 224}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offsets: %s", diff)
	}
	if top.RecordLen != 228 || top.Align != 16 {
		t.Errorf("record length %d, alignment %d, want 228 and 16", top.RecordLen, top.Align)
	}
	var names []string
	for _, s := range f.Structs()[1:] {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"complex8", "complex4", "MetaArrayMM4", "MetaArray"}, names); diff != "" {
		t.Errorf("sub-structs: %s", diff)
	}
	if m.Len() != 12 {
		t.Errorf("Len() = %d", m.Len())
	}
}

func TestVariablesRefused(t *testing.T) {
	good := VarDesc{Name: "x", Kind: GlobalArray, Type: Double, ElemSize: 8}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(v *VarDesc){
		"no name":             func(v *VarDesc) { v.Name = "" },
		"NUL in name":         func(v *VarDesc) { v.Name = "a\x00b" },
		"long name":           func(v *VarDesc) { v.Name = strings.Repeat("n", maxNameLen+1) },
		"kind":                func(v *VarDesc) { v.Kind = 'U' },
		"no type":             func(v *VarDesc) { v.Type = None },
		"string array":        func(v *VarDesc) { v.Type, v.ElemSize = String, 0 },
		"type out of range":   func(v *VarDesc) { v.Type = Struct + 1 },
		"element size":        func(v *VarDesc) { v.ElemSize = 4 },
		"struct of no size":   func(v *VarDesc) { v.Type, v.ElemSize = Struct, 0 },
		"stats size":          func(v *VarDesc) { v.MinMax = 4 },
		"stats of odd struct": func(v *VarDesc) { v.Type, v.ElemSize, v.MinMax = Struct, 24, 24 },
		"struct value":        func(v *VarDesc) { v.Kind, v.Type = GlobalValue, Struct },
		"value size":          func(v *VarDesc) { v.Kind, v.ElemSize = GlobalValue, 4 },
		"value with operator": func(v *VarDesc) { v.Kind, v.Operator = GlobalValue, true },
		"value with stats":    func(v *VarDesc) { v.Kind, v.MinMax = LocalValue, 8 },
		"value, expression":   func(v *VarDesc) { v.Kind, v.Expression = LocalValue, "AA==" },
		"value of no type":    func(v *VarDesc) { v.Kind, v.Type, v.ElemSize = GlobalValue, None, 0 },
	} {
		v := good
		change(&v)
		m := NewMetadataEncoder()
		if _, err := m.Add(v); !errors.Is(err, ErrEncode) {
			t.Errorf("%s: error %v", name, err)
		}
		if m.Len() != 0 {
			t.Errorf("%s: the encoder took it", name)
		}
	}
}

func TestStructFormatsRefused(t *testing.T) {
	member := StructMember{Name: "a", Type: Int32, Offset: 0, Count: 1}
	for name, def := range map[string]StructDef{
		"no name":        {Size: 4, Fields: []StructMember{member}},
		"member name":    {Name: "s", Size: 4, Fields: []StructMember{{Type: Int32, Count: 1}}},
		"string member":  {Name: "s", Size: 8, Fields: []StructMember{{Name: "a", Type: String, Count: 1}}},
		"struct member":  {Name: "s", Size: 8, Fields: []StructMember{{Name: "a", Type: Struct, Count: 1}}},
		"count":          {Name: "s", Size: 4, Fields: []StructMember{{Name: "a", Type: Int32}}},
		"overlap":        {Name: "s", Size: 8, Fields: []StructMember{member, {Name: "b", Type: Int32, Offset: 2, Count: 1}}},
		"outside":        {Name: "s", Size: 4, Fields: []StructMember{{Name: "a", Type: Int32, Offset: 1, Count: 1}}},
		"same name":      {Name: "s", Size: 8, Fields: []StructMember{member, {Name: "a", Type: Int32, Offset: 4, Count: 1}}},
		"huge count":     {Name: "s", Size: 8, Fields: []StructMember{{Name: "a", Type: Int32, Count: 1 << 40}}},
		"negative place": {Name: "s", Size: 8, Fields: []StructMember{{Name: "a", Type: Int32, Offset: -4, Count: 1}}},
	} {
		if _, err := NewStructFormat(def); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A struct with every member type reads back as it was.
func TestStructFormatRoundTrip(t *testing.T) {
	def := StructDef{Name: "all", Size: 200}
	off := 0
	for typ := Int8; typ <= Char; typ++ {
		if typ == String {
			continue
		}
		off = roundUp(off, typ.Size())
		def.Fields = append(def.Fields, StructMember{Name: "m" + string('a'+rune(typ)), Type: typ, Offset: off, Count: 1 + int(typ)%2})
		off += typ.Size() * (1 + int(typ)%2)
	}
	f, err := NewStructFormat(def)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseStruct(f)
	if err != nil {
		t.Fatal(err)
	}
	def.Fields[len(def.Fields)-1].Type = Int8 // char has no code of its own
	if diff := cmp.Diff(def, got); diff != "" {
		t.Error(diff)
	}
}
