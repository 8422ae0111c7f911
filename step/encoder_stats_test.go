package step

import (
	"bytes"
	"math"
	"testing"

	"github.com/weft-fabric/weft/internal/shmem"
)

// bounds checks appendMinMax of vs against the wanted extremes.
func bounds[T Element](t *testing.T, name string, vs []T, lo, hi T) {
	t.Helper()
	front := []byte("front")
	got := appendMinMax(bytes.Clone(front), TypeOf[T](), shmem.Bytes(vs))
	want := append(front, shmem.Bytes([]T{lo, hi})...)
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %v has bounds %x, want %x", name, vs, got[5:], want[5:])
	}
}

func TestMinMaxIntegers(t *testing.T) {
	bounds(t, "int8", []int8{3, -128, 127, 0}, -128, 127)
	bounds(t, "int16", []int16{-3, -300}, -300, -3)
	bounds(t, "int32", []int32{7}, 7, 7)
	bounds(t, "int64", []int64{math.MinInt64, 1, math.MaxInt64}, math.MinInt64, math.MaxInt64)
	bounds(t, "uint8", []uint8{200, 100}, 100, 200)
	bounds(t, "uint16", []uint16{0, 65535}, 0, 65535)
	bounds(t, "uint32", []uint32{5, 4, 6}, 4, 6)
	bounds(t, "uint64", []uint64{1 << 63, 1}, 1, 1<<63)
}

// Nothing to compare: the largest finite value, and the lowest.
func TestMinMaxOfNothing(t *testing.T) {
	bounds(t, "int8", []int8{}, 127, -128)
	bounds(t, "int16", []int16{}, math.MaxInt16, math.MinInt16)
	bounds(t, "int32", []int32{}, math.MaxInt32, math.MinInt32)
	bounds(t, "int64", []int64{}, math.MaxInt64, math.MinInt64)
	bounds(t, "uint8", []uint8{}, 255, 0)
	bounds(t, "uint16", []uint16{}, 65535, 0)
	bounds(t, "uint32", []uint32{}, math.MaxUint32, 0)
	bounds(t, "uint64", []uint64{}, math.MaxUint64, 0)
	bounds(t, "float", []float32{}, math.MaxFloat32, -math.MaxFloat32)
	bounds(t, "double", []float64{}, math.MaxFloat64, -math.MaxFloat64)
	bounds(t, "long double", []Float80{}, float80Most, float80Least)
	if v := float80Most.Float64(); !math.IsInf(v, 1) { // beyond float64
		t.Errorf("largest long double is %v", v)
	}
	if b, ok := float80Least.Big(); !ok || b.Sign() >= 0 || b.MantExp(nil) != 16384 {
		t.Errorf("lowest long double is %v, %v", b, ok)
	}
}

func TestMinMaxFloats(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tc := range []struct {
		name   string
		vs     []float64
		lo, hi float64
	}{
		{"one", []float64{2.5}, 2.5, 2.5},
		{"two", []float64{2.5, -1}, -1, 2.5},
		{"odd", []float64{1, 3, 2}, 1, 3},
		{"last is lowest", []float64{1, 3, 2, 5, -9}, -9, 5},
		{"NaN in front", []float64{nan, 3, 2}, 2, 3},
		{"NaN at the end", []float64{4, 3, nan}, 3, 4},
		{"NaN between", []float64{4, nan, 3, nan}, 3, 4},
		{"one NaN", []float64{nan}, math.MaxFloat64, -math.MaxFloat64},
		{"NaNs", []float64{nan, nan, nan}, math.MaxFloat64, -math.MaxFloat64},
		{"infinite", []float64{inf}, inf, inf},
		{"infinite, NaN", []float64{nan, -inf}, -inf, -inf},
		{"both", []float64{inf, 0, -inf}, -inf, inf},
		{"finite extremes", []float64{math.MaxFloat64, -math.MaxFloat64}, -math.MaxFloat64, math.MaxFloat64},
	} {
		bounds(t, tc.name, tc.vs, tc.lo, tc.hi)
		short, long := make([]float32, len(tc.vs)), make([]Float80, len(tc.vs))
		for i, v := range tc.vs {
			short[i], long[i] = float32(v), NewFloat80(v)
		}
		if !math.IsInf(float64(float32(tc.lo)), 0) || math.IsInf(tc.lo, 0) {
			bounds(t, tc.name, short, float32(tc.lo), float32(tc.hi))
		}
		lo, hi := NewFloat80(tc.lo), NewFloat80(tc.hi)
		if tc.lo > tc.hi {
			lo, hi = float80Most, float80Least
		}
		bounds(t, tc.name, long, lo, hi)
	}
}

func TestCompareFloat80(t *testing.T) {
	order := []float64{math.Inf(-1), -1e300, -2, -1.5, -1e-300, 0, 5e-324, 1e-300, 1, 1.5, 2, 1e300, math.Inf(1)}
	for i, a := range order {
		for k, b := range order {
			got := compareFloat80(NewFloat80(a), NewFloat80(b))
			if want := map[bool]int{true: 1, false: 0}[i > k] - map[bool]int{true: 1, false: 0}[i < k]; got != want {
				t.Errorf("compare(%v, %v) = %d, want %d", a, b, got, want)
			}
		}
	}
	if compareFloat80(NewFloat80(math.Copysign(0, -1)), NewFloat80(0)) != 0 {
		t.Error("-0 and 0 differ")
	}
}

// Types without an order have no bounds; memory that is not aligned is no
// obstacle.
func TestMinMaxOthers(t *testing.T) {
	for _, typ := range []Type{Complex64, Complex128, CharType, Struct, String, None} {
		if got := appendMinMax(nil, typ, make([]byte, 64)); got != nil {
			t.Errorf("%v has bounds %x", typ, got)
		}
	}
	b := make([]byte, 17)
	copy(b[1:], shmem.Bytes([]int64{5, -5}))
	if got := appendMinMax(nil, Int64, b[1:]); !bytes.Equal(got, shmem.Bytes([]int64{-5, 5})) {
		t.Errorf("unaligned: %x", got)
	}
}

func BenchmarkMinMaxFloat64(b *testing.B) {
	vs := make([]float64, 1<<20)
	for i := range vs {
		vs[i] = float64(i*7919%1000003) - 5e5
	}
	data := shmem.Bytes(vs)
	b.SetBytes(int64(len(data)))
	var buf [16]byte
	for b.Loop() {
		appendMinMax(buf[:0], Float64, data)
	}
}
