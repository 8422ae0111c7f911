package ffs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readerActivate is the example of docs/wire/ffs.md §3.
var readerActivate = Struct{Name: "ReaderActivate", RecordLen: 8, Fields: []Field{{"WSR_Stream", "integer", 8, 0}}}

const readerActivateBody = `0064 00 02 00 00 0000
	005c 02 00 2c000000 01000000 08000000 08 1c 0200 5000 00 08 0000 0000
	3b000000 46000000 08000000 00000000
	5265616465724163746976617465 00 5753525f53747265616d 00 696e7465676572 00 0000
	000000000000000000000000`

func TestBodyExample(t *testing.T) {
	want := unhex(t, readerActivateBody)
	f, err := New(readerActivate)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.Body(), want) {
		t.Errorf("body\n%swant\n%s", hex.Dump(f.Body()), hex.Dump(want))
	}
	if got := f.ID().String(); got != "02000019d952f615b60dcc2a" {
		t.Errorf("ID %s", got)
	}
	g, n, err := Parse(append(want, 1, 2, 3))
	if err != nil || n != len(want) {
		t.Fatalf("Parse: %d bytes, %v", n, err)
	}
	wantDesc := readerActivate
	wantDesc.Align = 8
	if d := cmp.Diff([]Struct{wantDesc}, g.Structs()); d != "" {
		t.Error(d)
	}
	if f.Variant() || g.Variant() || g.Name() != "ReaderActivate" {
		t.Errorf("%q variant: %v, %v", g.Name(), f.Variant(), g.Variant())
	}
	if f.FieldIndex("WSR_Stream") != 0 || f.FieldIndex("x") != -1 {
		t.Error("FieldIndex")
	}
	if len(f.Types(0)) != 1 || f.Types(0)[0].Kind != Integer || f.Types(1) != nil || f.Types(-1) != nil {
		t.Error("Types")
	}
}

// generic is BP5's attribute format with the ID that ADIOS2 gives it
// (docs/wire/bp5.md §4.2).
func generic() (top Struct, subs []Struct) {
	top = Struct{Name: "GenericAttributes", RecordLen: 32, Fields: []Field{
		{"PrimAttrCount", "integer", 8, 0},
		{"PrimAttrs", "PrimAttr[PrimAttrCount]", 24, 8},
		{"StrAttrCount", "integer", 8, 16},
		{"StrAttrs", "StrAttr[StrAttrCount]", 24, 24},
	}}
	prim := Struct{Name: "PrimAttr", RecordLen: 24, Fields: []Field{
		{"name", "string", 8, 0},
		{"TotalElementSize", "integer", 8, 8},
		{"Values", "char[TotalElementSize]", 1, 16},
	}}
	str := Struct{Name: "StrAttr", RecordLen: 24, Fields: []Field{
		{"name", "string", 8, 0},
		{"ElementCount", "integer", 8, 8},
		{"Values", "string[ElementCount]", 8, 16},
	}}
	return top, []Struct{prim, str}
}

func TestOrdered(t *testing.T) {
	const want = "0200008d72b6d67f54032261"
	top, subs := generic()
	unused := Struct{Name: "Unused", RecordLen: 8, Fields: []Field{{"x", "integer", 8, 0}}}
	f, err := Ordered(top, append(subs, unused)...)
	if err != nil {
		t.Fatal(err)
	}
	if f.ID().String() != want {
		t.Errorf("ID %v, want %s", f.ID(), want)
	}
	slices.Reverse(subs)
	g, err := New(append([]Struct{top}, subs...)...)
	if err != nil || g.ID() != f.ID() {
		t.Errorf("New in the same order: %v, %v", g.ID(), err)
	}
	slices.Reverse(subs)
	if g, err = New(append([]Struct{top}, subs...)...); err != nil || g.ID() == f.ID() {
		t.Errorf("New in another order: %v, %v", g.ID(), err)
	}
}

// The order of docs/wire/ffs.md §2.3 on a tree of three levels with a struct
// that two others share and one that points at itself.
func TestOrderedDeep(t *testing.T) {
	use := func(name string, subs ...string) Struct {
		s := Struct{Name: name, RecordLen: 8 + 8*len(subs), Fields: []Field{{"n", "integer", 8, 0}}}
		for i, sub := range subs {
			s.Fields = append(s.Fields, Field{"f" + sub, "*" + sub, 8, 8 + 8*i})
		}
		return s
	}
	f, err := Ordered(use("top", "b", "Z", "a"), use("a", "shared", "deep"), use("b", "shared", "b"), use("Z"), use("shared"), use("deep"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range f.Structs() {
		names = append(names, s.Name)
	}
	if d := cmp.Diff([]string{"top", "b", "a", "shared", "deep", "Z"}, names); d != "" {
		t.Error(d)
	}
	if _, err := Ordered(use("top"), use("x"), use("x")); !errors.Is(err, ErrFormat) {
		t.Errorf("two structs of one name: %v", err)
	}
	if _, err := Ordered(use("top", "none")); !errors.Is(err, ErrFormat) {
		t.Errorf("unknown struct: %v", err)
	}
}

func TestAlign(t *testing.T) {
	sub := Struct{Name: "complex4", RecordLen: 8, Fields: []Field{{"real", "float", 4, 0}, {"imag", "float", 4, 4}}}
	for _, tt := range []struct {
		fields []Field
		want   int
	}{
		{nil, 1},
		{[]Field{{"a", "char", 1, 0}}, 1},
		{[]Field{{"a", "integer", 2, 0}}, 2},
		{[]Field{{"a", "char[5]", 1, 0}, {"b", "float", 4, 8}}, 4},
		{[]Field{{"a", "float", 16, 0}}, 16},
		{[]Field{{"a", "string", 8, 0}}, 8},
		{[]Field{{"n", "integer", 4, 0}, {"a", "char[n]", 1, 8}}, 8},
		{[]Field{{"a", "complex4", 8, 0}}, 4},
		{[]Field{{"a", "*complex4", 8, 0}}, 8},
		{[]Field{{"a", "complex4[2]", 8, 0}}, 4},
	} {
		f, err := New(Struct{Name: "S", RecordLen: 16, Fields: tt.fields}, sub)
		if err != nil {
			t.Errorf("%v: %v", tt.fields, err)
		} else if got := f.Structs()[0].Align; got != tt.want {
			t.Errorf("%v: alignment %d, want %d", tt.fields, got, tt.want)
		}
	}
}

func TestVariant(t *testing.T) {
	flat := Struct{Name: "flat", RecordLen: 8, Fields: []Field{{"x", "integer", 8, 0}}}
	full := Struct{Name: "full", RecordLen: 8, Fields: []Field{{"x", "string", 8, 0}}}
	for typ, want := range map[string]bool{
		"integer": false, "char[8]": false, "string": true, "string[2]": true, "char[n]": true,
		"flat": false, "flat[2]": false, "*flat": true, "flat[n]": true, "full": true, "full[2]": true,
	} {
		size := 8
		if strings.HasPrefix(typ, "char") {
			size = 1
		}
		f, err := New(Struct{Name: "S", RecordLen: 24, Fields: []Field{{"n", "integer", 8, 0}, {"f", typ, size, 8}}}, flat, full)
		if err != nil {
			t.Errorf("%s: %v", typ, err)
		} else if f.Variant() != want {
			t.Errorf("%s: Variant() = %v", typ, !want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	s := func(size int, fields ...Field) []Struct {
		return []Struct{{Name: "S", RecordLen: size, Fields: fields}}
	}
	inner := Struct{Name: "I", RecordLen: 16, Fields: []Field{{"x", "integer", 8, 0}}}
	many := make([]Struct, 257)
	for i := range many {
		many[i] = Struct{Name: strings.Repeat("x", i+1)}
	}
	tests := map[string][]Struct{
		"no struct":            nil,
		"too many structs":     many,
		"negative length":      s(-1),
		"huge length":          s(1 << 31),
		"unknown struct":       s(8, Field{"a", "Other", 8, 0}),
		"bad type":             s(8, Field{"a", "char[", 8, 0}),
		"unknown count":        s(8, Field{"a", "char[n]", 1, 0}),
		"count is a float":     s(16, Field{"n", "float", 8, 0}, Field{"a", "char[n]", 1, 8}),
		"count is an array":    s(24, Field{"n", "integer[2]", 8, 0}, Field{"a", "char[n]", 1, 16}),
		"count of 3 bytes":     s(16, Field{"n", "integer", 3, 0}, Field{"a", "char[n]", 1, 8}),
		"count is itself":      s(8, Field{"a", "integer[a]", 8, 0}),
		"size 0":               s(8, Field{"a", "integer", 0, 0}),
		"size negative":        s(8, Field{"a", "string", -8, 0}),
		"size huge":            s(8, Field{"a", "char", 1 << 31, 0}),
		"outside":              s(8, Field{"a", "integer", 8, 1}),
		"offset negative":      s(8, Field{"a", "integer", 4, -4}),
		"slot outside":         s(12, Field{"n", "integer", 8, 0}, Field{"a", "char[n]", 1, 8}),
		"array outside":        s(8, Field{"a", "char[9]", 1, 0}),
		"array overflows":      s(8, Field{"a", "integer[2000000000][2000000000]", 8, 0}),
		"array overflows once": s(8, Field{"a", "integer[2000000000]", 8, 0}),
		"overlap":              s(8, Field{"a", "integer", 4, 0}, Field{"b", "integer", 4, 3}),
		"not in order":         s(8, Field{"a", "integer", 4, 4}, Field{"b", "integer", 4, 0}),
		"two fields":           s(8, Field{"a", "integer", 4, 0}, Field{"a", "integer", 4, 4}),
		"two structs":          append(s(8), s(8)...),
		"NUL in struct name":   {{Name: "a\x00b"}},
		"NUL in field name":    s(8, Field{"a\x00", "integer", 8, 0}),
		"NUL in type":          s(8, Field{"n\x00", "integer", 8, 0}),
		"alignment":            {{Name: "S", Align: 256}},
		"struct too small":     append(s(8, Field{"a", "I", 8, 0}), inner),
		"struct outside":       append(s(8, Field{"a", "I", 16, 0}), inner),
		"structs outside":      append(s(40, Field{"a", "I[3]", 16, 0}), inner),
		"empty struct":         append(s(8, Field{"a", "E", 8, 0}), Struct{Name: "E"}),
		"pointer to empty":     append(s(8, Field{"a", "*E", 8, 0}), Struct{Name: "E"}),
		"contains itself":      s(8, Field{"a", "S", 8, 0}),
		"contain each other":   append(s(8, Field{"a", "T", 8, 0}), Struct{Name: "T", RecordLen: 8, Fields: []Field{{"b", "S[1]", 8, 0}}}),
		"pointer to a number":  s(8, Field{"a", "*integer", 8, 0}),
		"pointers to strings":  s(16, Field{"n", "integer", 8, 0}, Field{"a", "(*string)[n]", 8, 8}),
	}
	for name, structs := range tests {
		if _, err := New(structs...); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", name, err)
		}
	}
}

// The size of a field may exceed the struct in it (docs/wire/bp5.md, trap 7).
func TestWideStructField(t *testing.T) {
	inner := Struct{Name: "I", RecordLen: 56, Fields: []Field{{"x", "string", 8, 48}}}
	top := Struct{Name: "S", RecordLen: 136, Fields: []Field{{"a", "I", 64, 0}, {"b", "I", 64, 64}, {"c", "integer", 8, 128}}}
	f, err := New(top, inner)
	if err != nil {
		t.Fatal(err)
	}
	b := f.NewRecord()
	for i, s := range []string{"first", "second"} {
		kid := b.Child("I")
		kid.SetText(0, s)
		b.SetStructs(i, kid)
	}
	b.SetInt(2, 7)
	rec, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, n, err := f.Record(rec)
	if err != nil || n != len(rec) {
		t.Fatal(n, err)
	}
	second := must(r.Top().Struct(1))
	if s, ok, err := second.Text(0); s != "second" || !ok || err != nil {
		t.Errorf("%q, %v, %v", s, ok, err)
	}
	checkEncoded(t, r, rec)
}

// New must not keep the caller's slices.
func TestNewCopies(t *testing.T) {
	fields := []Field{{"a", "integer", 8, 0}}
	f, err := New(Struct{Name: "S", RecordLen: 8, Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	fields[0] = Field{"b", "char", 1, 3}
	if got := f.Structs()[0].Fields[0]; got != (Field{"a", "integer", 8, 0}) {
		t.Errorf("the format has changed to %v", got)
	}
}
