package provutil

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/shmem"
)

// allTypes are the element types.
var allTypes = []provider.DataType{
	provider.Int8, provider.Uint8, provider.Int16, provider.Uint16, provider.Int32, provider.Uint32, provider.Int64,
	provider.Uint64, provider.Float32, provider.Float64, provider.Complex64, provider.Complex128,
}

// encode is numbers as elements of a type.
func encode(t provider.DataType, vs ...int) []byte {
	var b []byte
	ne := binary.NativeEndian
	for _, v := range vs {
		switch t {
		case provider.Int8, provider.Uint8:
			b = append(b, byte(v))
		case provider.Int16, provider.Uint16:
			b = ne.AppendUint16(b, uint16(v))
		case provider.Int32, provider.Uint32:
			b = ne.AppendUint32(b, uint32(v))
		case provider.Int64, provider.Uint64:
			b = ne.AppendUint64(b, uint64(v))
		case provider.Float32:
			b = ne.AppendUint32(b, math.Float32bits(float32(v)))
		case provider.Float64:
			b = ne.AppendUint64(b, math.Float64bits(float64(v)))
		case provider.Complex64:
			b = append(b, shmem.Bytes([]complex64{complex(float32(v), 0)})...)
		case provider.Complex128:
			b = append(b, shmem.Bytes([]complex128{complex(float64(v), 0)})...)
		}
	}
	return b
}

// TestAtomicTable runs each operation on each type, aligned and not, with small numbers that all types have, and compares with
// what is written here.
func TestAtomicTable(t *testing.T) {
	pick := func(c bool, a, b int) int {
		if c {
			return a
		}
		return b
	}
	want := map[provider.AtomicCode]func(t, x, c int) int{
		provider.AtomicMin:      func(t, x, _ int) int { return min(t, x) },
		provider.AtomicMax:      func(t, x, _ int) int { return max(t, x) },
		provider.AtomicSum:      func(t, x, _ int) int { return t + x },
		provider.AtomicProd:     func(t, x, _ int) int { return t * x },
		provider.AtomicLogOr:    func(t, x, _ int) int { return pick(t != 0 || x != 0, 1, 0) },
		provider.AtomicLogAnd:   func(t, x, _ int) int { return pick(t != 0 && x != 0, 1, 0) },
		provider.AtomicLogXor:   func(t, x, _ int) int { return pick((t != 0) != (x != 0), 1, 0) },
		provider.AtomicBitOr:    func(t, x, _ int) int { return t | x },
		provider.AtomicBitAnd:   func(t, x, _ int) int { return t & x },
		provider.AtomicBitXor:   func(t, x, _ int) int { return t ^ x },
		provider.AtomicRead:     func(t, _, _ int) int { return t },
		provider.AtomicWrite:    func(_, x, _ int) int { return x },
		provider.AtomicSwapEq:   func(t, x, c int) int { return pick(t == c, x, t) },
		provider.AtomicSwapNe:   func(t, x, c int) int { return pick(t != c, x, t) },
		provider.AtomicSwapLe:   func(t, x, c int) int { return pick(c <= t, x, t) },
		provider.AtomicSwapLt:   func(t, x, c int) int { return pick(c < t, x, t) },
		provider.AtomicSwapGe:   func(t, x, c int) int { return pick(c >= t, x, t) },
		provider.AtomicSwapGt:   func(t, x, c int) int { return pick(c > t, x, t) },
		provider.AtomicMaskSwap: func(t, x, c int) int { return x&c | t&^c },
	}
	var a Atomics
	valid := 0
	for _, typ := range allTypes {
		for code := provider.AtomicMin; code <= provider.AtomicMaskSwap; code++ {
			if !code.Fits(typ) {
				continue
			}
			valid++
			for _, shift := range []int{0, 1} {
				for v := range 4 * 4 * 4 {
					old, x, c := v%4, v/4%4, v/16
					mem := make([]byte, 128)
					target := mem[shift : shift+3*typ.Size()]
					copy(target, encode(typ, old, x, old))
					result := make([]byte, len(target))
					operand := encode(typ, x, c, x)
					if code == provider.AtomicRead {
						operand = nil
					}
					a.Apply(code, typ, target, operand, encode(typ, c, old, c), result)
					f := want[code]
					if wanted := encode(typ, f(old, x, c), f(x, c, old), f(old, x, c)); !bytes.Equal(target, wanted) {
						t.Fatalf("code %d type %d: t=%d x=%d c=%d: % x, want % x", code, typ, old, x, c, target, wanted)
					}
					if wanted := encode(typ, old, x, old); !bytes.Equal(result, wanted) {
						t.Fatalf("code %d type %d: result % x, want % x", code, typ, result, wanted)
					}
				}
			}
		}
	}
	if valid != 8*19+2*15+2*9 {
		t.Errorf("%d pairs of operation and type", valid)
	}
}

func TestAtomicSigned(t *testing.T) {
	var a Atomics
	mem := encode(provider.Int64, -5)
	a.Apply(provider.AtomicMin, provider.Int64, mem, encode(provider.Int64, 3), nil, nil)
	if !bytes.Equal(mem, encode(provider.Int64, -5)) {
		t.Errorf("% x", mem)
	}
	a.Apply(provider.AtomicMin, provider.Uint64, mem, encode(provider.Int64, 3), nil, nil)
	if !bytes.Equal(mem, encode(provider.Int64, 3)) {
		t.Errorf("% x", mem)
	}
	z := shmem.Bytes([]complex64{complex(1, 2)})
	a.Apply(provider.AtomicProd, provider.Complex64, z, shmem.Bytes([]complex64{complex(3, 4)}), nil, nil)
	if !bytes.Equal(z, shmem.Bytes([]complex64{complex(-5, 10)})) {
		t.Errorf("% x", z)
	}
}

// Elements are updated atomically by many goroutines, with the CPU's instructions and under the lock.
func TestAtomicConcurrent(t *testing.T) {
	for _, typ := range allTypes {
		var a Atomics
		mem := make([]byte, 32)
		const goroutines, each = 4, 25
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				one := encode(typ, 1, 1)
				result := make([]byte, len(one))
				for range each {
					a.Apply(provider.AtomicSum, typ, mem[:2*typ.Size()], one, nil, result)
				}
			})
		}
		wg.Wait()
		if want := encode(typ, goroutines*each, goroutines*each); !bytes.Equal(mem[:len(want)], want) {
			t.Errorf("type %d: % x, want % x", typ, mem[:len(want)], want)
		}
	}
}

// Lengths that do not fit, as a hostile peer may send them, harm nobody.
func TestAtomicShort(t *testing.T) {
	var a Atomics
	mem := make([]byte, 16)
	for _, n := range []int{0, 1, 7, 8, 9, 15} {
		a.Apply(provider.AtomicSwapNe, provider.Int64, mem[:n], make([]byte, n/2), make([]byte, n), make([]byte, n))
		a.Apply(provider.AtomicSum, 99, mem[:n], mem, nil, nil)
		a.Apply(99, provider.Int64, mem[:n], mem, nil, nil)
		a.Apply(provider.AtomicRead, provider.Complex128, mem, nil, nil, make([]byte, n))
	}
	if !bytes.Equal(mem, make([]byte, 16)) {
		t.Errorf("% x", mem)
	}
	if Direct(provider.Int64, mem[1:9]) || !Direct(provider.Int64, mem[:8]) || !Direct(provider.Float32, mem[4:8]) || Direct(provider.Int8, mem) {
		t.Error("direct")
	}
}

func FuzzAtomics(f *testing.F) {
	f.Add(byte(3), byte(7), []byte("0123456789abcdef"), []byte("0123456789abcdef"), []byte("x"), true)
	f.Fuzz(func(t *testing.T, code, typ byte, target, operand, compare []byte, result bool) {
		var a Atomics
		var out []byte
		if result {
			out = make([]byte, len(target))
		}
		before := bytes.Clone(target)
		a.Apply(provider.AtomicCode(code), provider.DataType(typ), target, operand, compare, out)
		if provider.DataType(typ).Size() == 0 && !bytes.Equal(before, target) {
			t.Error("changed by an unknown type")
		}
	})
}

func BenchmarkAtomic(b *testing.B) {
	for _, typ := range []provider.DataType{provider.Int64, provider.Float64, provider.Complex128} {
		b.Run(fmt.Sprint(typ), func(b *testing.B) {
			var a Atomics
			mem, one := make([]byte, 16), encode(typ, 1)
			b.ReportAllocs()
			for b.Loop() {
				a.Apply(provider.AtomicSum, typ, mem[:len(one)], one, nil, nil)
			}
		})
	}
}

// An operation in parts is the operation as a whole, whatever it has besides its operands.
func TestApplyPart(t *testing.T) {
	var a Atomics
	for _, code := range []provider.AtomicCode{provider.AtomicSum, provider.AtomicSwapEq, provider.AtomicRead} {
		whole, parts := []byte{1, 2, 3, 4, 5, 6}, []byte{1, 2, 3, 4, 5, 6}
		operand, compare := []byte{9, 8, 7, 6, 5, 4}, []byte{1, 0, 3, 0, 5, 0}
		if code != provider.AtomicSwapEq {
			compare = nil
		}
		want, got := make([]byte, 6), make([]byte, 6)
		a.Apply(code, provider.Uint8, whole, operand, compare, want)
		for _, p := range [][2]uint64{{4, 6}, {0, 1}, {1, 4}} {
			a.ApplyPart(code, provider.Uint8, parts[p[0]:p[1]], operand, compare, got, p[0])
		}
		if !bytes.Equal(whole, parts) || !bytes.Equal(want, got) {
			t.Errorf("operation %d: %v with results %v, in parts %v with %v", code, whole, want, parts, got)
		}
	}
}
