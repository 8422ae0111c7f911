package provutil

import (
	"encoding/binary"
	"math"

	"github.com/weft-fabric/weft/fabric/provider"
)

// element is one atomic operation on one element: x is the operand, c what is compared with.
type element struct {
	code provider.AtomicCode
	t    provider.DataType
	x, c bits128
}

// next is the element after old, and whether it is to be stored.
func (e *element) next(old bits128) (bits128, bool) {
	switch e.t {
	case provider.Int8:
		return whole[int8](e, old)
	case provider.Uint8:
		return whole[uint8](e, old)
	case provider.Int16:
		return whole[int16](e, old)
	case provider.Uint16:
		return whole[uint16](e, old)
	case provider.Int32:
		return whole[int32](e, old)
	case provider.Uint32:
		return whole[uint32](e, old)
	case provider.Int64:
		return whole[int64](e, old)
	case provider.Uint64:
		return whole[uint64](e, old)
	case provider.Float32:
		v, ok := float(e.code, f32(old), f32(e.x), f32(e.c))
		return bits128{lo: uint64(math.Float32bits(v))}, ok
	case provider.Float64:
		v, ok := float(e.code, f64(old), f64(e.x), f64(e.c))
		return bits128{lo: math.Float64bits(v)}, ok
	case provider.Complex64:
		v, ok := complexes(e.code, c64(old), c64(e.x), c64(e.c))
		return c64bits(v), ok
	case provider.Complex128:
		v, ok := complexes(e.code, c128(old), c128(e.x), c128(e.c))
		return bits128{math.Float64bits(real(v)), math.Float64bits(imag(v))}, ok
	}
	return old, false
}

func f32(b bits128) float32     { return math.Float32frombits(uint32(b.lo)) }
func f64(b bits128) float64     { return math.Float64frombits(b.lo) }
func c128(b bits128) complex128 { return complex(f64(b), math.Float64frombits(b.hi)) }

// c64 reads a complex64 out of eight bytes, whose first four are the real part whatever the byte order.
func c64(b bits128) complex64 {
	var m [8]byte
	ne := binary.NativeEndian
	ne.PutUint64(m[:], b.lo)
	return complex(math.Float32frombits(ne.Uint32(m[:])), math.Float32frombits(ne.Uint32(m[4:])))
}

func c64bits(v complex64) bits128 {
	var m [8]byte
	ne := binary.NativeEndian
	ne.PutUint32(m[:], math.Float32bits(real(v)))
	ne.PutUint32(m[4:], math.Float32bits(imag(v)))
	return bits128{lo: ne.Uint64(m[:])}
}

type integer interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64
}

// whole runs the operation on an integer.
func whole[T integer](e *element, old bits128) (bits128, bool) {
	t, x, c := T(old.lo), T(e.x.lo), T(e.c.lo)
	switch e.code {
	case provider.AtomicBitOr:
		t |= x
	case provider.AtomicBitAnd:
		t &= x
	case provider.AtomicBitXor:
		t ^= x
	case provider.AtomicMaskSwap:
		t = x&c | t&^c
	default:
		var ok bool
		if t, ok = ordered(e.code, t, x, c); !ok {
			return old, false
		}
	}
	return bits128{lo: uint64(t)}, true
}

// float runs the operation on a floating-point number.
func float[T float32 | float64](code provider.AtomicCode, t, x, c T) (T, bool) {
	return ordered(code, t, x, c)
}

// ordered runs the operations that need an order. Comparisons with a NaN are false, as everywhere.
func ordered[T integer | float32 | float64](code provider.AtomicCode, t, x, c T) (T, bool) {
	switch code {
	case provider.AtomicMin:
		return x, x < t
	case provider.AtomicMax:
		return x, x > t
	case provider.AtomicSwapLe:
		return x, c <= t
	case provider.AtomicSwapLt:
		return x, c < t
	case provider.AtomicSwapGe:
		return x, c >= t
	case provider.AtomicSwapGt:
		return x, c > t
	}
	return plain(code, t, x, c)
}

// complexes runs the operation on a complex number, which has no order.
func complexes[T complex64 | complex128](code provider.AtomicCode, t, x, c T) (T, bool) {
	return plain(code, t, x, c)
}

// plain runs the operations that every type has.
func plain[T integer | float32 | float64 | complex64 | complex128](code provider.AtomicCode, t, x, c T) (T, bool) {
	switch code {
	case provider.AtomicSum:
		return t + x, true
	case provider.AtomicProd:
		return t * x, true
	case provider.AtomicLogOr:
		return truth[T](t != 0 || x != 0), true
	case provider.AtomicLogAnd:
		return truth[T](t != 0 && x != 0), true
	case provider.AtomicLogXor:
		return truth[T]((t != 0) != (x != 0)), true
	case provider.AtomicWrite:
		return x, true
	case provider.AtomicSwapEq:
		return x, t == c
	case provider.AtomicSwapNe:
		return x, t != c
	}
	return t, false // AtomicRead
}

func truth[T integer | float32 | float64 | complex64 | complex128](b bool) T {
	if b {
		return 1
	}
	return 0
}
