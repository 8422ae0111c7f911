package ffs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseType(t *testing.T) {
	fields := []string{"n", "Length", "BPG_a[0]_ElemCount", "[", "m]x", "7"}
	index := func(name string) int {
		for i, f := range fields {
			if f == name {
				return i
			}
		}
		return -1
	}
	dims := func(d ...Dim) []Dim { return d }
	constant := func(n int) Dim { return Dim{Const: n, Field: -1} }
	counted := func(i int) Dim { return Dim{Field: i} }
	tests := []struct {
		in   string
		want Type
	}{
		{"integer", Type{Kind: Integer}},
		{" Integer ", Type{Kind: Integer}},
		{"unsigned integer", Type{Kind: Unsigned}},
		{"UNSIGNED", Type{Kind: Unsigned}},
		{"float", Type{Kind: Float}},
		{"double", Type{Kind: Float}},
		{"char", Type{Kind: Char}},
		{"string", Type{Kind: String}},
		{"enumeration", Type{Kind: Enumeration}},
		{"boolean", Type{Kind: Boolean}},
		{"MetaArrayOpMM8", Type{Kind: Substruct, Struct: "MetaArrayOpMM8"}},
		{"a struct", Type{Kind: Substruct, Struct: "a struct"}},
		{"*FFSFormatBlock", Type{Kind: Substruct, Struct: "FFSFormatBlock", Pointer: true}},
		{"(*cp_reader)[n]", Type{Kind: Substruct, Struct: "cp_reader", Pointer: true, Dims: dims(counted(0))}},
		{"(*S)[3]", Type{Kind: Substruct, Struct: "S", Pointer: true, Dims: dims(constant(3))}},
		{"(*S)", Type{Kind: Substruct, Struct: "S", Pointer: true}},
		{"S[n]", Type{Kind: Substruct, Struct: "S", Dims: dims(counted(0))}},
		{"char[16][n]", Type{Kind: Char, Dims: dims(constant(16), counted(0))}},
		{"char[n][16]", Type{Kind: Char, Dims: dims(counted(0), constant(16))}},
		{"integer[Length][n]", Type{Kind: Integer, Dims: dims(counted(1), counted(0))}},
		{"char[7]", Type{Kind: Char, Dims: dims(constant(7))}}, // digits are always a number
		{"float[BPG_a[0]_ElemCount]", Type{Kind: Float, Dims: dims(counted(2))}},
		{"float[2][BPG_a[0]_ElemCount]", Type{Kind: Float, Dims: dims(constant(2), counted(2))}},
		{"char" + strings.Repeat("[n]", maxDims), Type{Kind: Char, Dims: slices.Repeat(dims(counted(0)), maxDims)}},
		{"float[[]", Type{Kind: Float, Dims: dims(counted(3))}},
		{"float[m]x]", Type{Kind: Float, Dims: dims(counted(4))}},
	}
	for _, tt := range tests {
		got, err := parseType(tt.in, index)
		if err != nil {
			t.Errorf("%q: %v", tt.in, err)
		} else if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q: %s", tt.in, d)
		}
	}
	for _, in := range []string{
		"", " ", "[n]", "*", "**S", "*S[n]", "(*S", "(*S)x", "(*)", "()", "(S)[n]", "*integer", "(*string)[n]",
		"char[", "char[]", "char[0]", "char[99999999999]", "char[-1]", "char[unknown]", "char[n", "char[n]x", "char[n] [n]", "S]", "S)",
		"char" + strings.Repeat("[1]", maxDims+1),
	} {
		if got, err := parseType(in, index); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %+v, %v, want ErrFormat", in, got, err)
		}
	}
}

func TestTypeDynamic(t *testing.T) {
	for _, tt := range []struct {
		dims []Dim
		want bool
	}{
		{nil, false},
		{[]Dim{{Const: 3, Field: -1}}, false},
		{[]Dim{{Const: 3, Field: -1}, {Field: 0}}, true},
	} {
		if got := (Type{Dims: tt.dims}).Dynamic(); got != tt.want {
			t.Errorf("%v: Dynamic() = %v", tt.dims, got)
		}
	}
}

func TestKindString(t *testing.T) {
	for k, want := range map[Kind]string{
		Integer: "integer", Unsigned: "unsigned integer", Float: "float", Char: "char", String: "string",
		Enumeration: "enumeration", Boolean: "boolean", Substruct: "struct", 0: "Kind(0)", 99: "Kind(99)",
	} {
		if got := k.String(); got != want {
			t.Errorf("Kind %d = %q, want %q", k, got, want)
		}
	}
}

// Error texts may hold names from outside, but not megabytes of them.
func TestErrorsAreShort(t *testing.T) {
	_, err := parseType("char["+strings.Repeat("x", 1<<16)+"]", func(string) int { return -1 })
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}
