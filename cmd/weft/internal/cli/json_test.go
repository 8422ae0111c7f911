package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/bp"
	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/step"
)

// The form that docs/cli.md promises, as a program would declare it.
type (
	docStep struct {
		Step       *uint64                 `json:"step"`
		Variables  map[string]docVariable  `json:"variables"`
		Attributes map[string]docAttribute `json:"attributes"`
	}
	docVariable struct {
		Type    string     `json:"type"`
		Kind    string     `json:"kind"`
		Shape   []uint64   `json:"shape"`
		Start   []uint64   `json:"start"`
		Count   []uint64   `json:"count"`
		Data    []any      `json:"data"`
		Blocks  []docBlock `json:"blocks"`
		Missing uint64     `json:"missing"`
		Error   string     `json:"error"`
	}
	docBlock struct {
		Rank  int      `json:"rank"`
		Start []uint64 `json:"start"`
		Count []uint64 `json:"count"`
		Data  []any    `json:"data"`
	}
	docAttribute struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	}
)

// Every fixture's JSON has the documented form and the values that the library
// reads.
func TestJSONForm(t *testing.T) {
	for _, name := range bpfixture.Names() {
		t.Run(name, func(t *testing.T) {
			path := bpfixture.Extract(t, name)
			out := run(t.Context(), "dump", "--json", path)
			if out.code != exitOK {
				t.Fatal(out)
			}
			lines := json.NewDecoder(strings.NewReader(out.stdout))
			lines.DisallowUnknownFields()
			lines.UseNumber()
			r, err := bp.Open(t.Context(), path, bp.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for st, err := range r.Steps(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				var doc docStep
				if err := lines.Decode(&doc); err != nil {
					t.Fatal(err)
				}
				compareStep(t, st, doc)
			}
			if _, err := lines.Token(); err != io.EOF {
				t.Errorf("more than one object a step: %v", err)
			}
		})
	}
}

func compareStep(t *testing.T, st *step.Step, doc docStep) {
	t.Helper()
	if doc.Step == nil || *doc.Step != st.Number() || len(doc.Variables) != len(st.Variables()) || len(doc.Attributes) != len(st.Attributes()) {
		t.Fatalf("step %d: %+v", st.Number(), doc)
	}
	for _, v := range st.Variables() {
		d := doc.Variables[v.Name()]
		if d.Type != v.Type().String() || d.Kind != v.Kind().String() || d.Error != "" {
			t.Errorf("%s: %+v", v.Name(), d)
		}
		if v.Type() == step.Struct {
			continue // in the scripts
		}
		if v.Kind() == step.LocalArrayKind {
			for i, b := range v.Blocks() {
				if d.Blocks[i].Rank != b.Rank || fmt.Sprint(d.Blocks[i].Count) != fmt.Sprint(b.Box.Count) {
					t.Errorf("%s: block %d: %+v", v.Name(), i, d.Blocks[i])
				}
				compareData(t, v, step.BlockIndex(i), d.Blocks[i].Data)
			}
			continue
		}
		if fmt.Sprint(d.Shape) != fmt.Sprint(v.Shape()) || fmt.Sprint(d.Count) != fmt.Sprint(v.Shape()) || len(d.Start) != len(d.Shape) {
			t.Errorf("%s: shape %v start %v count %v, want %v", v.Name(), d.Shape, d.Start, d.Count, v.Shape())
		}
		compareData(t, v, step.All, d.Data)
	}
	for _, a := range st.Attributes() {
		d := doc.Attributes[a.Name()]
		if _, array := d.Value.([]any); d.Type != a.Type().String() || array != (a.IsArray() || a.Type() == step.Complex64 || a.Type() == step.Complex128) {
			t.Errorf("attribute %s: %+v", a.Name(), d)
		}
	}
}

func compareData(t *testing.T, v *step.Variable, sel step.Selector, got []any) {
	t.Helper()
	a, err := v.Any(t.Context(), sel)
	if err != nil {
		t.Fatal(err)
	}
	want := exact(a)
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", v.Name(), len(got), len(want))
	}
	for i := range got {
		if fmt.Sprint(got[i]) != want[i] {
			t.Errorf("%s[%d] = %v, want %v", v.Name(), i, got[i], want[i])
		}
	}
}

// exact renders elements by other means than the command does.
func exact(a any) []string {
	var list []string
	add := func(v any) { list = append(list, fmt.Sprint(v)) }
	switch a := a.(type) {
	case []string:
		return a
	case []float32:
		for _, v := range a {
			add(v)
		}
	case []float64:
		for _, v := range a {
			add(v)
		}
	case []complex64:
		for _, v := range a {
			add([]float32{real(v), imag(v)})
		}
	case []complex128:
		for _, v := range a {
			add([]float64{real(v), imag(v)})
		}
	case []step.Float80:
		for _, v := range a {
			add(v.Float64())
		}
	case []step.Char:
		for _, v := range a {
			add(int8(v))
		}
	default:
		text := strings.Trim(fmt.Sprint(a), "[]")
		return strings.Fields(text)
	}
	return list
}

func TestJSONElements(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{int64(math.MinInt64), "-9223372036854775808"},
		{uint64(math.MaxUint64), "18446744073709551615"},
		{math.NaN(), `"NaN"`},
		{math.Inf(1), `"Inf"`},
		{float32(math.Inf(-1)), `"-Inf"`},
		{float32(0.1), "0.1"},
		{0.1, "0.1"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{complex(1, math.NaN()), `[1,"NaN"]`},
		{complex64(complex(0.5, -2)), `[0.5,-2]`},
		{step.NewFloat80(0.125), "0.125"},
		{step.NewFloat80(math.Inf(-1)), `"-Inf"`},
		{step.Char('A'), "65"},
		{step.Char(0xff), "-1"},
		{"a\"b\\c\n\t\x01é\xff", `"a\"b\\c\n\t\u0001é` + "\ufffd" + `"`},
		{[]int8{-1, 2}, "-1,2"},
		{[]string{}, ""},
	} {
		got := appendAny(nil, c.v, jsonStyle, ",")
		if string(got) != c.want {
			t.Errorf("%T %v: %s, want %s", c.v, c.v, got, c.want)
		}
		if list := append(append([]byte("["), got...), ']'); !json.Valid(list) {
			t.Errorf("%s is not JSON", list)
		}
	}
	// 1/3 as a long double has more digits than a double.
	third := step.Float80{0xab, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xfd, 0x3f}
	if got := appendAny(nil, third, jsonStyle, ""); !bytes.HasPrefix(got, []byte("0.33333333333333333")) {
		t.Errorf("1/3: %s", got)
	}
}
