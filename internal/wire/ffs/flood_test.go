package ffs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

// costs runs f and fails if it allocates more than factor times the bytes of
// its input.
func costs(t *testing.T, name string, input, factor int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	used := after.TotalAlloc - before.TotalAlloc
	t.Logf("%s: %d bytes, %.1f times as much allocated, %v", name, input, float64(used)/float64(input), took)
	if used > uint64(factor*input) {
		t.Errorf("%s: %d bytes allocated for %d, more than %d times", name, used, input, factor)
	}
	if took > 20*time.Second {
		t.Errorf("%s: %v for %d bytes", name, took, input)
	}
}

// flat is a struct of n one-byte fields of the given type.
func flat(name string, n int, typ func(i int) string) Struct {
	s := Struct{Name: name, RecordLen: n}
	for i := range n {
		s.Fields = append(s.Fields, Field{Name: fmt.Sprint("f", i), Type: typ(i), Size: 1, Offset: i})
	}
	return s
}

// Descriptions that have as much as they can of one thing: time and memory stay
// in proportion to their length.
func TestFormatFloods(t *testing.T) {
	const n = 20_000
	brackets := strings.Repeat("[1]", maxDims)
	for _, tc := range []struct {
		name    string
		structs []Struct
	}{
		{"fields", []Struct{flat("S", n, func(int) string { return "char" })}},
		{"dimensions", []Struct{flat("S", n, func(int) string { return "char" + brackets })}},
		{"structs in a row", row(maxStructs)},
		{"uses of one struct", append([]Struct{flat("S", n, func(int) string { return "T" })}, flat("T", 1, func(int) string { return "char" }))},
	} {
		f, err := New(tc.structs...)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		costs(t, tc.name, len(f.Body()), 40, func() {
			if _, _, err := Parse(f.Body()); err != nil {
				t.Error(err)
			}
		})
	}
}

// row is structs that each hold the next one in place: as deep as it gets.
func row(n int) []Struct {
	var list []Struct
	for i := range n {
		s := Struct{Name: fmt.Sprint("S", i), RecordLen: 8, Fields: []Field{{Name: "in", Type: fmt.Sprint("S", i+1), Size: 8}}}
		if i == n-1 {
			s.Fields[0].Type = "string"
		}
		list = append(list, s)
	}
	return list
}

// The deepest format there is can be written, read and copied.
func TestDeepestFormat(t *testing.T) {
	f, err := New(row(maxStructs)...)
	if err != nil {
		t.Fatal(err)
	}
	b := f.NewRecord()
	for at, i := b, 1; i < maxStructs; i++ {
		kid := at.Child(fmt.Sprint("S", i))
		at.SetStructs(0, kid)
		if at = kid; i == maxStructs-1 {
			at.SetText(0, "deep down")
		}
	}
	rec := must(b.Append(nil))
	r, _, err := f.Record(rec)
	if err != nil {
		t.Fatal(err)
	}
	v := r.Top()
	for range maxStructs - 1 {
		if v, err = v.Struct(0); err != nil {
			t.Fatal(err)
		}
	}
	if s, ok, err := v.Text(0); s != "deep down" || !ok || err != nil {
		t.Errorf("%q, %v, %v", s, ok, err)
	}
	if again := encodeCopy(t, r); string(again) != string(rec) {
		t.Error("a copy differs")
	}
}

// In-place arrays of structs of arrays of structs: sizes that a format claims
// multiply, and are refused before anything of that size exists.
func TestNestedSizes(t *testing.T) {
	nest := func(levels, each int) []Struct {
		var list []Struct
		size := 1
		for range levels {
			size *= each
		}
		for i := range levels {
			inner := size / each
			s := Struct{Name: fmt.Sprint("S", i), RecordLen: size, Fields: []Field{{Name: "a", Type: fmt.Sprintf("S%d[%d]", i+1, each), Size: inner}}}
			if i == levels-1 {
				s.Fields[0] = Field{Name: "a", Type: fmt.Sprintf("char[%d]", each), Size: 1}
			}
			list = append(list, s)
			size = inner
		}
		return list
	}
	f, err := New(nest(3, 100)...)
	if err != nil {
		t.Fatal(err)
	}
	id := f.ID()
	if _, _, err := f.Record(id[:]); !errors.Is(err, ErrTruncated) {
		t.Errorf("a record of a million bytes: %v", err)
	}
	for _, levels := range []int{5, 9} { // 10^10 bytes; 10^18
		if _, err := New(nest(levels, 100)...); !errors.Is(err, ErrFormat) {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
}

// Counts and slots at their extremes in a record of every sort of array.
func TestHostileNumbers(t *testing.T) {
	f, err := New(
		Struct{Name: "Top", RecordLen: 56, Fields: []Field{
			{"n", "integer", 8, 0},
			{"m", "unsigned integer", 8, 8},
			{"words", "integer[n][m]", 8, 16},
			{"texts", "string[n]", 8, 24},
			{"rows", "Sub[m]", 8, 32},
			{"refs", "(*Sub)[n]", 8, 40},
			{"text", "string", 8, 48},
		}},
		Struct{Name: "Sub", RecordLen: 8, Fields: []Field{{"s", "string", 8, 0}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	extremes := []uint64{0, 1, 2, 7, 8, 55, 56, 57, 120, 127, 128, 1 << 31, 1 << 32, 1 << 60, 1 << 61, math.MaxInt64, 1 << 63, math.MaxUint64}
	body := make([]byte, 128)
	refused, taken := 0, 0
	for i := range 7 {
		for k := range i + 1 {
			for _, x := range extremes {
				for _, y := range extremes {
					clear(body)
					for j, at := range []uint64{1, 1, 56, 64, 72, 80, 120} {
						binary.LittleEndian.PutUint64(body[8*j:], at)
					}
					binary.LittleEndian.PutUint64(body[8*i:], x)
					binary.LittleEndian.PutUint64(body[8*k:], y)
					r, n, err := f.Record(variant(f, body))
					if err != nil {
						refused++
						if !errors.Is(err, ErrRecord) {
							t.Fatalf("%d and %d set to %d and %d: %v", i, k, x, y, err)
						}
						continue
					}
					taken++
					work := 0
					walk(t, r.Top(), &work, 0)
					if work > 2*(reuse+1)*n {
						t.Fatalf("%d and %d set to %d and %d: %d bytes can be reached", i, k, x, y, work)
					}
				}
			}
		}
	}
	if refused == 0 || taken == 0 {
		t.Errorf("%d refused, %d taken", refused, taken)
	}
}
