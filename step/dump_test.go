package step

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// Every dataset that real ADIOS2 wrote reads as real ADIOS2 reads it.
func TestFixturesReadAsADIOS2ReadsThem(t *testing.T) {
	for _, name := range bpfixture.Names() {
		t.Run(name, func(t *testing.T) {
			want := strings.Split(bpfixture.Expected(t, name), "\n")
			got := strings.Split(dump(t, openDataset(t, name).decode(t)), "\n")
			for i := range max(len(want), len(got)) {
				g, w := line(got, i), line(want, i)
				if g != w {
					t.Fatalf("line %d:\n got %s\nwant %s", i+1, g, w)
				}
			}
		})
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// dumper writes what testdata/src/dump.cpp of package bpfixture prints.
type dumper struct {
	t testing.TB
	strings.Builder
}

func dump(t testing.TB, steps []*Step) string {
	t.Helper()
	d := &dumper{t: t}
	for _, s := range steps {
		for _, v := range s.Variables() {
			if v.Type() != Struct { // which the C++ program cannot print
				d.variable(s, v)
			}
		}
		fmt.Fprintf(d, "step %d attributes\n", s.Number())
		for _, a := range s.Attributes() {
			kind := " value"
			if a.IsArray() {
				kind = " array"
			}
			fmt.Fprintf(d, " attr %s type %v%s", a.Name(), a.Type(), kind)
			d.elements(a.slice())
			d.WriteByte('\n')
		}
	}
	return d.String()
}

func (d *dumper) variable(s *Step, v *Variable) {
	if err := v.Err(); err != nil {
		d.t.Error(err)
		return
	}
	fmt.Fprintf(d, "step %d var %s type %v", s.Number(), v.Name(), v.Type())
	switch {
	case v.Kind() == GlobalValueKind:
		d.WriteString(" value")
		d.read(v, All)
		d.WriteByte('\n')
		return
	case v.Kind() == LocalArrayKind:
		d.WriteString(" local\n")
	default:
		d.array(v)
	}
	for i, b := range v.Blocks() {
		fmt.Fprintf(d, " block %d writer %d start %s count %s", i, b.Rank, brackets(b.Box.Start), brackets(b.Box.Count))
		d.bounds(v.Type(), b)
		if v.Kind() == LocalArrayKind {
			d.WriteString(" data")
			d.read(v, BlockIndex(i))
		}
		d.WriteByte('\n')
	}
}

func (d *dumper) array(v *Variable) {
	shape := v.Shape()
	fmt.Fprintf(d, " shape %s\n all", brackets(shape))
	d.read(v, All)
	d.WriteByte('\n')
	var inner Box
	for _, n := range shape {
		inner.Start, inner.Count = append(inner.Start, n/3), append(inner.Count, max(1, n/2))
	}
	if inner.Within(shape) == nil && len(shape) > 0 {
		fmt.Fprintf(d, " sel %s %s", brackets(inner.Start), brackets(inner.Count))
		d.read(v, inner)
		d.WriteByte('\n')
	}
}

func (d *dumper) read(v *Variable, sel Selector) {
	a, err := v.Any(d.t.Context(), sel)
	if err != nil {
		d.t.Error(err)
		return
	}
	d.elements(a)
}

// bounds shows statistics with the two conventions of real readers that the
// README of package bpfixture describes.
func (d *dumper) bounds(t Type, b Block) {
	if !t.Ordered() {
		return
	}
	lo, hi, ok := b.Stats.Bounds()
	if !ok {
		hi, lo = extremes(t)
	} else if Less(hi, lo) {
		lo, hi = hi, lo
	}
	fmt.Fprintf(d, " min %s max %s", text(lo), text(hi))
}

// extremes returns the lowest and the largest finite value.
func extremes(t Type) (lo, hi any) {
	switch t {
	case Int8:
		return int8(math.MinInt8), int8(math.MaxInt8)
	case Int16:
		return int16(math.MinInt16), int16(math.MaxInt16)
	case Int32:
		return int32(math.MinInt32), int32(math.MaxInt32)
	case Int64:
		return int64(math.MinInt64), int64(math.MaxInt64)
	case Uint8:
		return uint8(0), uint8(math.MaxUint8)
	case Uint16:
		return uint16(0), uint16(math.MaxUint16)
	case Uint32:
		return uint32(0), uint32(math.MaxUint32)
	case Uint64:
		return uint64(0), uint64(math.MaxUint64)
	case Float32:
		return float32(-math.MaxFloat32), float32(math.MaxFloat32)
	case Float64:
		return -math.MaxFloat64, math.MaxFloat64
	}
	return math.Inf(-1), math.Inf(1)
}

func (d *dumper) elements(list any) {
	switch list := list.(type) {
	case []int8:
		each(d, list)
	case []int16:
		each(d, list)
	case []int32:
		each(d, list)
	case []int64:
		each(d, list)
	case []uint8:
		each(d, list)
	case []uint16:
		each(d, list)
	case []uint32:
		each(d, list)
	case []uint64:
		each(d, list)
	case []float32:
		each(d, list)
	case []float64:
		each(d, list)
	case []Float80:
		each(d, list)
	case []complex64:
		each(d, list)
	case []complex128:
		each(d, list)
	case []Char:
		each(d, list)
	case []string:
		each(d, list)
	default:
		d.t.Errorf("elements of %T", list)
	}
}

func each[T any](d *dumper, list []T) {
	for _, v := range list {
		d.WriteByte(' ')
		d.WriteString(text(v))
	}
}

func text(v any) string {
	float := func(f float64) string {
		if math.IsInf(f, 0) {
			return map[bool]string{true: "inf", false: "-inf"}[f > 0]
		}
		return strconv.FormatFloat(f, 'g', 17, 64)
	}
	float = trimmed(float)
	switch v := v.(type) {
	case float32:
		return float(float64(v))
	case float64:
		return float(v)
	case Float80:
		return float(v.Float64())
	case complex64:
		return "(" + float(float64(real(v))) + "," + float(float64(imag(v))) + ")"
	case complex128:
		return "(" + float(real(v)) + "," + float(imag(v)) + ")"
	case string:
		return `"` + v + `"`
	}
	return fmt.Sprint(v)
}

// trimmed drops the zeros at the end that C's %g leaves out.
func trimmed(format func(float64) string) func(float64) string {
	return func(f float64) string {
		s := format(f)
		m, e, ok := strings.Cut(s, "e")
		if strings.Contains(m, ".") {
			m = strings.TrimRight(strings.TrimRight(m, "0"), ".")
		}
		if ok {
			m += "e" + e
		}
		return m
	}
}

func brackets(dims []uint64) string {
	s := make([]string, len(dims))
	for i, d := range dims {
		s[i] = strconv.FormatUint(d, 10)
	}
	return "[" + strings.Join(s, ",") + "]"
}
