package bp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/step"
)

// Every dataset reads as ADIOS2 itself reads it: values, sub-boxes, blocks,
// statistics and attributes, step by step.
func TestFixturesReadAsExpected(t *testing.T) {
	for _, name := range bpfixture.Names() {
		t.Run(name, func(t *testing.T) {
			r, err := Open(t.Context(), bpfixture.Extract(t, name), Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var b strings.Builder
			for st, err := range r.Steps(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				expectedStep(t, &b, st)
			}
			if d := cmp.Diff(strings.Split(bpfixture.Expected(t, name), "\n"), strings.Split(b.String(), "\n")); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// Random access gives the same steps, in any order.
func TestStepsInDescendingOrder(t *testing.T) {
	for _, name := range bpfixture.Names() {
		t.Run(name, func(t *testing.T) {
			r, err := Open(t.Context(), bpfixture.Extract(t, name)+"/", Config{MaxFiles: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var text string
			for n := r.NumSteps() - 1; n >= 0; n-- {
				var b strings.Builder
				expectedStep(t, &b, mustStep(t, r, n))
				text = b.String() + text
			}
			if d := cmp.Diff(strings.Split(bpfixture.Expected(t, name), "\n"), strings.Split(text, "\n")); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// expectedStep writes a step in the form of the expected texts: "Expected
// text" in bpfixture's testdata/README.md.
func expectedStep(t *testing.T, b *strings.Builder, st *step.Step) {
	t.Helper()
	for _, v := range st.Variables() {
		if v.Type() == step.Struct {
			continue // the program that made the texts cannot print them
		}
		fmt.Fprintf(b, "step %d var %s type %v", st.Number(), v.Name(), v.Type())
		if v.Kind() == step.GlobalValueKind {
			fmt.Fprintf(b, " value%s\n", elements(t, v, step.All))
			continue
		}
		if v.Kind() == step.LocalArrayKind {
			b.WriteString(" local\n")
		} else {
			expectedArray(t, b, v)
		}
		for _, blk := range v.Blocks() {
			expectedBlock(t, b, v, blk)
		}
	}
	fmt.Fprintf(b, "step %d attributes\n", st.Number())
	for _, a := range st.Attributes() {
		form := "value"
		if a.IsArray() {
			form = "array"
		}
		fmt.Fprintf(b, " attr %s type %v %s%s\n", a.Name(), a.Type(), form, render(a.Value()))
	}
}

func expectedArray(t *testing.T, b *strings.Builder, v *step.Variable) {
	t.Helper()
	fmt.Fprintf(b, " shape %s\n all%s\n", dims(v.Shape()), elements(t, v, step.All))
	n, err := step.Elements(v.Shape())
	ok := err == nil && n > 0
	var box step.Box
	for _, d := range v.Shape() {
		start, count := d/3, max(1, d/2)
		ok = ok && start+count <= d
		box.Start, box.Count = append(box.Start, start), append(box.Count, count)
	}
	if ok {
		fmt.Fprintf(b, " sel %s %s%s\n", dims(box.Start), dims(box.Count), elements(t, v, box))
	}
}

func expectedBlock(t *testing.T, b *strings.Builder, v *step.Variable, blk step.Block) {
	t.Helper()
	fmt.Fprintf(b, " block %d writer %d start %s count %s", blk.Index, blk.Rank, dims(blk.Box.Start), dims(blk.Box.Count))
	if v.Type().Ordered() {
		lo, hi := bounds(v.Type(), blk.Stats)
		fmt.Fprintf(b, " min %s max %s", lo, hi)
	}
	if v.Kind() == step.LocalArrayKind {
		fmt.Fprintf(b, " data%s", elements(t, v, step.BlockIndex(blk.Index)))
	}
	b.WriteByte('\n')
}

// bounds renders statistics as ADIOS2 reports them: without any, the largest
// number is the minimum; else both are widened by both stored numbers.
func bounds(t step.Type, s step.Stats) (lo, hi string) {
	a, b, ok := s.Bounds()
	if !ok {
		lowest, largest := limits(t)
		return largest, lowest
	}
	if number(a) > number(b) {
		a, b = b, a
	}
	return strings.TrimSpace(render(a)), strings.TrimSpace(render(b))
}

func number(v any) float64 {
	if f, ok := v.(step.Float80); ok {
		return f.Float64()
	}
	f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		panic(err)
	}
	return f
}

func limits(t step.Type) (lowest, largest string) {
	switch t {
	case step.Int8:
		return "-128", "127"
	case step.Int16:
		return "-32768", "32767"
	case step.Int32:
		return fmt.Sprint(math.MinInt32), fmt.Sprint(math.MaxInt32)
	case step.Int64:
		return fmt.Sprint(math.MinInt64), fmt.Sprint(math.MaxInt64)
	case step.Uint8:
		return "0", "255"
	case step.Uint16:
		return "0", "65535"
	case step.Uint32:
		return "0", fmt.Sprint(math.MaxUint32)
	case step.Uint64:
		return "0", fmt.Sprint(uint64(math.MaxUint64))
	case step.Float32:
		return float(-math.MaxFloat32), float(math.MaxFloat32)
	}
	return float(-math.MaxFloat64), float(math.MaxFloat64)
}

func elements(t *testing.T, v *step.Variable, sel step.Selector) string {
	t.Helper()
	a, err := v.Any(t.Context(), sel)
	if err != nil {
		t.Fatal(err)
	}
	return render(a)
}

// render writes a value or the elements of a slice, each after a space.
func render(v any) string {
	switch v := v.(type) {
	case string:
		return ` "` + v + `"`
	case []string:
		return each(v)
	case []int8:
		return each(v)
	case []int16:
		return each(v)
	case []int32:
		return each(v)
	case []int64:
		return each(v)
	case []uint8:
		return each(v)
	case []uint16:
		return each(v)
	case []uint32:
		return each(v)
	case []uint64:
		return each(v)
	case []float32:
		return each(v)
	case []float64:
		return each(v)
	case []complex64:
		return each(v)
	case []complex128:
		return each(v)
	case []step.Float80:
		return each(v)
	case []step.Char:
		return each(v)
	case float32:
		return " " + float(float64(v))
	case float64:
		return " " + float(v)
	case step.Float80:
		return " " + float(v.Float64())
	case complex64:
		return render(complex128(v))
	case complex128:
		return " (" + float(real(v)) + "," + float(imag(v)) + ")"
	}
	return fmt.Sprintf(" %d", v)
}

func each[T any](list []T) string {
	var b strings.Builder
	for _, v := range list {
		b.WriteString(render(v))
	}
	return b.String()
}

// float is C's %.17g.
func float(v float64) string {
	s := strconv.FormatFloat(v, 'g', 17, 64)
	mantissa, exp, has := strings.Cut(s, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if has {
		return mantissa + "e" + exp
	}
	return mantissa
}

func dims(d []uint64) string {
	return strings.ReplaceAll(fmt.Sprint(d), " ", ",")
}

// Struct elements are not in the expected texts; their values are in the
// README of the fixtures.
func TestStructs(t *testing.T) {
	for _, name := range []string{"main-struct", "v2.10.2-struct"} {
		r := mustOpen(t, fixture(t, name), Config{})
		for n := range r.NumSteps() {
			v, ok := mustStep(t, r, n).Variable("particles")
			if !ok || v.StructType() == nil || v.StructType().Size != 32 {
				t.Fatalf("%s: step %d: particles: %v", name, n, v)
			}
			b := make([]byte, 3*32)
			if err := v.Read(t.Context(), step.All, b); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if got := int(b[32*i]); got != n+i {
					t.Errorf("%s: step %d: a[%d] = %d, want %d", name, n, i, got, n+i)
				}
			}
		}
	}
}

func TestInfo(t *testing.T) {
	r := mustOpen(t, fixture(t, "main-append-3then2ranks"), Config{})
	want := Info{Path: "mem.bp", Release: "2.12.0", Steps: 4, Writers: 3}
	if got := r.Info(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !mustOpen(t, fixture(t, "v2.10.2-shapes-columnmajor"), Config{}).Info().ColumnMajor {
		t.Error("column-major dataset is not seen as one")
	}
}

// bp5.md §2.4: both numberings of the steps of a variable.
func TestStepsOf(t *testing.T) {
	r := mustOpen(t, fixture(t, "v2.10.2-shapes"), Config{})
	for name, want := range map[string][]int{"oddsteps": {1}, "g2": {0, 1, 2}, "nothere": nil} {
		got, err := r.StepsOf(t.Context(), name)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", name, got, err, want)
		}
	}
}
