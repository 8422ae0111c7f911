package step

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/wire/bp5"
)

func TestAddFormat(t *testing.T) {
	f, err := bp5.GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(DecoderConfig{})
	id := f.ID()
	id[11]++
	if err := d.AddFormat(id, f.Body()); !errors.Is(err, ErrMetadata) {
		t.Errorf("wrong id: %v", err)
	}
	for range 2 {
		if err := d.AddFormat(f.ID(), f.Body()); err != nil {
			t.Error(err)
		}
	}
	for n := range f.Body() {
		if err := NewDecoder(DecoderConfig{}).AddFormat(f.ID(), f.Body()[:n]); err == nil {
			t.Errorf("accepted %d of %d bytes", n, len(f.Body()))
		}
	}
}

func TestStepErrors(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	meta, _ := s.record([]put{value("x", bp5.GlobalValue, 1.5)})
	fresh := NewDecoder(DecoderConfig{})
	if _, err := fresh.Step(0, [][]byte{meta}, nil, nil); !errors.Is(err, ErrMetadata) || !strings.Contains(err.Error(), "rank 0") {
		t.Errorf("unknown format: %v", err)
	}
	if err := fresh.AddAttributes(meta); !errors.Is(err, ErrMetadata) {
		t.Errorf("unknown format: %v", err)
	}
	if err := s.dec.AddAttributes(meta); err == nil {
		t.Error("metadata taken as attributes")
	}
	for n := 1; n < len(meta); n++ {
		if _, err := s.dec.Step(0, [][]byte{meta[:n]}, nil, nil); err == nil {
			t.Errorf("accepted %d of %d bytes", n, len(meta))
		}
	}
	st, err := s.dec.Step(7, [][]byte{nil, append(slices.Clone(meta), 0, 0, 0, 0, 0, 0, 0), {}}, nil, nil)
	if err != nil || st.Ranks() != 3 || st.Number() != 7 || st.MetadataBytes() != len(meta)+7 {
		t.Errorf("%v, %+v", err, st)
	}
	if err := st.End(); err != nil {
		t.Error(err)
	}
}

// Ranks with different formats, that put different variables.
func TestRanksWithDifferentFormats(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	st := s.step(0,
		[]put{value("b", bp5.LocalValue, int64(10)), value("zz", bp5.GlobalValue, 1.0)},
		nil,
		[]put{value("a", bp5.GlobalValue, 2.0), value("b", bp5.LocalValue, int64(30)), value("zz", bp5.GlobalValue, 3.0), value("s", bp5.LocalValue, "text")})
	var names []string
	for _, v := range st.Variables() {
		names = append(names, v.Name())
	}
	if !slices.Equal(names, []string{"a", "b", "s", "zz"}) {
		t.Errorf("variables %q", names)
	}
	b := lookup[int64](t, st, "b")
	var missing uint64
	got, err := b.Get(t.Context(), Selection{Missing: &missing}, []int64{-1, -1, -1})
	if err != nil || !slices.Equal(got, []int64{10, -1, 30}) || missing != 1 {
		t.Errorf("b = %v, %v, %d missing", got, err, missing)
	}
	if got, err := b.Get(t.Context(), Box{[]uint64{1}, []uint64{2}}, nil); err != nil || !slices.Equal(got, []int64{0, 30}) {
		t.Errorf("part of b = %v, %v", got, err)
	}
	if got, err := b.Get(t.Context(), BlockIndex(1), nil); err != nil || !slices.Equal(got, []int64{30}) {
		t.Errorf("block 1 of b = %v, %v", got, err)
	}
	if _, err := b.Get(t.Context(), BlockIndex(2), nil); !errors.Is(err, ErrSelection) {
		t.Errorf("block 2 of b: %v", err)
	}
	if _, err := b.Value(t.Context()); !errors.Is(err, ErrSelection) {
		t.Errorf("value of b: %v", err)
	}
	if lo, hi, ok := b.Bounds(); !ok || lo != int64(10) || hi != int64(30) {
		t.Errorf("bounds %v %v %v", lo, hi, ok)
	}
	if blocks := b.Blocks(); len(blocks) != 2 || blocks[1].Rank != 2 || !blocks[1].Box.Equal(Box{[]uint64{2}, []uint64{1}}) {
		t.Errorf("blocks %+v", blocks)
	}
	if got, err := lookup[string](t, st, "s").Get(t.Context(), All, nil); err != nil || !slices.Equal(got, []string{"", "", "text"}) {
		t.Errorf("s = %q, %v", got, err)
	}
	check(t, st, "zz", 1.0)
	if raw, err := b.ReadBlockRaw(t.Context(), 1); err != nil || raw[0] != 30 {
		t.Errorf("raw %v, %v", raw, err)
	}
}

// What is wrong with one variable does not harm the others.
func TestBadVariables(t *testing.T) {
	meta := func(m bp5.ArrayMeta) *bp5.ArrayMeta { return &m }
	arr := arrayDesc[float64]("x", bp5.GlobalArray)
	joined := arr
	joined.Kind = bp5.JoinedArray
	const top = ^uint64(0)
	one := func(shape, count, offset uint64, loc uint64) *bp5.ArrayMeta {
		return meta(bp5.ArrayMeta{Dims: 1, Blocks: 1, Shape: []uint64{shape}, Count: []uint64{count}, Offset: []uint64{offset}, Location: []uint64{loc}})
	}
	for _, tc := range []struct {
		name  string
		puts  [][]put
		wants error
	}{
		{"other kind on rank 1", [][]put{{value("x", bp5.GlobalValue, 1.0)}, {value("x", bp5.LocalValue, 1.0)}}, ErrMetadata},
		{"other type on rank 1", [][]put{{value("x", bp5.GlobalValue, 1.0)}, {value("x", bp5.GlobalValue, int8(1))}}, ErrMetadata},
		{"twice in one record", [][]put{{value("x", bp5.GlobalValue, 1.0), {desc: arr, meta: one(1, 1, 0, 0)}}}, ErrMetadata},
		{"size overflows", [][]put{{{desc: arr, meta: one(top, top, 0, 0)}}}, ErrMetadata},
		{"end overflows", [][]put{{{desc: arr, meta: one(5, 2, top-1, 0)}}}, ErrMetadata},
		{"no shape", [][]put{{{desc: arr, meta: meta(bp5.ArrayMeta{Dims: 1, Blocks: 1, Count: []uint64{1}, Offset: []uint64{0}, Location: []uint64{0}})}}}, ErrMetadata},
		{"no offsets", [][]put{{{desc: arr, meta: meta(bp5.ArrayMeta{Dims: 1, Blocks: 1, Count: []uint64{1}, Shape: []uint64{1}, Location: []uint64{0}})}}}, ErrMetadata},
		{"too many dimensions", [][]put{{{desc: arr, meta: meta(bp5.ArrayMeta{Dims: 33, Blocks: 0, Shape: make([]uint64, 33)})}}}, ErrMetadata},
		{"dimensions differ", [][]put{{array[float64]("x", []uint64{1}, blockOf([]uint64{0}, []uint64{1}, 1.0))}, {array[float64]("x", []uint64{1, 1}, blockOf([]uint64{0, 0}, []uint64{1, 1}, 1.0))}}, ErrMetadata},
		{"nothing joined", [][]put{{{desc: joined, shape: []uint64{4}, blocks: []synthBlock{blockOf(nil, []uint64{1}, 1.0)}}}}, ErrMetadata},
		{"joined twice", [][]put{{{desc: joined, shape: []uint64{JoinedDim, JoinedDim}, blocks: []synthBlock{blockOf(nil, []uint64{1, 1}, 1.0)}}}}, ErrMetadata},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSynth(t, DecoderConfig{})
			tc.puts[0] = append(tc.puts[0], value("y", bp5.GlobalValue, 2.5))
			st := s.step(0, tc.puts...)
			check(t, st, "y", 2.5)
			x, ok := st.Variable("x")
			if !ok {
				t.Fatal("x is not listed")
			}
			if err := x.Err(); !errors.Is(err, tc.wants) {
				t.Errorf("Err: %v", err)
			}
			if x.Shape() != nil || x.Blocks() != nil || x.NumBlocks() != 0 || x.Dims() != 0 || x.Block(0).Size != 0 || x.DeclaredShape().Dims != nil {
				t.Error("described although it is bad")
			}
			if _, err := x.Any(t.Context(), All); err == nil {
				t.Error("read although it is bad")
			}
			if s.data.calls != 0 {
				t.Error("something was transferred")
			}
			x.Bounds()
		})
	}
}

// Unknown types and derived variables are listed with all that is known.
func TestUnreadableVariables(t *testing.T) {
	expr := base64.StdEncoding.EncodeToString([]byte("x = a + b\x00"))
	derived := bp5.VarDesc{Name: "d", Kind: bp5.GlobalArray, Type: bp5.Double, ElemSize: 8, Expression: expr}
	s := newSynth(t, DecoderConfig{})
	st := s.step(0, []put{
		{desc: derived, meta: &bp5.ArrayMeta{Dims: 1, Blocks: 1, Shape: []uint64{5}, Count: []uint64{5}, Offset: []uint64{0}, Location: []uint64{bp5.NoData}}},
		{desc: bp5.VarDesc{Name: "e", Kind: bp5.GlobalArray, Type: bp5.Double, ElemSize: 8, Expression: expr}, shape: []uint64{1}, blocks: []synthBlock{blockOf([]uint64{0}, []uint64{1}, 1.25)}},
	})
	d := lookup[float64](t, st, "d")
	if d.Expression() != "x = a + b" || !slices.Equal(d.Shape(), []uint64{5}) || d.Err() != nil || d.Block(0).Stored {
		t.Errorf("%q %v %v", d.Expression(), d.Shape(), d.Err())
	}
	if _, err := d.Get(t.Context(), All, nil); !errors.Is(err, ErrNotStored) || !strings.Contains(err.Error(), "a + b") {
		t.Errorf("derived: %v", err)
	}
	if _, err := d.ReadBlockRaw(t.Context(), 0); !errors.Is(err, ErrNotStored) {
		t.Errorf("raw: %v", err)
	}
	if got, err := lookup[float64](t, st, "e").Get(t.Context(), All, nil); err != nil || got[0] != 1.25 {
		t.Errorf("stored derived: %v, %v", got, err)
	}
}

// A shape that cannot be is no reason to allocate, or to crash.
func TestHugeShapes(t *testing.T) {
	for _, shape := range [][]uint64{{1 << 60}, {1 << 40, 1 << 40}, {1 << 33}, {^uint64(0), ^uint64(0), 3}} {
		zero := make([]uint64, len(shape))
		one := slices.Repeat([]uint64{1}, len(shape))
		s := newSynth(t, DecoderConfig{})
		st := s.step(0, []put{array[float64]("x", shape, blockOf(zero, one, 2.5))})
		x := lookup[float64](t, st, "x")
		if x.Err() != nil || !slices.Equal(x.Shape(), shape) {
			t.Errorf("%v: %v, shape %v", shape, x.Err(), x.Shape())
		}
		if _, err := x.Get(t.Context(), All, nil); !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrSelection) {
			t.Errorf("%v: %v", shape, err)
		}
		if _, err := x.Get(t.Context(), All, make([]float64, 3)); !errors.Is(err, ErrShortBuffer) && !errors.Is(err, ErrSelection) {
			t.Errorf("%v: %v", shape, err)
		}
		if got, err := x.Get(t.Context(), Box{zero, one}, nil); err != nil || got[0] != 2.5 {
			t.Errorf("%v: %v, %v", shape, got, err)
		}
	}
	s := newSynth(t, DecoderConfig{MaxAlloc: 15})
	p := array[float64]("x", []uint64{2}, blockOf([]uint64{0}, []uint64{2}, 1.0, 2).null())
	p.desc.Operator = true
	x := lookup[float64](t, s.step(0, []put{p}), "x")
	if _, err := x.Get(t.Context(), Box{[]uint64{0}, []uint64{1}}, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("decompressed block: %v", err)
	}
}

// A compressed block of an impossible stored size is no reason to allocate.
func TestHugeStoredSize(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	p := put{desc: arrayDesc[float64]("x", bp5.GlobalArray)}
	p.desc.Operator = true
	p.meta = &bp5.ArrayMeta{Dims: 1, Blocks: 1, Shape: []uint64{2}, Count: []uint64{2}, Offset: []uint64{0}, Location: []uint64{0}, StoredSize: []uint64{1 << 62}}
	meta, _ := s.record([]put{p})
	const dataSize = 24 + 16 // offset in the record
	binary.LittleEndian.PutUint64(meta[dataSize:], 1<<62)
	st, err := s.dec.Step(0, [][]byte{meta}, &memSource{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := lookup[float64](t, st, "x")
	_, errGet := x.Get(t.Context(), All, nil)
	_, errRaw := x.ReadBlockRaw(t.Context(), 0)
	for _, err := range []error{errGet, errRaw, x.Into(All, make([]float64, 2)).Err()} {
		if !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	}
	binary.LittleEndian.PutUint64(meta[dataSize:], 1<<61)
	if st, err = s.dec.Step(0, [][]byte{meta}, &memSource{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := lookup[float64](t, st, "x").Err(); !errors.Is(err, ErrMetadata) {
		t.Errorf("block beyond the data: %v", err)
	}
}

func TestLookupHelps(t *testing.T) {
	s := newSynth(t, DecoderConfig{})
	st := s.step(0, []put{value("temperature", bp5.GlobalValue, 1.0), value("fields/rho", bp5.GlobalValue, 1.0), value("Px", bp5.GlobalValue, 1.0)})
	for name, want := range map[string]string{"temprature": "temperature", "rho": "fields/rho", "px": "Px", "Temperature": "temperature"} {
		_, err := Lookup[float64](st, name)
		if !errors.Is(err, ErrNoVariable) || !strings.Contains(err.Error(), `"`+want+`"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Lookup[float64](st, "quite different"); !errors.Is(err, ErrNoVariable) || strings.Contains(err.Error(), "is it") {
		t.Error(err)
	}
	if _, err := LookupAttribute(st, "units"); !errors.Is(err, ErrNoAttribute) {
		t.Error(err)
	}
}

// The set of attributes behaves as a map, and older steps keep theirs.
func TestAttrSetAgainstMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	var set attrSet
	want := map[string]*Attribute{}
	type snapshot struct {
		set  attrSet
		want map[string]*Attribute
	}
	var old []snapshot
	for range 300 {
		var list []*Attribute
		for range r.IntN(4) {
			a := &Attribute{bp5.Attr{Name: fmt.Sprintf("a%d", r.IntN(200)), Type: bp5.Int32, Data: []byte{1, 0, 0, 0}}}
			list = append(list, a)
			want[a.Name()] = a
		}
		set = set.with(list)
		old = append(old, snapshot{set, maps.Clone(want)})
	}
	for i, s := range old {
		if len(s.set.layers) > 8 {
			t.Fatalf("%d layers for %d attributes", len(s.set.layers), len(s.want))
		}
		list := s.set.sorted()
		if len(list) != len(s.want) {
			t.Fatalf("snapshot %d: %d attributes, want %d", i, len(list), len(s.want))
		}
		for k, a := range list {
			found, ok := s.set.find(a.Name())
			if s.want[a.Name()] != a || !ok || found != a || k > 0 && list[k-1].Name() >= a.Name() {
				t.Fatalf("snapshot %d: attribute %q", i, a.Name())
			}
		}
	}
	if _, ok := set.find("none"); ok {
		t.Error("found what is not there")
	}
}

func TestAttributesOfAllTypes(t *testing.T) {
	steps := openDataset(t, "main-attrs").decode(t)
	s := steps[0]
	for name, want := range map[string]any{
		"at_int8": int8(42), "at_double": 42.25, "at_cdouble": complex(42.25, -42), "at_char": Char(42), "at_string": "hello attr",
		"at_ldouble": NewFloat80(42.125), "ar_float": []float32{40.5, 41.5, 42.5}, "ar_string": []string{"one", "", "three"},
		"ar_char": []Char{40, 41, 42}, "ar_uint64": []uint64{40, 41, 42}, "ar_len1": []float64{3.5},
	} {
		a, err := LookupAttribute(s, name)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(want, a.Value()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	a, _ := s.Attribute("at_int32")
	if v, err := AttributeValue[int32](a); err != nil || v != 42 {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := AttributeValue[int64](a); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	a, _ = s.Attribute("ar_int32")
	if v, err := AttributeSlice[int32](a); err != nil || !slices.Equal(v, []int32{40, 41, 42}) {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := AttributeValue[int32](a); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	if _, ok := s.Attribute("late"); ok {
		t.Error("step 0 has an attribute of step 1")
	}
	for i, want := range []int32{1, 2} {
		a, _ := steps[i+1].Attribute("late")
		if v, err := AttributeValue[int32](a); err != nil || v != want {
			t.Errorf("step %d: late = %d, %v", i+1, v, err)
		}
	}
}

func TestStructVariables(t *testing.T) {
	for _, name := range []string{"v2.10.2-struct", "main-struct"} {
		for i, s := range openDataset(t, name).decode(t) {
			v, ok := s.Variable("particles")
			if !ok || v.Err() != nil {
				t.Fatalf("%s: %v", name, v.Err())
			}
			want := &StructType{Name: v.StructType().Name, Size: 32, Fields: []StructField{
				{"a", Int8, 0, 1}, {"b", Int32, 4, 4}, {"c", Float64, 24, 1},
			}}
			if diff := cmp.Diff(want, v.StructType()); diff != "" || v.ElemSize() != 32 {
				t.Error(diff)
			}
			raw, err := v.Any(t.Context(), Box{[]uint64{1}, []uint64{2}})
			if err != nil {
				t.Fatal(err)
			}
			b := raw.([]byte)
			if len(b) != 64 || b[0] != byte(i+1) || b[32] != byte(i+2) {
				t.Errorf("%s step %d: % x", name, i, b)
			}
			if c := fromBytes[float64](b[24:32]); c != float64(i)+1.25 {
				t.Errorf("%s step %d: c = %v", name, i, c)
			}
			if n := fromBytes[int32](b[32+12:][:4]); n != int32(100*i+20+2) {
				t.Errorf("%s step %d: b[2] = %v", name, i, n)
			}
		}
	}
}

// The blobs of a real SST writer, both styles of attributes.
func TestSSTBlocks(t *testing.T) {
	for _, folder := range []string{"main-sst-blocks", "main-sst-blocks-onetime"} {
		t.Run(folder, func(t *testing.T) { checkSSTBlocks(t, filepath.Join(bpfixture.Blocks(t), folder)) })
	}
}

func checkSSTBlocks(t *testing.T, dir string) {
	read := func(format string, args ...any) []byte {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf(format, args...)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	dec := NewDecoder(DecoderConfig{})
	for rank := range 2 {
		formats, _, err := bp5.ParseMMD(read("mmd.%d", rank))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range formats {
			if err := dec.AddFormat(f.ID, f.Description); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 3 {
		if rec := read("attr.%d.0", n); len(rec) > 0 {
			if err := dec.AddAttributes(rec); err != nil {
				t.Fatal(err)
			}
		}
		src := &memSource{data: [][]byte{read("data.%d.0", n), read("data.%d.1", n)}}
		st, err := dec.Step(uint64(n), [][]byte{read("md.%d.0", n), read("md.%d.1", n)}, src, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want []float64
		for r := range 2 {
			for i := range 8 {
				want = append(want, float64(1000*n+100*r+i)+0.25)
			}
		}
		if got, err := lookup[float64](t, st, "x").Get(t.Context(), All, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("step %d: x = %v, %v", n, got, err)
		}
		if got, err := lookup[float32](t, st, "j").Get(t.Context(), All, nil); err != nil || !slices.Equal(got, []float32{0, float32(n), 1, float32(n)}) {
			t.Errorf("step %d: j = %v, %v", n, got, err)
		}
		if got, err := lookup[int64](t, st, "lv").Get(t.Context(), All, nil); err != nil || !slices.Equal(got, []int64{int64(100 * n), int64(100*n + 1)}) {
			t.Errorf("step %d: lv = %v, %v", n, got, err)
		}
		if got, err := lookup[int8](t, st, "l").Get(t.Context(), BlockIndex(1), nil); err != nil || !slices.Equal(got, []int8{int8(n), 1, 3}) {
			t.Errorf("step %d: l = %v, %v", n, got, err)
		}
		check(t, st, "s", fmt.Sprintf("st%d", n))
		names := []string{"ad", "ai", "as", "asv", "av"}
		if n > 0 {
			names = append(names, "late")
		}
		var have []string
		for _, a := range st.Attributes() {
			have = append(have, a.Name())
		}
		if !slices.Equal(have, names) {
			t.Errorf("step %d: attributes %q", n, have)
		}
	}
}
