package zoo

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Vars(1) {
		if seen[v.Name] {
			t.Errorf("two variables are called %q", v.Name)
		}
		seen[v.Name] = true
	}
	for _, a := range Attributes(2) {
		if seen[a.Name] {
			t.Errorf("two things are called %q", a.Name)
		}
		seen[a.Name] = true
	}
}

// TestCoverage holds the table to what it promises: every type in every kind.
func TestCoverage(t *testing.T) {
	have := map[[2]string]bool{}
	for _, v := range Vars(1) {
		have[[2]string{v.Type, v.Kind}] = true
	}
	for _, typ := range types {
		for _, kind := range []string{GlobalValue, LocalValue, GlobalArray, LocalArray} {
			if typ.name == "char" && (kind == GlobalValue || kind == LocalValue) {
				continue // comes back as int8_t
			}
			if !have[[2]string{typ.name, kind}] {
				t.Errorf("no %s of %s", kind, typ.name)
			}
		}
	}
	if !have[[2]string{"string", GlobalValue}] || !have[[2]string{"double", JoinedArray}] {
		t.Error("no string value or no joined array")
	}
}

// TestLayouts checks every variable in many steps: blocks in rank order, inside
// the shape, not overlapping, with as much data as they count.
func TestLayouts(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 7} {
		for _, v := range Vars(ranks) {
			for step := range 8 {
				checkLayout(t, v, step, ranks)
			}
		}
	}
}

func checkLayout(t *testing.T, v Var, step, ranks int) {
	t.Helper()
	shape, blocks, last := v.Shape(step, ranks), v.Blocks(step, ranks), 0
	for _, b := range blocks {
		if b.Rank < last || b.Rank >= ranks {
			t.Fatalf("%s step %d of %d ranks: block of rank %d after %d", v.Name, step, ranks, b.Rank, last)
		}
		last = b.Rank
		for d := range b.Start {
			if b.Start[d]+b.Count[d] > shape[d] {
				t.Fatalf("%s step %d of %d ranks: block %v+%v leaves %v", v.Name, step, ranks, b.Start, b.Count, shape)
			}
		}
		if got := len(jsonList(b.Data)); got != product(b.Count) {
			t.Fatalf("%s step %d: %d elements in a block of %v", v.Name, step, got, b.Count)
		}
	}
	if len(blocks) == 0 || v.Kind == LocalArray || v.Kind == GlobalValue {
		return
	}
	whole, data, present := v.Expect(step, ranks)
	if !present || len(jsonList(data)) != product(whole) {
		t.Fatalf("%s step %d of %d ranks: %d elements in %v", v.Name, step, ranks, len(jsonList(data)), whole)
	}
}

// TestValues pins the formulas: literal values, also written down in zoo.py's
// terms (the first element of the only rank in step 0 has number 1).
func TestValues(t *testing.T) {
	want := []struct {
		name string
		data any
	}{
		{"value/i8", []int8{-98}},                   // 0x9E
		{"value/u8", []uint8{0x9E}},                 //
		{"value/i16", []int16{-25033}},              // 0x9E37
		{"value/u64", []uint64{spread}},             //
		{"value/i64", []int64{-0x61c8864680b583eb}}, //
		{"value/f32", []float32{-1.5}},
		{"value/f64", []float64{-1.25}},
		{"value/ld", []float64{-1.125}},
		{"value/c64", []complex64{1.5 - 1i}},
		{"value/c128", []complex128{1.25 - 1i}},
		{"value/str", []string{"n=1 é"}},
		{"array/f64", []float64{-1.25, 2.25, -3.25, 4.25, -5.25}},
	}
	for _, w := range want {
		_, got, present := Expect(w.name, 0, 1)
		if diff := cmp.Diff(w.data, got); diff != "" || !present {
			t.Errorf("%s (present %v): %s", w.name, present, diff)
		}
	}
}

func TestExpectShapes(t *testing.T) {
	tests := []struct {
		name        string
		step, ranks int
		shape       []uint64
		data        any
		present     bool
	}{
		{"local/f64", 0, 2, []uint64{2}, []float64{-1.25, -513.25}, true},
		{"shape/holes", 0, 2, []uint64{10}, []float64{-1.25, 2.25, -3.25, 4.25, -5.25, 0, 0, -641.25, 642.25, -643.25}, true},
		{"shape/empty", 0, 1, []uint64{0}, []float32{}, true},
		{"shape/empty", 1, 2, []uint64{2}, []float32{-4097.5, 4098.5}, true},
		{"joined/columns", 0, 1, []uint64{2, 3}, []complex64{
			1.5 - 1i, 129.5 - 129i, 130.5 - 130i, 2.5 - 2i, 131.5 - 131i, 132.5 - 132i,
		}, true},
		{"odd/array", 2, 3, nil, nil, false},
		{"blocks/some", 0, 1, nil, nil, false},
		{"blocks/some", 1, 1, nil, nil, true},
		{"shape/blocks", 0, 1, []uint64{6}, firstInt32(1, 2, 129, 130, 257, 258), true},
	}
	for _, tt := range tests {
		shape, data, present := Expect(tt.name, tt.step, tt.ranks)
		got, want := []any{shape, data, present}, []any{tt.shape, tt.data, tt.present}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s step %d of %d ranks:\n%s", tt.name, tt.step, tt.ranks, diff)
		}
	}
}

func firstInt32(numbers ...int64) []int32 {
	var out []int32
	for _, n := range numbers {
		out = append(out, int32(uint64(n)*spread>>32))
	}
	return out
}

func TestWeftReadsOnlyWithRanks(t *testing.T) {
	marked := func(ranks int) bool {
		return slices.ContainsFunc(Vars(ranks), func(v Var) bool { return v.WeftReads })
	}
	if marked(1) || !marked(2) {
		t.Error("WeftReads must be set for more than one rank only")
	}
}

func TestRankBlocks(t *testing.T) {
	v, _ := Lookup("blocks/some")
	for _, b := range v.RankBlocks(1, 3, 1) {
		if b.Rank != 1 {
			t.Errorf("block of rank %d among those of rank 1", b.Rank)
		}
	}
	if n := len(v.RankBlocks(1, 3, 1)); n != 2 {
		t.Errorf("%d blocks, must be 2", n)
	}
}

func TestAttributes(t *testing.T) {
	find := func(from Source, step int, name string) any {
		for _, a := range AttributesFrom(from, step) {
			if a.Name == name {
				return a.Value
			}
		}
		return nil
	}
	tests := []struct {
		from Source
		step int
		name string
		want any
	}{
		{Weft, 0, "late/i32", nil},
		{Weft, 1, "late/i32", []int32{1}},
		{Weft, 1, "changed/i32", []int32{1}},
		{Weft, 2, "changed/i32", []int32{2}},
		{Weft, 2, "changed/str", []string{"after"}},
		{Weft, 0, "attrs/str", []string{"one", "", "three é"}},
		{ADIOS2File, 0, "attrs/str", []string{"one", "", "three é"}},
		{ADIOS2Stream, 0, "attrs/str", []string{""}},
		{ADIOS2Stream, 0, "attr/c64", nil},
		{ADIOS2File, 0, "attr/c64", []complex64{42.5 - 42i}},
		{ADIOS2File, 0, "attr/i8", nil},
		{Weft, 0, "attrs/one", []float64{3.5}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, find(tt.from, tt.step, tt.name)); diff != "" {
			t.Errorf("source %d step %d %s: %s", tt.from, tt.step, tt.name, diff)
		}
	}
}

// TestJSON compares the rendering of one variable of each form with literal
// text.
func TestJSON(t *testing.T) {
	tree := ExpectJSON(1, 2, Weft)
	variables, attributes := tree["variables"].(map[string]any), tree["attributes"].(map[string]any)
	tests := []struct {
		got  any
		want string
	}{
		{tree["step"], `1`},
		{variables["value/f64"], `{"count":[],"data":[-4097.25],"kind":"global value","shape":[],"start":[],"type":"double"}`},
		{variables["value/str"], `{"count":[],"data":["n=4097 é"],"kind":"global value","shape":[],"start":[],"type":"string"}`},
		{variables["local/f32"], `{"count":[2],"data":[-4097.5,-4609.5],"kind":"local value","shape":[2],"start":[0],"type":"float"}`},
		{variables["blocks/zero"], `{"blocks":[` +
			`{"count":[2],"data":[-4097.25,4098.25],"rank":0},{"count":[3],"data":[-4225.25,4226.25,-4227.25],"rank":0},` +
			`{"count":[0],"data":[],"rank":1},{"count":[3],"data":[-4737.25,4738.25,-4739.25],"rank":1}],"kind":"local array","type":"double"}`},
		{variables["special/f64"], `{"count":[8],"data":["NaN","Inf","-Inf",-0,5e-324,1.7976931348623157e+308,0.1,-1e-09],` +
			`"kind":"global array","shape":[8],"start":[0],"type":"double"}`},
		{attributes["attr/c128"], `{"type":"double complex","value":[42.25,-42]}`},
		{attributes["attrs/c64"], `{"type":"float complex","value":[[40.5,-40],[41.5,-41],[42.5,-42]]}`},
		{attributes["attrs/none"], `{"type":"double","value":[]}`},
		{attributes["attr/u64"], `{"type":"uint64_t","value":` + jsonElement(values("uint64_t", 42, 1).([]uint64)[0]).(json.Number).String() + `}`},
	}
	for _, tt := range tests {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		if err := enc.Encode(tt.got); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(b.String()); got != tt.want {
			t.Errorf("is   %s\nmust %s", got, tt.want)
		}
	}
}

func line0(t *testing.T, change func(tree map[string]any)) []byte {
	t.Helper()
	tree := ExpectJSON(0, 2, Weft)
	if change != nil {
		change(tree)
	}
	b, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func variable(tree map[string]any, name string) map[string]any {
	return tree["variables"].(map[string]any)[name].(map[string]any)
}

func TestCheckAcceptsItself(t *testing.T) {
	step, err := Check{Ranks: 2}.Line(line0(t, nil))
	if err != nil || step != 0 {
		t.Fatalf("step %d, error %v", step, err)
	}
	// Other texts of the same numbers.
	_, err = Check{Ranks: 2}.Line(line0(t, func(tree map[string]any) {
		variable(tree, "value/f64")["data"] = []any{json.Number("-0.125e1")}
		variable(tree, "special/f32")["data"].([]any)[6] = json.Number("0.10000000149011612")
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckFinds changes one thing at a time and wants to hear about it.
func TestCheckFinds(t *testing.T) {
	tests := []struct {
		name   string
		change func(tree map[string]any)
		want   string
	}{
		{"element", func(tr map[string]any) { variable(tr, "array/i64")["data"].([]any)[3] = json.Number("5") },
			`variable "array/i64": data[3] is 5, must be`},
		{"integer rounded", func(tr map[string]any) {
			variable(tr, "value/u64")["data"].([]any)[0] = json.Number("11400714819323198000")
		}, `variable "value/u64": data[0] is 11400714819323198000, must be 11400714819323198485`},
		{"sign of zero", func(tr map[string]any) { variable(tr, "special/f64")["data"].([]any)[3] = json.Number("0") },
			`variable "special/f64": data[3] is 0, must be -0`},
		{"NaN", func(tr map[string]any) { variable(tr, "special/f64")["data"].([]any)[0] = json.Number("0") },
			`data[0] is 0, must be NaN`},
		{"imaginary part", func(tr map[string]any) {
			variable(tr, "value/c64")["data"].([]any)[0].([]any)[1] = json.Number("1")
		}, `variable "value/c64": data[0][1] is 1, must be -1`},
		{"shape", func(tr map[string]any) { variable(tr, "array/i8")["shape"] = []any{json.Number("9")} },
			`variable "array/i8": shape[0] is 9, must be 10`},
		{"type", func(tr map[string]any) { variable(tr, "array/i8")["type"] = "char" }, `type is char, must be int8_t`},
		{"kind", func(tr map[string]any) { variable(tr, "local/i8")["kind"] = GlobalArray },
			`kind is global array, must be local value`},
		{"short data", func(tr map[string]any) { variable(tr, "array/i8")["data"] = []any{} }, `data is [], must be`},
		{"missing variable", func(tr map[string]any) { delete(tr["variables"].(map[string]any), "value/i8") },
			`variable "value/i8" is missing`},
		{"extra variable", func(tr map[string]any) { tr["variables"].(map[string]any)["odd/value"] = map[string]any{} },
			`variable "odd/value" must not be there`},
		{"block rank", func(tr map[string]any) {
			variable(tr, "blocks/zero")["blocks"].([]any)[2].(map[string]any)["rank"] = json.Number("0")
		}, `variable "blocks/zero": blocks[2].rank is 0, must be 1`},
		{"attribute", func(tr map[string]any) {
			tr["attributes"].(map[string]any)["attr/str"].(map[string]any)["value"] = "hello"
		}, `attribute "attr/str": value is hello, must be hello é`},
		{"single for array", func(tr map[string]any) {
			tr["attributes"].(map[string]any)["attrs/one"].(map[string]any)["value"] = json.Number("3.5")
		}, `attribute "attrs/one": value is 3.5, must be [3.5]`},
		{"late attribute early", func(tr map[string]any) { tr["attributes"].(map[string]any)["late/i32"] = 1 },
			`attribute "late/i32" must not be there`},
		{"no variables", func(tr map[string]any) { delete(tr, "variables") }, `no variables, but a <nil>`},
		{"extra key", func(tr map[string]any) { variable(tr, "value/i8")["blocks"] = []any{} },
			`variable "value/i8": blocks must not be there`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Check{Ranks: 2}.Line(line0(t, tt.change))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v\nmust contain %s", err, tt.want)
			}
		})
	}
}

func TestCheckOptions(t *testing.T) {
	adios := func() map[string]any { return ExpectJSON(1, 2, ADIOS2Stream) }
	part := adios()
	part["attributes"] = map[string]any{}
	tests := []struct {
		name  string
		check Check
		tree  map[string]any
		ok    bool
	}{
		{"adios2 writer", Check{Ranks: 2, From: ADIOS2Stream}, adios(), true},
		{"strict", Check{Ranks: 2}, adios(), false},
		{"adios2 reader must leave out", Check{Ranks: 2, From: ADIOS2Stream, ADIOS2Reader: true}, adios(), false},
		{"late", Check{Ranks: 2, From: ADIOS2Stream, AttributesMayMiss: true}, part, true},
		{"not late", Check{Ranks: 2, From: ADIOS2Stream}, part, false},
		{"no attributes", Check{Ranks: 2, From: ADIOS2Stream, NoAttributes: true}, part, true},
	}
	for _, tt := range tests {
		if _, err := tt.check.Step(tt.tree); (err == nil) != tt.ok {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
}

func TestCheckPrefixes(t *testing.T) {
	tree := ExpectJSON(0, 1, Weft)
	for name := range tree["variables"].(map[string]any) {
		if !strings.HasPrefix(name, "value/") {
			delete(tree["variables"].(map[string]any), name)
		}
	}
	if _, err := (Check{Prefixes: []string{"value/"}}).Step(tree); err != nil {
		t.Error(err)
	}
}

func TestCheckBadLines(t *testing.T) {
	for _, line := range []string{"", "null", "{", "[]", `{"step":-1}`, `{"step":"x"}`, `{"step":1.5}`, `{"step":0,"variables":[]}`} {
		if _, err := (Check{}).Line([]byte(line)); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	_, err := Check{}.Line([]byte(`{"step":0,"variables":{},"attributes":{}}`))
	if err == nil || strings.Count(err.Error(), "\n") > maxReports {
		t.Errorf("too long or none: %v", err)
	}
}

func TestUnknownNamesPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"variable": func() { Expect("no such", 0, 1) },
		"type":     func() { values("no such", 0, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for an unknown %s", name)
				}
			}()
			f()
		}()
	}
}

func TestSpecialsAreSpecial(t *testing.T) {
	_, data, _ := Expect("special/f32", 3, 2)
	f := data.([]float32)
	if !math.IsNaN(float64(f[0])) || !math.Signbit(float64(f[3])) || f[4] == 0 || f[5] != math.MaxFloat32 {
		t.Errorf("special/f32 is %v", f)
	}
}
