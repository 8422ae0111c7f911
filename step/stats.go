package step

import (
	"encoding/binary"
	"math"

	"github.com/weft-fabric/weft/internal/shmem"
)

// Stats holds the smallest and the largest element of a block, as the writer
// recorded them. The zero Stats has none: writers of streams record none by
// default, and there are none for complex numbers, chars, structs and strings.
type Stats struct {
	typ   Type
	bytes []byte // minimum, maximum
}

// Bounds returns minimum and maximum in the Go type of the elements. ok is
// false if there are none. Of a block without elements the minimum is larger
// than the maximum; with NaNs among the elements both mean nothing.
func (s Stats) Bounds() (min, max any, ok bool) {
	if len(s.bytes) == 0 {
		return nil, nil, false
	}
	n := len(s.bytes) / 2
	return scalar(s.typ, s.bytes[:n]), scalar(s.typ, s.bytes[n:]), true
}

// Bytes returns minimum and maximum one after the other in native bytes, nil if
// there are none. They are read-only.
func (s Stats) Bytes() []byte { return s.bytes }

// stats returns the statistics of block i. A value is its own.
func (v *Variable) stats(l *layout, i int) Stats {
	if !v.def.typ.Ordered() {
		return Stats{}
	}
	if v.def.kind.IsValue() {
		b, err := v.value(i)
		if err != nil {
			return Stats{}
		}
		return Stats{v.def.typ, append(append(make([]byte, 0, 2*len(b)), b...), b...)}
	}
	if l.stats == nil || len(l.stats[i]) == 0 {
		return Stats{}
	}
	return Stats{v.def.typ, l.stats[i]}
}

// Bounds returns the smallest and the largest element of all blocks, in the Go
// type of the elements, from the writers' statistics: no data is read. ok is
// false if a block that has elements has none, or if there are no elements.
func (v *Variable) Bounds() (min, max any, ok bool) {
	l, err := v.layout()
	if err != nil || !v.def.typ.Ordered() {
		return nil, nil, false
	}
	for i := range l.blocks {
		if l.dims > 0 && l.rawSize(i, 1) == 0 {
			continue
		}
		lo, hi, has := v.stats(l, i).Bounds()
		if !has {
			return nil, nil, false
		}
		if !ok || Less(lo, min) {
			min = lo
		}
		if !ok || Less(max, hi) {
			max = hi
		}
		ok = true
	}
	return min, max, ok
}

// scalar returns one element in its Go type, nil for types without one.
func scalar(t Type, b []byte) any {
	if t.Size() == 0 || len(b) != t.Size() {
		return nil
	}
	switch le := binary.LittleEndian; t {
	case Int8:
		return int8(b[0])
	case Int16:
		return int16(le.Uint16(b))
	case Int32:
		return int32(le.Uint32(b))
	case Int64:
		return int64(le.Uint64(b))
	case Uint8:
		return b[0]
	case Uint16:
		return le.Uint16(b)
	case Uint32:
		return le.Uint32(b)
	case Uint64:
		return le.Uint64(b)
	case Float32:
		return math.Float32frombits(le.Uint32(b))
	case Float64:
		return math.Float64frombits(le.Uint64(b))
	case LongDouble:
		return Float80(b)
	case Complex64:
		return fromBytes[complex64](b)
	case Complex128:
		return fromBytes[complex128](b)
	case CharType:
		return Char(b[0])
	}
	return nil
}

// fromBytes returns the one element that b holds.
func fromBytes[T Element](b []byte) T {
	var v [1]T
	copy(shmem.Bytes(v[:]), b)
	return v[0]
}

// Less compares two elements of the same ordered type, such as [Variable.Bounds]
// returns. No order with a NaN holds; of other types none does.
func Less(a, b any) bool {
	switch a := a.(type) {
	case int8:
		return a < b.(int8)
	case int16:
		return a < b.(int16)
	case int32:
		return a < b.(int32)
	case int64:
		return a < b.(int64)
	case uint8:
		return a < b.(uint8)
	case uint16:
		return a < b.(uint16)
	case uint32:
		return a < b.(uint32)
	case uint64:
		return a < b.(uint64)
	case float32:
		return a < b.(float32)
	case float64:
		return a < b.(float64)
	case Float80:
		return lessFloat80(a, b.(Float80))
	}
	return false
}

// lessFloat80 is less for a type that Go cannot compare.
func lessFloat80(a, b Float80) bool {
	if a.isNaN() || b.isNaN() {
		return false
	}
	return compareFloat80(a, b) < 0
}
