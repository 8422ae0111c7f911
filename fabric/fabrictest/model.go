package fabrictest

import (
	"encoding/binary"
	"math"

	"github.com/weft-fabric/weft/fabric/provider"
)

// validAtomic says which codes make sense for which types: bits only for integers, no order among
// complex numbers.
func validAtomic(c provider.AtomicCode, t provider.DataType) bool {
	integer, complex := t <= provider.Uint64, t >= provider.Complex64
	switch c {
	case provider.AtomicBitOr, provider.AtomicBitAnd, provider.AtomicBitXor, provider.AtomicMaskSwap:
		return integer
	case provider.AtomicMin, provider.AtomicMax, provider.AtomicSwapLe, provider.AtomicSwapLt, provider.AtomicSwapGe, provider.AtomicSwapGt:
		return !complex
	}
	return true
}

// number is an element: exact in one of the three.
type number struct {
	i uint64 // integers, sign-extended
	f float64
	c complex128
}

// load reads an element.
func load(t provider.DataType, b []byte) number {
	o := binary.NativeEndian
	switch t {
	case provider.Int8:
		return number{i: uint64(int64(int8(b[0])))}
	case provider.Uint8:
		return number{i: uint64(b[0])}
	case provider.Int16:
		return number{i: uint64(int64(int16(o.Uint16(b))))}
	case provider.Uint16:
		return number{i: uint64(o.Uint16(b))}
	case provider.Int32:
		return number{i: uint64(int64(int32(o.Uint32(b))))}
	case provider.Uint32:
		return number{i: uint64(o.Uint32(b))}
	case provider.Int64, provider.Uint64:
		return number{i: o.Uint64(b)}
	case provider.Float32:
		return number{f: float64(math.Float32frombits(o.Uint32(b)))}
	case provider.Float64:
		return number{f: math.Float64frombits(o.Uint64(b))}
	case provider.Complex64:
		return number{c: complex(float64(math.Float32frombits(o.Uint32(b))), float64(math.Float32frombits(o.Uint32(b[4:]))))}
	default:
		return number{c: complex(math.Float64frombits(o.Uint64(b)), math.Float64frombits(o.Uint64(b[8:])))}
	}
}

// store writes an element.
func store(t provider.DataType, b []byte, n number) {
	o := binary.NativeEndian
	switch t {
	case provider.Int8, provider.Uint8:
		b[0] = byte(n.i)
	case provider.Int16, provider.Uint16:
		o.PutUint16(b, uint16(n.i))
	case provider.Int32, provider.Uint32:
		o.PutUint32(b, uint32(n.i))
	case provider.Int64, provider.Uint64:
		o.PutUint64(b, n.i)
	case provider.Float32:
		o.PutUint32(b, math.Float32bits(float32(n.f)))
	case provider.Float64:
		o.PutUint64(b, math.Float64bits(n.f))
	case provider.Complex64:
		o.PutUint32(b, math.Float32bits(float32(real(n.c))))
		o.PutUint32(b[4:], math.Float32bits(float32(imag(n.c))))
	default:
		o.PutUint64(b, math.Float64bits(real(n.c)))
		o.PutUint64(b[8:], math.Float64bits(imag(n.c)))
	}
}

// signed says whether the type is a signed integer.
func signed(t provider.DataType) bool {
	return t == provider.Int8 || t == provider.Int16 || t == provider.Int32 || t == provider.Int64
}

// less orders two elements that are not complex.
func less(t provider.DataType, a, b number) bool {
	switch {
	case signed(t):
		return int64(a.i) < int64(b.i)
	case t <= provider.Uint64:
		return a.i < b.i
	}
	return a.f < b.f
}

// truth is a number as 0 or 1 of its type.
func truth(t provider.DataType, yes bool) number {
	switch {
	case !yes:
		return number{}
	case t <= provider.Uint64:
		return number{i: 1}
	case t <= provider.Float64:
		return number{f: 1}
	}
	return number{c: 1}
}

// model does to the element at dst what the code says, with operand and comparand.
func model(code provider.AtomicCode, typ provider.DataType, dst, operand, comparand []byte) {
	t, x, c := load(typ, dst), load(typ, operand), load(typ, comparand)
	zero := number{}
	switch code {
	case provider.AtomicMin:
		if less(typ, x, t) {
			t = x
		}
	case provider.AtomicMax:
		if less(typ, t, x) {
			t = x
		}
	case provider.AtomicSum:
		t = number{t.i + x.i, t.f + x.f, t.c + x.c}
	case provider.AtomicProd:
		t = number{t.i * x.i, t.f * x.f, t.c * x.c}
	case provider.AtomicLogOr:
		t = truth(typ, t != zero || x != zero)
	case provider.AtomicLogAnd:
		t = truth(typ, t != zero && x != zero)
	case provider.AtomicLogXor:
		t = truth(typ, (t != zero) != (x != zero))
	case provider.AtomicBitOr:
		t.i |= x.i
	case provider.AtomicBitAnd:
		t.i &= x.i
	case provider.AtomicBitXor:
		t.i ^= x.i
	case provider.AtomicRead:
		return
	case provider.AtomicMaskSwap:
		t.i = x.i&c.i | t.i&^c.i
	default:
		if swaps(code, typ, t, c) {
			t = x
		}
	}
	store(typ, dst, t)
}

// swaps says whether the operand is stored.
func swaps(code provider.AtomicCode, typ provider.DataType, t, c number) bool {
	switch code {
	case provider.AtomicWrite:
		return true
	case provider.AtomicSwapEq:
		return t == c
	case provider.AtomicSwapNe:
		return t != c
	case provider.AtomicSwapLe:
		return !less(typ, t, c)
	case provider.AtomicSwapLt:
		return less(typ, c, t)
	case provider.AtomicSwapGe:
		return !less(typ, c, t)
	case provider.AtomicSwapGt:
		return less(typ, t, c)
	}
	return false
}
