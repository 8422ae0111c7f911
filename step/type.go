package step

import (
	"fmt"
	"math"
	"math/big"
)

// Type is the element type of a variable or an attribute. The numbers are
// those of BP5 records (docs/wire/bp5.md §2.2).
type Type uint8

// Element types. Sizes in bytes: see [Type.Size].
const (
	None          Type = 0
	Int8          Type = 1
	Int16         Type = 2
	Int32         Type = 3
	Int64         Type = 4
	Uint8         Type = 5
	Uint16        Type = 6
	Uint32        Type = 7
	Uint64        Type = 8
	Float32       Type = 9
	Float64       Type = 10
	LongDouble    Type = 11 // C's long double: 80-bit x87 in 16 bytes on x86-64; see [Float80]
	Complex64     Type = 12
	Complex128    Type = 13
	String        Type = 14 // single values and attributes only, never arrays
	CharType      Type = 15 // C's char; see [Char]
	Struct        Type = 16 // described by a [StructType]
	typeCount          = 17
	longDoubleLen      = 16
)

var typeInfo = [typeCount]struct {
	name string // ADIOS2's name, as bpls prints it
	size int
}{
	None: {"none", 0}, Int8: {"int8_t", 1}, Int16: {"int16_t", 2}, Int32: {"int32_t", 4}, Int64: {"int64_t", 8},
	Uint8: {"uint8_t", 1}, Uint16: {"uint16_t", 2}, Uint32: {"uint32_t", 4}, Uint64: {"uint64_t", 8},
	Float32: {"float", 4}, Float64: {"double", 8}, LongDouble: {"long double", longDoubleLen},
	Complex64: {"float complex", 8}, Complex128: {"double complex", 16},
	String: {"string", 0}, CharType: {"char", 1}, Struct: {"struct", 0},
}

// Valid reports whether t is one of the types above, None excluded.
func (t Type) Valid() bool { return t > None && t < typeCount }

// String returns ADIOS2's name of the type, for example "double".
func (t Type) String() string {
	if t < typeCount {
		return typeInfo[t].name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Size returns the bytes of one element, 0 for String, Struct and None, whose
// elements have no size of their own.
func (t Type) Size() int {
	if t < typeCount {
		return typeInfo[t].size
	}
	return 0
}

// Ordered reports whether elements have minimum and maximum: all numbers but
// the complex ones.
func (t Type) Ordered() bool { return t >= Int8 && t <= LongDouble }

// ParseType is the inverse of [Type.String].
func ParseType(name string) (Type, error) {
	for t, info := range typeInfo {
		if t != int(None) && info.name == name {
			return Type(t), nil
		}
	}
	return None, fmt.Errorf("step: unknown type name %q", name)
}

// Char is C's char, which ADIOS2 keeps apart from int8_t.
type Char byte

// Float80 is one long double as x86-64 stores it: 10 bytes of x87 extended
// precision, little-endian, then 6 bytes of padding. Files from other machines
// may hold another 16-byte float under the same type; nothing tells them apart.
type Float80 [longDoubleLen]byte

// Element lists the Go types that carry ADIOS2 element types.
type Element interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 |
		float32 | float64 | complex64 | complex128 | Float80 | Char | string
}

// TypeOf returns the element type that T carries.
func TypeOf[T Element]() Type {
	var zero T
	return typeOfAny(any(zero))
}

// typeOfAny is apart from TypeOf so that the compiler makes it once, not for
// each T.
func typeOfAny(v any) Type {
	switch v.(type) {
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	case float64:
		return Float64
	case Float80:
		return LongDouble
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	case string:
		return String
	case Char:
		return CharType
	}
	return None
}

const (
	x87Bias    = 16383
	x87Special = 0x7fff // exponent of infinities and NaNs
	x87Integer = 1 << 63
)

// NewFloat80 converts v exactly: every float64 has a long double.
func NewFloat80(v float64) Float80 {
	var f Float80
	var exp uint16
	var mant uint64
	switch {
	case math.IsNaN(v):
		exp, mant = x87Special, x87Integer|1<<62
	case math.IsInf(v, 0):
		exp, mant = x87Special, x87Integer
	case v != 0:
		frac, e := math.Frexp(math.Abs(v)) // frac in [0.5, 1)
		mant = uint64(math.Ldexp(frac, 64))
		exp = uint16(e - 1 + x87Bias)
	}
	if math.Signbit(v) {
		exp |= 1 << 15
	}
	putUint64(f[:8], mant)
	f[8], f[9] = byte(exp), byte(exp>>8)
	return f
}

// Float64 returns the nearest float64.
func (f Float80) Float64() float64 {
	exp, mant, neg := f.parts()
	v := 0.0
	switch {
	case exp == x87Special && mant<<1 != 0:
		return math.NaN()
	case exp == x87Special:
		v = math.Inf(1)
	case mant != 0:
		v, _ = f.magnitude(exp, mant).Float64()
	}
	if neg {
		v = math.Copysign(v, -1)
	}
	return v
}

// Big returns the exact value; ok is false for NaN and the infinities.
func (f Float80) Big() (v *big.Float, ok bool) {
	exp, mant, neg := f.parts()
	if exp == x87Special {
		return nil, false
	}
	v = f.magnitude(exp, mant)
	if neg {
		v.Neg(v)
	}
	return v, true
}

// magnitude returns the value without its sign. The mantissa has 64 bits with
// the leading one among them, unlike Go's floats.
func (Float80) magnitude(exp int, mant uint64) *big.Float {
	m := new(big.Float).SetPrec(64).SetUint64(mant)
	if exp == 0 {
		exp = 1 // denormals share the smallest exponent
	}
	return m.SetMantExp(m, exp-x87Bias-63)
}

// parts takes the number apart; the padding does not count.
func (f Float80) parts() (exp int, mant uint64, neg bool) {
	for i := 7; i >= 0; i-- {
		mant = mant<<8 | uint64(f[i])
	}
	e := int(f[8]) | int(f[9])<<8
	return e & 0x7fff, mant, e>>15 != 0
}

// putUint64 writes v little-endian.
func putUint64(b []byte, v uint64) {
	for i := range 8 {
		b[i] = byte(v >> (8 * i))
	}
}
