package step

import (
	"math"
	"math/big"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

func TestTypes(t *testing.T) {
	for typ := None; typ <= Struct; typ++ {
		if typ.Size() != bp5.Type(typ).Size() {
			t.Errorf("%v has %d bytes, in BP5 %d", typ, typ.Size(), bp5.Type(typ).Size())
		}
		got, err := ParseType(typ.String())
		if typ == None {
			if err == nil || typ.Valid() {
				t.Errorf("%v is a type", typ)
			}
			continue
		}
		if got != typ || err != nil || !typ.Valid() {
			t.Errorf("%v: %v, %v", typ, got, err)
		}
	}
	for _, typ := range []Type{Struct + 1, 99, 255} {
		if typ.Valid() || typ.Size() != 0 || typ.Ordered() {
			t.Errorf("%v is a type", typ)
		}
	}
	if Type(99).String() != "type 99" {
		t.Error(Type(99))
	}
	if _, err := ParseType("complex"); err == nil {
		t.Error("a name that no type has")
	}
	if TypeOf[Char]() != CharType || TypeOf[Float80]() != LongDouble || TypeOf[string]() != String || TypeOf[complex64]() != Complex64 {
		t.Error("TypeOf")
	}
}

// x87 writes the bytes of a long double as the architecture's manual has them.
func x87(signExp uint16, mantissa uint64) (f Float80) {
	for i := range 8 {
		f[i] = byte(mantissa >> (8 * i))
	}
	f[8], f[9] = byte(signExp), byte(signExp>>8)
	return f
}

func TestFloat80Literals(t *testing.T) {
	for _, tc := range []struct {
		f    Float80
		want float64
	}{
		{x87(0, 0), 0},
		{x87(0x8000, 0), math.Copysign(0, -1)},
		{x87(0x3fff, 1<<63), 1},
		{x87(0xc000, 3<<62), -3},
		{x87(0x7fff, 1<<63), math.Inf(1)},
		{x87(0xffff, 1<<63), math.Inf(-1)},
		{x87(0x7fff, 3<<62), math.NaN()},
		{x87(0x3c01-0x33, 1<<63), math.Ldexp(1, -1073)}, // a denormal float64, normal here
	} {
		got := tc.f.Float64()
		if math.Float64bits(got) != math.Float64bits(tc.want) && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
			t.Errorf("% x is %v, want %v", tc.f, got, tc.want)
		}
		if back := NewFloat80(tc.want); back != tc.f {
			t.Errorf("%v is % x, want % x", tc.want, back, tc.f)
		}
	}
	// What no float64 has.
	for f, want := range map[Float80]float64{
		x87(0x3fff, 1<<63+1): 1,                    // one and a bit
		x87(0x7ffe, 1<<63):   math.Inf(1),          // too large
		x87(0xfffe, 1<<63):   math.Inf(-1),         // too small
		x87(0, 1):            0,                    // a denormal long double
		x87(0x3fff, 1<<62):   0.5,                  // unnormal: no leading bit
		x87(0x8001, 1<<63):   math.Copysign(0, -1), // rounds to zero
	} {
		if got := f.Float64(); got != want {
			t.Errorf("% x is %v, want %v", f, got, want)
		}
	}
	if v, ok := x87(0x3fff, 1<<63+1).Big(); !ok || v.Cmp(new(big.Float).SetPrec(64).SetInt64(1)) <= 0 {
		t.Errorf("Big is %v, %v", v, ok)
	}
	for _, f := range []Float80{x87(0x7fff, 1<<63), x87(0xffff, 3<<62)} {
		if _, ok := f.Big(); ok {
			t.Errorf("% x is a number", f)
		}
	}
}

// Every float64 survives the way there and back.
func TestFloat80RoundTrip(t *testing.T) {
	r := testutil.Rand(t)
	for range 20_000 {
		v := math.Float64frombits(r.Uint64())
		got := NewFloat80(v).Float64()
		if math.IsNaN(v) {
			if !math.IsNaN(got) {
				t.Fatalf("a NaN became %v", got)
			}
			continue
		}
		if math.Float64bits(got) != math.Float64bits(v) {
			t.Fatalf("%v became %v", v, got)
		}
		if b, ok := NewFloat80(v).Big(); ok {
			if back, _ := b.Float64(); back != v {
				t.Fatalf("%v is %v as a big number", v, b)
			}
		}
	}
}

func TestShapeValidate(t *testing.T) {
	for _, tc := range []struct {
		s  Shape
		ok bool
	}{
		{Shape{}, true},
		{GlobalValue(), true},
		{LocalValue(), true},
		{Shape{Kind: GlobalValueKind, Dims: dims{1}}, false},
		{GlobalArray(), false},
		{GlobalArray(0), true},
		{GlobalArray(top), true},
		{GlobalArray(JoinedDim), false},
		{GlobalArray(make(dims, MaxDims)...), true},
		{GlobalArray(make(dims, MaxDims+1)...), false},
		{LocalArray(1), true},
		{LocalArray(0), false},
		{LocalArray(-1), false},
		{LocalArray(MaxDims + 1), false},
		{JoinedArray(JoinedDim, 3), true},
		{JoinedArray(2, 3), false},
		{JoinedArray(JoinedDim, JoinedDim), false},
		{Shape{Kind: 99, Dims: dims{1}}, false},
	} {
		if err := tc.s.Validate(); (err == nil) != tc.ok {
			t.Errorf("%v %v: %v", tc.s.Kind, tc.s.Dims, err)
		}
	}
	if Kind(77).String() != "kind 77" || UnknownKind.String() != "kind 0" {
		t.Error("names of unknown kinds")
	}
}
