package step

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/weft-fabric/weft/internal/shmem"
)

// appendMinMax appends the smallest and the largest element of a block, in
// native bytes. NaNs do not count. A block without anything that counts gets
// the largest finite value as minimum and the lowest as maximum, as ADIOS2
// writes for empty blocks (docs/wire/bp5.md §2.3): wider sets of blocks can then
// be combined without exceptions. t must be ordered.
func appendMinMax(dst []byte, t Type, data []byte) []byte {
	switch t {
	case Int8:
		return appendInts(dst, data, int8(math.MaxInt8), math.MinInt8)
	case Int16:
		return appendInts(dst, data, int16(math.MaxInt16), math.MinInt16)
	case Int32:
		return appendInts(dst, data, int32(math.MaxInt32), math.MinInt32)
	case Int64:
		return appendInts(dst, data, int64(math.MaxInt64), math.MinInt64)
	case Uint8:
		return appendInts(dst, data, uint8(math.MaxUint8), 0)
	case Uint16:
		return appendInts(dst, data, uint16(math.MaxUint16), 0)
	case Uint32:
		return appendInts(dst, data, uint32(math.MaxUint32), 0)
	case Uint64:
		return appendInts(dst, data, uint64(math.MaxUint64), 0)
	case Float32:
		lo, hi := floatBounds(elements[float32](data), math.MaxFloat32)
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(lo))
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(hi))
	case Float64:
		lo, hi := floatBounds(elements[float64](data), math.MaxFloat64)
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(lo))
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(hi))
	case LongDouble:
		lo, hi := float80Bounds(elements[Float80](data))
		return append(append(dst, lo[:]...), hi[:]...)
	}
	return dst
}

// elements returns data as a slice of T, which is data itself: stores align
// what they hand out. If one does not, it is a copy.
func elements[T Element](data []byte) []T {
	if vs, ok := shmem.As[T](data); ok {
		return vs
	}
	vs := make([]T, len(data)/TypeOf[T]().Size())
	copy(shmem.Bytes(vs), data)
	return vs
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// appendInts appends the extremes of integers of one size; most and least are what
// a block without elements gets.
func appendInts[T interface {
	integer
	Element
}](dst, data []byte, most, least T) []byte {
	lo, hi := most, least
	for _, v := range elements[T](data) {
		lo, hi = min(lo, v), max(hi, v)
	}
	pair := [2]T{lo, hi}
	return append(dst, shmem.Bytes(pair[:])...)
}

// floatBounds walks two halves at a time: the chains of comparisons then do not
// wait for each other. Comparisons with NaN are false, so NaNs fall out.
func floatBounds[T float32 | float64](vs []T, most T) (lo, hi T) {
	inf := T(math.Inf(1))
	lo0, lo1, hi0, hi1 := inf, inf, -inf, -inf
	n := len(vs) &^ 1
	for i := 0; i < n; i += 2 {
		a, b := vs[i], vs[i+1]
		if a < lo0 {
			lo0 = a
		}
		if a > hi0 {
			hi0 = a
		}
		if b < lo1 {
			lo1 = b
		}
		if b > hi1 {
			hi1 = b
		}
	}
	if n < len(vs) && vs[n] == vs[n] {
		lo0, hi0 = min(lo0, vs[n]), max(hi0, vs[n])
	}
	lo, hi = min(lo0, lo1), max(hi0, hi1)
	if lo > hi {
		return most, -most // nothing but NaNs
	}
	return lo, hi
}

// Finite extremes of the x87 long double.
var (
	float80Most  = Float80{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x7f}
	float80Least = Float80{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xff}
)

// float80Bounds is floatBounds for a type that Go cannot compare.
func float80Bounds(vs []Float80) (lo, hi Float80) {
	found := false
	for _, v := range vs {
		if v.isNaN() {
			continue
		}
		if !found || compareFloat80(v, lo) < 0 {
			lo = v
		}
		if !found || compareFloat80(v, hi) > 0 {
			hi = v
		}
		found = true
	}
	if !found {
		return float80Most, float80Least
	}
	return lo, hi
}

// isNaN tells NaN from infinity: both have the special exponent, infinity has
// nothing in the mantissa but its leading bit.
func (f Float80) isNaN() bool {
	exp, mant, _ := f.parts()
	return exp == x87Special && mant<<1 != 0
}

// compareFloat80 orders numbers that are not NaN. Exponent and mantissa, which
// has its leading bit in it, order magnitudes as they stand.
func compareFloat80(a, b Float80) int {
	aExp, aMant, aNeg := a.parts()
	bExp, bMant, bNeg := b.parts()
	if aMant == 0 && bMant == 0 && aExp == 0 && bExp == 0 {
		return 0 // -0 and +0
	}
	if aNeg != bNeg {
		if aNeg {
			return -1
		}
		return 1
	}
	c := cmp.Or(cmp.Compare(aExp, bExp), cmp.Compare(aMant, bMant))
	if aNeg {
		return -c
	}
	return c
}
