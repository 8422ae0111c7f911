package zoo

import "fmt"

// spread times a small number gives numbers that differ in their high bits,
// which are the ones that an integer type takes.
const spread uint64 = 0x9E3779B97F4A7C15

// number is the number behind the first element of a block; element i has i
// more.
func number(step, rank, index int) int64 {
	return int64(4096*step + 512*rank + 128*index + 1)
}

// values returns count values of an ADIOS2 type for the numbers from n on.
func values(typ string, n int64, count int) any {
	switch typ {
	case "int8_t", "char":
		return series(n, count, integer[int8](8))
	case "int16_t":
		return series(n, count, integer[int16](16))
	case "int32_t":
		return series(n, count, integer[int32](32))
	case "int64_t":
		return series(n, count, integer[int64](64))
	case "uint8_t":
		return series(n, count, integer[uint8](8))
	case "uint16_t":
		return series(n, count, integer[uint16](16))
	case "uint32_t":
		return series(n, count, integer[uint32](32))
	case "uint64_t":
		return series(n, count, integer[uint64](64))
	case "float":
		return series(n, count, func(n int64) float32 { return float32(signed(n, 0.5)) })
	case "double":
		return series(n, count, func(n int64) float64 { return signed(n, 0.25) })
	case "long double":
		return series(n, count, func(n int64) float64 { return signed(n, 0.125) })
	case "float complex":
		return series(n, count, func(n int64) complex64 { return complex(float32(n)+0.5, -float32(n)) })
	case "double complex":
		return series(n, count, func(n int64) complex128 { return complex(float64(n)+0.25, -float64(n)) })
	case "string":
		return series(n, count, func(n int64) string { return fmt.Sprintf("n=%d é", n) })
	}
	panic(fmt.Sprintf("zoo: no type %q", typ))
}

func series[T any](n int64, count int, f func(int64) T) []T {
	out := make([]T, count)
	for i := range out {
		out[i] = f(n + int64(i))
	}
	return out
}

func integer[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](bits int) func(int64) T {
	return func(n int64) T { return T(uint64(n) * spread >> (64 - bits)) }
}

// signed makes a real number, negative for odd n.
func signed(n int64, fraction float64) float64 {
	v := float64(n) + fraction
	if n%2 != 0 {
		return -v
	}
	return v
}
