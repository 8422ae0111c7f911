package bp5

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// Names that real writers made, or would make (docs/wire/bp5.md §2.1).
var fieldNames = []struct {
	field string
	want  VarDesc
}{
	{"BPg_s", VarDesc{Name: "s", Kind: GlobalValue}},
	{"BPl_lv_1", VarDesc{Name: "lv_1", Kind: LocalValue}},
	{"BPg_", VarDesc{Kind: GlobalValue}},
	{"BPg_8_10_x", VarDesc{Name: "8_10_x", Kind: GlobalValue}},
	{"BPG_4_3_x", VarDesc{Name: "x", Kind: GlobalArray, Type: Int32, ElemSize: 4}},
	{"BPL_1_15_a/b/c", VarDesc{Name: "a/b/c", Kind: LocalArray, Type: Char, ElemSize: 1}},
	{"BPJ_8_10_x_1_2_y", VarDesc{Name: "x_1_2_y", Kind: JoinedArray, Type: Double, ElemSize: 8}},
	{"BPG_8_10_BPG_8_10_fake", VarDesc{Name: "BPG_8_10_fake", Kind: GlobalArray, Type: Double, ElemSize: 8}},
	{"BPG_8_10__lead", VarDesc{Name: "_lead", Kind: GlobalArray, Type: Double, ElemSize: 8}},
	{"BPG_8_10_", VarDesc{Kind: GlobalArray, Type: Double, ElemSize: 8}},
	{"BPG_4_3_br[0] été", VarDesc{Name: "br[0] été", Kind: GlobalArray, Type: Int32, ElemSize: 4}},
	{"BPG_4_3_minus-3-abc-", VarDesc{Name: "minus-3-abc-", Kind: GlobalArray, Type: Int32, ElemSize: 4}},
	{"BPG_32_16_0200002eb807f4459b36b2af_particles", VarDesc{
		Name: "particles", Kind: GlobalArray, Type: Struct, ElemSize: 32,
		StructID: ffs.ID{0x02, 0, 0, 0x2e, 0xb8, 0x07, 0xf4, 0x45, 0x9b, 0x36, 0xb2, 0xaf},
	}},
	{"BPG-12-eCA9IGEgKyBi-8_10_d-e", VarDesc{Name: "d-e", Kind: GlobalArray, Type: Double, ElemSize: 8, Expression: "eCA9IGEgKyBi"}},
	{"BPL_3_99_odd", VarDesc{Name: "odd", Kind: LocalArray, Type: 99, ElemSize: 3}},
}

func TestParseFieldName(t *testing.T) {
	for _, tc := range fieldNames {
		got, err := ParseFieldName(tc.field)
		if err != nil {
			t.Errorf("%s: %v", tc.field, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.field, diff)
		}
		if back := got.FieldName(); back != tc.field {
			t.Errorf("%s became %s", tc.field, back)
		}
	}
}

func TestParseFieldNameRefuses(t *testing.T) {
	for _, s := range []string{
		"", "B", "BP", "BPg", "xPg_s", "BPx_s", "BPU_8_10_x", "BPg-s", "BPG", "BPG_", "BPG_8", "BPG_8_", "BPG_8_10", "BPG8_10_x",
		"BPG__10_x", "BPG_8__x", "BPG_-8_10_x", "BPG_+8_10_x", "BPG_0_10_x", "BPG_8_256_x", "BPG_8_1e1_x", "BPG_99999999999999999999_10_x",
		"BPG_2147483648_10_x", "BPG_8_16_x", "BPG_8_16_0200002eb807f4459b36b2a_x", "BPG_8_16_0200002EB807F4459B36B2AF_x",
		"BPG_8_16_0200002eb807f4459b36b2ag_x", "BPG_8_16_0200002eb807f4459b36b2af", "BPG-", "BPG-3", "BPG-3-", "BPG-3-abc", "BPG-3-abc_8_10_x",
		"BPG-4-abc-8_10_x", "BPG-99-abc-8_10_x", "BPG-x-abc-8_10_x", "BPG-3-abc-8_10",
	} {
		if d, err := ParseFieldName(s); !errors.Is(err, ErrBadRecord) {
			t.Errorf("%q: %v, %+v", s, err, d)
		}
	}
	if _, err := ParseFieldName("BPG_" + strings.Repeat("9", 1<<16)); err == nil || len(err.Error()) > 500 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

func FuzzParseFieldName(f *testing.F) {
	for _, tc := range fieldNames {
		f.Add(tc.field)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseFieldName(s)
		if err != nil {
			return
		}
		again, err := ParseFieldName(d.FieldName())
		if err != nil {
			t.Fatalf("%q became %q: %v", s, d.FieldName(), err)
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Errorf("%q: %s", s, diff)
		}
	})
}

func TestValueType(t *testing.T) {
	for _, tc := range []struct {
		typ  ffs.Type
		size int
		want Type
	}{
		{ffs.Type{Kind: ffs.Integer}, 1, Int8}, {ffs.Type{Kind: ffs.Integer}, 8, Int64}, {ffs.Type{Kind: ffs.Integer}, 3, None},
		{ffs.Type{Kind: ffs.Unsigned}, 2, Uint16}, {ffs.Type{Kind: ffs.Unsigned}, 4, Uint32}, {ffs.Type{Kind: ffs.Unsigned}, 16, None},
		{ffs.Type{Kind: ffs.Float}, 4, Float}, {ffs.Type{Kind: ffs.Float}, 8, Double}, {ffs.Type{Kind: ffs.Float}, 16, LongDouble}, {ffs.Type{Kind: ffs.Float}, 2, None},
		{ffs.Type{Kind: ffs.Char}, 1, Char}, {ffs.Type{Kind: ffs.Char}, 2, None}, {ffs.Type{Kind: ffs.String}, 8, String},
		{ffs.Type{Kind: ffs.Substruct, Struct: "complex4"}, 8, ComplexFloat}, {ffs.Type{Kind: ffs.Substruct, Struct: "complex8"}, 16, ComplexDouble},
		{ffs.Type{Kind: ffs.Substruct, Struct: "complex8"}, 24, None}, {ffs.Type{Kind: ffs.Substruct, Struct: "other"}, 8, None}, {ffs.Type{Kind: ffs.Boolean}, 1, None},
	} {
		if got, _ := valueType(tc.typ, tc.size); got != tc.want {
			t.Errorf("%v of %d bytes: %d, want %d", tc.typ, tc.size, got, tc.want)
		}
	}
}
