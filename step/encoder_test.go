package step

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// formatOf finds a format among those that e has sent.
func formatOf(t testing.TB, e *Encoder, id ffs.ID) *ffs.Format {
	t.Helper()
	for _, b := range e.Formats() {
		if b.ID == id {
			f, n, err := ffs.Parse(b.Body)
			if err != nil || n != len(b.Body) || f.ID() != id {
				t.Fatalf("format %v: %d of %d bytes, %v", id, n, len(b.Body), err)
			}
			return f
		}
	}
	t.Fatalf("format %v was not sent", id)
	return nil
}

// emptyStep makes a step of nothing but attributes.
func emptyStep(t testing.TB, e *Encoder) Output {
	t.Helper()
	if err := e.Begin(new(HeapStore)); err != nil {
		t.Fatal(err)
	}
	return end(t, e)
}

func end(t testing.TB, e *Encoder) Output {
	t.Helper()
	out, err := e.End()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func define(t testing.TB, e *Encoder, name string, typ Type, shape Shape) *Definition {
	t.Helper()
	d, err := e.Define(name, typ, shape)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// metadataOf decodes the metadata record of a step.
func metadataOf(t testing.TB, e *Encoder, rec []byte) (*bp5.Schema, *bp5.Metadata) {
	t.Helper()
	id, _ := ffs.RecordID(rec)
	schema, err := bp5.ParseSchema(formatOf(t, e, id))
	if err != nil {
		t.Fatal(err)
	}
	md, err := schema.Metadata(rec)
	if err != nil {
		t.Fatal(err)
	}
	return schema, md
}

// arrayOf returns what the record says of the array of that name.
func arrayOf(t testing.TB, e *Encoder, rec []byte, name string) bp5.ArrayMeta {
	t.Helper()
	schema, md := metadataOf(t, e, rec)
	for i, v := range schema.Vars() {
		if v.Name == name && md.Has(i) {
			a, err := md.Array(i)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
	}
	t.Fatalf("%q was not written", name)
	return bp5.ArrayMeta{}
}

func box(start, count []uint64) Box { return Box{Start: start, Count: count} }

// The blocks that ADIOS2's SST writer made, made again: the same data bytes, and
// records that say the same.
func TestLikeADIOS2Writer(t *testing.T) {
	dir := filepath.Join(bpfixture.Blocks(t), "main-sst-blocks")
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		return b
	}
	for rank := range 2 {
		real := map[ffs.ID]*ffs.Format{}
		entries, _, err := bp5.ParseMMD(read(fmt.Sprintf("mmd.%d", rank)))
		must(t, err)
		for _, entry := range entries {
			f, _, err := ffs.Parse(entry.Description)
			must(t, err)
			real[f.ID()] = f
		}
		e := NewEncoder(EncoderConfig{})
		x := define(t, e, "x", Float64, GlobalArray(8, 2))
		l := define(t, e, "l", Int8, LocalArray(1))
		i := define(t, e, "i", Int32, GlobalValue())
		s := define(t, e, "s", String, GlobalValue())
		lv := define(t, e, "lv", Int64, LocalValue())
		j := define(t, e, "j", Float32, JoinedArray(JoinedDim, 2))
		for st := range 3 {
			var store HeapStore
			must(t, e.Begin(&store))
			vs := make([]float64, 8)
			for k := range vs {
				vs[k] = float64(1000*st+100*rank+k) + 0.25
			}
			must(t, PutSlice(e, l, Box{Count: []uint64{3}}, []int8{int8(st), int8(rank), 3}))
			must(t, PutSlice(e, x, box([]uint64{uint64(4 * rank), 0}, []uint64{4, 2}), vs))
			must(t, PutSlice(e, i, All, []int32{int32(3 * st)}))
			must(t, PutSlice(e, s, All, []string{fmt.Sprint("st", st)}))
			must(t, PutSlice(e, lv, All, []int64{int64(100*st + rank)}))
			must(t, PutSlice(e, j, Box{Count: []uint64{1, 2}}, []float32{float32(rank), float32(st)}))
			out := end(t, e)

			rec := read(fmt.Sprintf("md.%d.%d", st, rank))
			id, _ := ffs.RecordID(rec)
			schema, err := bp5.ParseSchema(real[id])
			must(t, err)
			want, err := schema.Metadata(rec)
			must(t, err)
			mySchema, mine := metadataOf(t, e, out.Metadata)
			if want.DataSize() != out.DataSize || mine.DataSize() != out.DataSize {
				t.Errorf("rank %d step %d: data of %d bytes, record says %d, ADIOS2 %d", rank, st, out.DataSize, mine.DataSize(), want.DataSize())
			}
			data := read(fmt.Sprintf("data.%d.%d", st, rank))
			if got := contents(t, &store, 0, out.DataSize); !bytes.Equal(got, data) {
				t.Errorf("rank %d step %d: data\n%x, ADIOS2's\n%x", rank, st, got, data)
			}
			compareRecords(t, schema, want, mySchema, mine)
		}
	}
}

// compareRecords compares two records variable by variable.
func compareRecords(t *testing.T, ws *bp5.Schema, want *bp5.Metadata, gs *bp5.Schema, got *bp5.Metadata) {
	t.Helper()
	find := func(name string) int {
		for i, v := range gs.Vars() {
			if v.Name == name {
				return i
			}
		}
		t.Fatalf("no variable %q", name)
		return 0
	}
	if len(ws.Vars()) != len(gs.Vars()) {
		t.Errorf("%d variables, want %d", len(gs.Vars()), len(ws.Vars()))
	}
	for i, v := range ws.Vars() {
		k := find(v.Name)
		if diff := cmp.Diff(v, gs.Vars()[k]); diff != "" || want.Has(i) != got.Has(k) {
			t.Errorf("variable %q, written %v %v: %s", v.Name, want.Has(i), got.Has(k), diff)
			continue
		}
		if !want.Has(i) {
			continue
		}
		var a, b any
		var err1, err2 error
		switch {
		case v.Kind.IsArray():
			a, err1 = want.Array(i)
			b, err2 = got.Array(k)
		case v.Type == bp5.String:
			a, err1 = want.Text(i)
			b, err2 = got.Text(k)
		default:
			a, err1 = want.Value(i)
			b, err2 = got.Value(k)
		}
		must(t, errors.Join(err1, err2))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%q: %s", v.Name, diff)
		}
	}
}

// Blocks of several puts and spans: places, order, statistics, alignment.
func TestBlocks(t *testing.T) {
	e := NewEncoder(EncoderConfig{Stats: true})
	g := define(t, e, "g", Int16, GlobalArray(4, 6))
	l := define(t, e, "l", Complex128, LocalArray(1))
	c := define(t, e, "c", CharType, LocalArray(1))
	var store HeapStore
	must(t, e.Begin(&store))
	must(t, PutSlice(e, c, Box{Count: []uint64{3}}, []Char("abc")))
	must(t, PutSlice(e, g, box([]uint64{2, 0}, []uint64{2, 3}), []int16{1, 2, 3, -4, 5, 6}))
	must(t, PutSlice(e, l, Box{Count: []uint64{1}}, []complex128{1i}))
	sp, err := SpanSlice[int16](e, g, box(nil, []uint64{1, 6}))
	must(t, err)
	must(t, PutSlice(e, g, box([]uint64{4, 0}, []uint64{0, 6}), []int16{}))
	must(t, PutSlice(e, g, box([]uint64{1, 5}, []uint64{1, 1}), []int16{77}))
	copy(sp, []int16{10, 20, 30, 40, 50, 60}) // after later puts: it has not moved
	out := end(t, e)

	got := arrayOf(t, e, out.Metadata, "g")
	want := bp5.ArrayMeta{
		Dims: 2, Blocks: 4, Shape: []uint64{4, 6},
		Count:    []uint64{2, 3, 1, 6, 0, 6, 1, 1},
		Offset:   []uint64{2, 0, 0, 0, 4, 0, 1, 5},
		Location: []uint64{4, 32, 44, 44},
		MinMax:   shmem.Bytes([]int16{-4, 6, 10, 60, math.MaxInt16, math.MinInt16, 77, 77}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("g: %s", diff)
	}
	data := contents(t, &store, 0, out.DataSize)
	wantData := append([]byte("abc\x00"), shmem.Bytes([]int16{1, 2, 3, -4, 5, 6})...)
	wantData = append(wantData, shmem.Bytes([]complex128{1i})...)
	wantData = append(wantData, shmem.Bytes([]int16{10, 20, 30, 40, 50, 60, 77, 0})...)
	if !bytes.Equal(data, wantData) {
		t.Errorf("data\n%x, want\n%x", data, wantData)
	}
	// Types without an order have the MM struct, and nothing in it.
	schema, _ := metadataOf(t, e, out.Metadata)
	for _, v := range schema.Vars() {
		if v.MinMax != v.ElemSize {
			t.Errorf("%q: statistics of %d bytes", v.Name, v.MinMax)
		}
	}
	if a := arrayOf(t, e, out.Metadata, "l"); a.MinMax != nil || a.Shape != nil || a.Offset != nil {
		t.Errorf("l: %+v", a)
	}
}

// Large blocks start at cache lines, in the data and in memory.
func TestLargeBlocksAreAligned(t *testing.T) {
	e := NewEncoder(EncoderConfig{})
	b := define(t, e, "b", Uint8, LocalArray(1))
	f := define(t, e, "f", Float64, LocalArray(1))
	ld := define(t, e, "ld", LongDouble, LocalArray(1))
	var store HeapStore
	must(t, e.Begin(&store))
	must(t, PutSlice(e, b, Box{Count: []uint64{1}}, []uint8{1}))
	sp, err := SpanSlice[float64](e, f, Box{Count: []uint64{512}})
	must(t, err)
	must(t, PutSlice(e, b, Box{Count: []uint64{1}}, []uint8{1}))
	must(t, PutSlice(e, ld, Box{Count: []uint64{1}}, make([]Float80, 1)))
	for i := range sp {
		sp[i] = float64(i)
	}
	out := end(t, e)
	if loc := arrayOf(t, e, out.Metadata, "f").Location[0]; loc != 64 {
		t.Errorf("large block at %d", loc)
	}
	if loc := arrayOf(t, e, out.Metadata, "ld").Location[0]; loc%16 != 0 {
		t.Errorf("long double at %d", loc)
	}
	if out.DataSize%16 != 0 || out.DataSize != store.Size() {
		t.Errorf("%d bytes of data, store has %d", out.DataSize, store.Size())
	}
}

// Values of all types; of two puts the last wins.
func TestValues(t *testing.T) {
	e := NewEncoder(EncoderConfig{Stats: true})
	put := func(d *Definition, b byte) {
		t.Helper()
		must(t, e.Put(d, All, bytes.Repeat([]byte{b}, d.Type().Size())))
	}
	var defs []*Definition
	for typ := Int8; typ <= CharType; typ++ {
		if typ != String {
			defs = append(defs, define(t, e, typ.String(), typ, []Shape{GlobalValue(), LocalValue()}[typ%2]))
		}
	}
	text := define(t, e, "text", String, Shape{}) // the zero Shape is a global value
	if text.Shape().Kind != GlobalValueKind {
		t.Errorf("kind %v", text.Shape().Kind)
	}
	var store HeapStore
	must(t, e.Begin(&store))
	for i, d := range defs {
		put(d, 99)
		put(d, byte(i+1))
	}
	must(t, e.PutText(text, "first"))
	must(t, e.PutText(text, ""))
	out := end(t, e)
	schema, md := metadataOf(t, e, out.Metadata)
	for i, d := range defs {
		b, err := md.Value(i)
		if want := bytes.Repeat([]byte{byte(i + 1)}, d.Type().Size()); err != nil || !bytes.Equal(b, want) {
			t.Errorf("%v: %x, %v", d.Type(), b, err)
		}
		if v := schema.Vars()[i]; v.Name != d.Name() || d.Type() != CharType && Type(v.Type) != d.Type() {
			t.Errorf("%v comes back as %q of type %d", d.Type(), v.Name, v.Type)
		}
	}
	if s, err := md.Text(len(defs)); err != nil || s != "" || !md.Has(len(defs)) {
		t.Errorf("text %q, %v, %v", s, md.Has(len(defs)), err)
	}
	if out.DataSize != 0 || store.Size() != 0 {
		t.Errorf("values took %d bytes of data", out.DataSize)
	}
}

// A format is sent once; it is the list of variables in order of the first put.
func TestFormatsGrow(t *testing.T) {
	e := NewEncoder(EncoderConfig{})
	var defs []*Definition
	for i := range 4 {
		defs = append(defs, define(t, e, fmt.Sprint("v", i), Int32, GlobalValue()))
	}
	stepOf := func(put ...int) Output {
		t.Helper()
		must(t, e.Begin(new(HeapStore)))
		for _, i := range put {
			must(t, PutSlice(e, defs[i], All, []int32{int32(i)}))
		}
		return end(t, e)
	}
	names := func(out Output) string {
		schema, md := metadataOf(t, e, out.Metadata)
		var s []string
		for i, v := range schema.Vars() {
			s = append(s, v.Name+map[bool]string{true: "+"}[md.Has(i)])
		}
		return strings.Join(s, " ")
	}
	for i, tc := range []struct {
		put     []int
		formats int
		vars    string
	}{
		{nil, 1, ""},
		{[]int{2, 0}, 1, "v2+ v0+"},
		{[]int{0, 2}, 0, "v2 v0"},
		{[]int{0}, 0, "v2 v0+"},
		{[]int{3, 1, 0}, 1, "v2 v0+ v3+ v1+"},
		{nil, 0, "v2 v0 v3 v1"},
	} {
		out := stepOf(tc.put...)
		if got := names(out); len(out.Formats) != tc.formats || strings.ReplaceAll(got, "+", "") != strings.ReplaceAll(tc.vars, "+", "") {
			t.Errorf("step %d: %d new formats, variables %q; want %d, %q", i, len(out.Formats), got, tc.formats, tc.vars)
		}
		for _, k := range tc.put {
			if !strings.Contains(names(out), fmt.Sprintf("v%d+", k)) {
				t.Errorf("step %d: v%d was put, variables %q", i, k, names(out))
			}
		}
		if got, want := strings.Count(names(out), "+"), len(tc.put); got != want {
			t.Errorf("step %d: %d variables written, want %d", i, got, want)
		}
	}
	if n := len(e.Formats()); n != 3 {
		t.Errorf("%d formats in all", n)
	}
	if first := e.Formats()[0].ID; fmt.Sprintf("%x", first) != "0200002eb807f4459b36b2af" {
		t.Errorf("format of the empty step: %x", first)
	}
}

func TestStructs(t *testing.T) {
	st := &StructType{Name: "particle", Size: 32, Fields: []StructField{
		{Name: "a", Type: Int8, Offset: 0, Count: 1}, {Name: "b", Type: Int32, Offset: 4, Count: 4}, {Name: "c", Type: Float64, Offset: 24, Count: 1},
	}}
	e := NewEncoder(EncoderConfig{Stats: true})
	d, err := e.DefineStruct("particles", st, GlobalArray(3))
	must(t, err)
	odd, err := e.DefineStruct("odd", &StructType{Name: "odd", Size: 12, Fields: st.Fields[:1]}, LocalArray(1))
	must(t, err)
	st.Fields[0].Name = "changed" // the description was copied
	if d.Struct().Fields[0].Name != "a" || d.Type() != Struct {
		t.Errorf("struct %+v", d.Struct())
	}
	var store HeapStore
	must(t, e.Begin(&store))
	must(t, e.Put(odd, Box{Count: []uint64{1}}, bytes.Repeat([]byte{7}, 12)))
	must(t, e.Put(d, All, bytes.Repeat([]byte{9}, 96)))
	sp, err := e.Span(odd, Box{Count: []uint64{1}})
	must(t, err)
	copy(sp, bytes.Repeat([]byte{8}, 12))
	out := end(t, e)
	if len(out.Formats) != 3 {
		t.Fatalf("%d formats", len(out.Formats))
	}
	if id := fmt.Sprintf("%x", out.Formats[1].ID); id != "020000226064c32f44e74c58" {
		t.Errorf("struct format %s, ADIOS2 has another", id)
	}
	schema, _ := metadataOf(t, e, out.Metadata)
	want := []bp5.VarDesc{
		{Name: "odd", Kind: bp5.LocalArray, Type: bp5.Struct, ElemSize: 12, StructID: out.Formats[0].ID},
		{Name: "particles", Kind: bp5.GlobalArray, Type: bp5.Struct, ElemSize: 32, StructID: out.Formats[1].ID},
	}
	if diff := cmp.Diff(want, schema.Vars()); diff != "" {
		t.Errorf("variables: %s", diff)
	}
	if loc := arrayOf(t, e, out.Metadata, "particles").Location; loc[0] != 32 {
		t.Errorf("particles at %d", loc)
	}
	if loc := arrayOf(t, e, out.Metadata, "odd").Location; loc[1] != 132 { // a multiple of 12
		t.Errorf("odd at %d", loc)
	}
	must(t, e.Begin(new(HeapStore)))
	must(t, e.Put(odd, Box{Count: []uint64{0}}, nil))
	if out := end(t, e); len(out.Formats) != 0 {
		t.Errorf("%d formats in the second step", len(out.Formats))
	}
}

func TestSetShape(t *testing.T) {
	e := NewEncoder(EncoderConfig{})
	g := define(t, e, "g", Int8, GlobalArray(2, 3))
	j := define(t, e, "j", Int8, JoinedArray(2, JoinedDim))
	l := define(t, e, "l", Int8, LocalArray(2))
	v := define(t, e, "v", Int8, GlobalValue())
	must(t, g.SetShape(4, 3))
	must(t, e.Begin(new(HeapStore)))
	must(t, PutSlice(e, g, box([]uint64{3, 0}, []uint64{1, 3}), make([]int8, 3)))
	must(t, PutSlice(e, j, Box{Count: []uint64{2, 5}}, make([]int8, 10)))
	must(t, g.SetShape(5, 3)) // grows in the step: readers see the last shape
	for name, err := range map[string]error{
		"block outside": g.SetShape(3, 3),
		"joined block":  j.SetShape(3, JoinedDim),
	} {
		if !errors.Is(err, ErrSelection) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"dimensions":    g.SetShape(5),
		"joined":        g.SetShape(5, JoinedDim),
		"not joined":    j.SetShape(2, 3),
		"local":         l.SetShape(1, 2),
		"value":         v.SetShape(),
		"no dimensions": g.SetShape(),
	} {
		if !errors.Is(err, ErrDefinition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	out := end(t, e)
	if diff := cmp.Diff([]uint64{5, 3}, arrayOf(t, e, out.Metadata, "g").Shape); diff != "" {
		t.Errorf("shape: %s", diff)
	}
	if diff := cmp.Diff([]uint64{2, JoinedDim}, arrayOf(t, e, out.Metadata, "j").Shape); diff != "" {
		t.Errorf("joined shape: %s", diff)
	}
	must(t, g.SetShape(1, 1)) // between steps anything goes
	if diff := cmp.Diff([]uint64{1, 1}, g.Shape().Dims); diff != "" {
		t.Error(diff)
	}
	g.Shape().Dims[0] = 99 // a copy
	if g.Shape().Dims[0] != 1 {
		t.Error("Shape() is not a copy")
	}
}

func TestDefineRefuses(t *testing.T) {
	e := NewEncoder(EncoderConfig{})
	define(t, e, "known", Int8, GlobalValue())
	okStruct := &StructType{Name: "s", Size: 4, Fields: []StructField{{Name: "a", Type: Int32, Count: 1}}}
	def := func(name string, typ Type, shape Shape) error {
		_, err := e.Define(name, typ, shape)
		return err
	}
	defStruct := func(st *StructType, shape Shape) error {
		_, err := e.DefineStruct("new", st, shape)
		return err
	}
	for name, err := range map[string]error{
		"no name":         def("", Int8, GlobalValue()),
		"NUL":             def("a\x00b", Int8, GlobalValue()),
		"long":            def(strings.Repeat("x", 1<<17), Int8, GlobalValue()),
		"no type":         def("new", None, GlobalValue()),
		"unknown type":    def("new", 40, GlobalValue()),
		"struct":          def("new", Struct, GlobalArray(1)),
		"string array":    def("new", String, GlobalArray(1)),
		"no dimensions":   def("new", Int8, GlobalArray()),
		"many dimensions": def("new", Int8, LocalArray(MaxDims+1)),
		"not joined":      def("new", Int8, JoinedArray(1, 2)),
		"kind":            def("new", Int8, Shape{Kind: 9}),
		"value with dims": def("new", Int8, Shape{Dims: []uint64{1}}),
		"again":           def("known", Int8, GlobalValue()),
		"again, other":    def("known", Float64, GlobalArray(3)),
		"nil struct":      defStruct(nil, GlobalArray(1)),
		"struct value":    defStruct(okStruct, GlobalValue()),
		"zero shape":      defStruct(okStruct, Shape{}),
		"empty struct":    defStruct(&StructType{Name: "s", Size: 4}, GlobalArray(1)),
		"overlap": defStruct(&StructType{Name: "s", Size: 8, Fields: []StructField{
			{Name: "a", Type: Int32, Count: 1}, {Name: "b", Type: Int32, Offset: 1, Count: 1}}}, GlobalArray(1)),
		"NUL in struct": defStruct(&StructType{Name: "s\x00", Size: 4, Fields: okStruct.Fields}, GlobalArray(1)),
	} {
		if !errors.Is(err, ErrDefinition) {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, ErrDefined) != strings.HasPrefix(name, "again") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e.Definition("new") != nil || e.Definition("known") == nil {
		t.Error("Definition finds what was refused, or not what was defined")
	}
	define(t, e, "max", Int8, LocalArray(MaxDims))
}

// Every wrong put is refused and leaves no trace in the step.
func TestPutRefuses(t *testing.T) {
	e := NewEncoder(EncoderConfig{Stats: true})
	other := NewEncoder(EncoderConfig{})
	foreign := define(t, other, "g", Int32, GlobalArray(4, 6))
	g := define(t, e, "g", Int32, GlobalArray(4, 6))
	l := define(t, e, "l", Int32, LocalArray(2))
	j := define(t, e, "j", Int32, JoinedArray(JoinedDim, 6))
	v := define(t, e, "v", Int32, GlobalValue())
	s := define(t, e, "s", String, LocalValue())
	big := define(t, e, "big", Float64, LocalArray(2))
	var store HeapStore
	must(t, e.Begin(&store))
	u := func(v ...uint64) []uint64 { return v }
	span := func(d *Definition, b Box) error {
		m, err := e.Span(d, b)
		if err != nil && m != nil {
			t.Error("memory and an error")
		}
		return err
	}
	spanOf := func(m any, err error) error { return err }
	for name, tc := range map[string]struct{ err, want error }{
		"nil":                  {e.Put(nil, All, nil), ErrDefinition},
		"nil text":             {e.PutText(nil, ""), ErrDefinition},
		"nil span":             {span(nil, All), ErrDefinition},
		"nil slice":            {PutSlice(e, nil, All, []int32{1}), ErrDefinition},
		"other encoder":        {e.Put(foreign, All, make([]byte, 96)), ErrDefinition},
		"short":                {e.Put(g, All, make([]byte, 92)), ErrSelection},
		"long":                 {e.Put(g, All, make([]byte, 100)), ErrSelection},
		"outside":              {e.Put(g, box(u(3, 0), u(2, 6)), make([]byte, 48)), ErrSelection},
		"outside, empty":       {e.Put(g, box(u(5, 0), u(0, 6)), nil), ErrSelection},
		"wraps":                {e.Put(g, box(u(math.MaxUint64, 0), u(2, 6)), make([]byte, 48)), ErrSelection},
		"dimensions":           {e.Put(g, box(u(0), u(1)), make([]byte, 4)), ErrSelection},
		"start only":           {e.Put(g, box(u(0, 0), nil), nil), ErrSelection},
		"local, all":           {e.Put(l, All, nil), ErrSelection},
		"local, start":         {e.Put(l, box(u(1, 0), u(1, 1)), make([]byte, 4)), ErrSelection},
		"local, short start":   {e.Put(l, box(u(0), u(1, 1)), make([]byte, 4)), ErrSelection},
		"local, dimensions":    {e.Put(l, Box{Count: u(1)}, make([]byte, 4)), ErrSelection},
		"joined, all":          {e.Put(j, All, nil), ErrSelection},
		"joined, start":        {e.Put(j, box(u(0, 1), u(1, 6)), make([]byte, 24)), ErrSelection},
		"joined, other extent": {e.Put(j, Box{Count: u(1, 5)}, make([]byte, 20)), ErrSelection},
		"huge":                 {span(big, Box{Count: u(1<<33, 1<<33)}), ErrSelection},
		"too large":            {span(big, Box{Count: u(1<<40, 2)}), ErrSelection},
		"value with box":       {e.Put(v, Box{Count: u(1)}, make([]byte, 4)), ErrSelection},
		"value, two":           {e.Put(v, All, make([]byte, 8)), ErrSelection},
		"value, none":          {e.Put(v, All, nil), ErrSelection},
		"value span":           {span(v, All), ErrSelection},
		"string bytes":         {e.Put(s, All, make([]byte, 8)), ErrType},
		"string NUL":           {e.PutText(s, "a\x00"), ErrDefinition},
		"text for int":         {e.PutText(v, "1"), ErrType},
		"text for array":       {e.PutText(g, "1"), ErrType},
		"slice type":           {PutSlice(e, g, All, make([]float32, 24)), ErrType},
		"slice signedness":     {PutSlice(e, g, All, make([]uint32, 24)), ErrType},
		"slice length":         {PutSlice(e, g, All, make([]int32, 23)), ErrSelection},
		"two strings":          {PutSlice(e, s, All, []string{"a", "b"}), ErrSelection},
		"no string":            {PutSlice(e, s, All, []string{}), ErrSelection},
		"string with box":      {PutSlice(e, s, Box{Count: u(1)}, []string{"a"}), ErrSelection},
		"span type":            {spanOf(SpanSlice[int64](e, g, All)), ErrType},
		"span of string":       {spanOf(SpanSlice[string](e, s, All)), ErrSelection},
		"span of nil":          {spanOf(SpanSlice[int32](e, nil, All)), ErrDefinition},
		"span outside":         {spanOf(SpanSlice[int32](e, g, box(u(4, 0), u(1, 6)))), ErrSelection},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.err, tc.want)
		}
	}
	if store.Size() != 0 {
		t.Errorf("refused puts took %d bytes", store.Size())
	}
	out := end(t, e)
	if schema, _ := metadataOf(t, e, out.Metadata); len(schema.Vars()) != 0 {
		t.Errorf("refused puts left variables %v", schema.Vars())
	}
}

// Calls out of order are refused, and the encoder goes on working.
func TestOrderOfCalls(t *testing.T) {
	e := NewEncoder(EncoderConfig{})
	d := define(t, e, "d", Int8, GlobalArray(1))
	s := define(t, e, "s", String, GlobalValue())
	noStep := func() {
		t.Helper()
		_, endErr := e.End()
		_, spanErr := e.Span(d, All)
		for _, err := range []error{endErr, spanErr, e.Put(d, All, []byte{1}), e.PutText(s, ""), PutSlice(e, d, All, []int8{1})} {
			if !errors.Is(err, ErrNoStep) {
				t.Errorf("without a step: %v", err)
			}
		}
	}
	noStep()
	e.Abort()
	noStep()
	if err := e.Begin(nil); err == nil {
		t.Error("Begin(nil)")
	}
	var used HeapStore
	_, _, err := used.Alloc(1, 1)
	must(t, err)
	if err := e.Begin(&used); !errors.Is(err, ErrStepOpen) {
		t.Errorf("a used store: %v", err)
	}
	must(t, e.Begin(new(HeapStore)))
	if err := e.Begin(new(HeapStore)); !errors.Is(err, ErrStepOpen) {
		t.Errorf("Begin twice: %v", err)
	}
	must(t, PutSlice(e, d, All, []int8{1}))
	e.Abort()
	noStep()
	must(t, e.Begin(new(HeapStore)))
	out := end(t, e)
	if _, md := metadataOf(t, e, out.Metadata); md.Has(0) || out.DataSize != 0 {
		t.Error("the aborted step shows in the next one")
	}
	noStep()
}

// An aborted step has sent no formats: the next one does, all of them.
func TestAbortKeepsFormats(t *testing.T) {
	e := NewEncoder(EncoderConfig{Stats: true})
	st := &StructType{Name: "s", Size: 4, Fields: []StructField{{Name: "a", Type: Int32, Count: 1}}}
	d, err := e.DefineStruct("d", st, GlobalArray(1))
	must(t, err)
	f := define(t, e, "f", Float32, LocalArray(1))
	must(t, e.Begin(new(HeapStore)))
	must(t, e.Put(d, All, make([]byte, 4)))
	_, err = e.Span(f, Box{Count: []uint64{3}})
	must(t, err)
	e.Abort()
	if len(e.Formats()) != 0 {
		t.Errorf("%d formats of an aborted step", len(e.Formats()))
	}
	out := emptyStep(t, e)
	if len(out.Formats) != 2 {
		t.Errorf("%d formats after an aborted step", len(out.Formats))
	}
	must(t, e.Begin(new(HeapStore)))
	must(t, PutSlice(e, f, Box{Count: []uint64{1}}, []float32{2}))
	out = end(t, e)
	want := bp5.ArrayMeta{Dims: 1, Blocks: 1, Count: []uint64{1}, Location: []uint64{0}, MinMax: shmem.Bytes([]float32{2, 2})}
	if diff := cmp.Diff(want, arrayOf(t, e, out.Metadata, "f"), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// failingStore has room for some bytes only, and then for nothing.
type failingStore struct {
	HeapStore
	left int
}

func (s *failingStore) Alloc(n, align int) (uint64, []byte, error) {
	if s.left -= n + 1; s.left < 0 {
		return 0, nil, ErrStoreFull
	}
	return s.HeapStore.Alloc(n, align)
}

func TestFullStore(t *testing.T) {
	e := NewEncoder(EncoderConfig{})
	d := define(t, e, "d", Int8, LocalArray(1))
	must(t, e.Begin(&failingStore{left: 25}))
	must(t, e.Put(d, Box{Count: []uint64{10}}, make([]byte, 10)))
	if err := e.Put(d, Box{Count: []uint64{20}}, make([]byte, 20)); !errors.Is(err, ErrStoreFull) {
		t.Errorf("Put: %v", err)
	}
	if _, err := e.End(); !errors.Is(err, ErrStoreFull) {
		t.Errorf("End: %v", err)
	}
	if _, err := e.End(); !errors.Is(err, ErrNoStep) {
		t.Errorf("End after a failed one: %v", err)
	}
	must(t, e.Begin(new(HeapStore)))
	must(t, e.Put(d, Box{Count: []uint64{1}}, []byte{1}))
	out := end(t, e)
	if a := arrayOf(t, e, out.Metadata, "d"); a.Blocks != 1 {
		t.Errorf("%d blocks, those of the failed step too", a.Blocks)
	}
}

func TestMaxBytes(t *testing.T) {
	e := NewEncoder(EncoderConfig{MaxBytes: 64})
	d := define(t, e, "d", Int8, LocalArray(1))
	f := define(t, e, "f", Float64, LocalArray(1))
	must(t, e.Begin(new(HeapStore)))
	must(t, e.Put(d, Box{Count: []uint64{41}}, make([]byte, 41)))
	if err := e.Put(f, Box{Count: []uint64{3}}, make([]byte, 24)); !errors.Is(err, ErrStoreFull) {
		t.Errorf("Put: %v", err)
	}
	if _, err := e.Span(f, Box{Count: []uint64{1 << 30}}); !errors.Is(err, ErrStoreFull) {
		t.Errorf("Span: %v", err)
	}
	must(t, e.Put(f, Box{Count: []uint64{2}}, make([]byte, 16)))
	must(t, e.Put(f, Box{Count: []uint64{0}}, nil))
	if out := end(t, e); out.DataSize != 64 {
		t.Errorf("%d bytes", out.DataSize)
	}
}

// A column-major writer's dimensions are recorded in its own order.
func TestColumnMajor(t *testing.T) {
	e := NewEncoder(EncoderConfig{ColumnMajor: true})
	if !e.Config().ColumnMajor {
		t.Error("Config()")
	}
	d := define(t, e, "d", Int8, GlobalArray(2, 3))
	must(t, e.Begin(new(HeapStore)))
	must(t, PutSlice(e, d, box([]uint64{1, 0}, []uint64{1, 3}), []int8{1, 2, 3}))
	out := end(t, e)
	a := arrayOf(t, e, out.Metadata, "d")
	if diff := cmp.Diff([]uint64{2, 3, 1, 3, 1, 0}, append(append(a.Shape, a.Count...), a.Offset...)); diff != "" {
		t.Error(diff)
	}
}

// Outputs stay as they are while the encoder goes on.
func TestOutputsAreIndependent(t *testing.T) {
	e := NewEncoder(EncoderConfig{Stats: true})
	d := define(t, e, "d", Int32, GlobalArray(4))
	pool := NewHeapPool(0)
	var outs []Output
	var copies [][]byte
	for i := range 3 {
		store := pool.NewStore()
		must(t, e.Begin(store))
		for k := range i + 1 {
			must(t, PutSlice(e, d, box([]uint64{uint64(k)}, []uint64{1}), []int32{int32(10*i + k)}))
		}
		out := end(t, e)
		outs, copies = append(outs, out), append(copies, bytes.Clone(out.Metadata))
		store.Reset()
	}
	for i := range outs {
		if !bytes.Equal(outs[i].Metadata, copies[i]) {
			t.Errorf("record %d changed", i)
		}
	}
}

// A steady writer allocates its record and nothing that grows with the data.
func TestSteadyStateAllocations(t *testing.T) {
	e := NewEncoder(EncoderConfig{Stats: true})
	d := define(t, e, "d", Float64, GlobalArray(1<<20))
	v := define(t, e, "v", Int64, GlobalValue())
	pool := NewHeapPool(0)
	stores := []*HeapStore{pool.NewStore(), pool.NewStore()}
	data := make([]float64, 1<<20)
	value := []int64{1}
	i := 0
	step := func() {
		s := stores[i%2]
		i++
		s.Reset()
		if err := e.Begin(s); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(PutSlice(e, d, All, data), PutSlice(e, v, All, value)); err != nil {
			t.Fatal(err)
		}
		if _, err := e.End(); err != nil {
			t.Fatal(err)
		}
	}
	step()
	step()
	if n := testing.AllocsPerRun(10, step); n > 4 {
		t.Errorf("%v allocations a step", n)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const steps = 10
	for range steps {
		step()
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / steps; n > 8<<10 {
		t.Errorf("%d bytes allocated a step", n)
	}
}

func BenchmarkPut8MiB(b *testing.B) {
	for _, stats := range []bool{false, true} {
		b.Run(fmt.Sprintf("stats=%v", stats), func(b *testing.B) {
			e := NewEncoder(EncoderConfig{Stats: stats})
			d := define(b, e, "d", Float64, GlobalArray(1<<20))
			b.SetBytes(8 << 20)
			putSteps(b, e, make([]float64, 1<<20), d)
		})
	}
}

func BenchmarkSpan8MiB(b *testing.B) {
	e := NewEncoder(EncoderConfig{})
	d := define(b, e, "d", Float64, GlobalArray(1<<20))
	var store HeapStore
	b.ReportAllocs()
	for b.Loop() {
		store.Reset()
		must(b, e.Begin(&store))
		_, err := SpanSlice[float64](e, d, All)
		must(b, err)
		end(b, e)
	}
}

func BenchmarkValueStep(b *testing.B) {
	e := NewEncoder(EncoderConfig{})
	putSteps(b, e, []float64{1}, define(b, e, "d", Float64, GlobalValue()))
}

func BenchmarkEnd10000Variables(b *testing.B) {
	e := NewEncoder(EncoderConfig{})
	var defs []*Definition
	for i := range 10000 {
		defs = append(defs, define(b, e, fmt.Sprint("variable", i), Float64, GlobalArray(4)))
	}
	putSteps(b, e, make([]float64, 4), defs...)
}

// putSteps measures steps in which data is put into each of defs.
func putSteps(b *testing.B, e *Encoder, data []float64, defs ...*Definition) {
	var store HeapStore
	b.ReportAllocs()
	for b.Loop() {
		store.Reset()
		must(b, e.Begin(&store))
		for _, d := range defs {
			must(b, PutSlice(e, d, All, data))
		}
		end(b, e)
	}
}
