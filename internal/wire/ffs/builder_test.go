package ffs

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// zoo has a field of every kind that the grammar allows.
func zoo(tb testing.TB) *Format {
	tb.Helper()
	f, err := New(
		Struct{Name: "Zoo", RecordLen: 240, Fields: []Field{
			{"i1", "integer", 1, 0}, {"i2", "integer", 2, 2}, {"i4", "integer", 4, 4}, {"i8", "integer", 8, 8},
			{"u1", "unsigned integer", 1, 16}, {"u2", "unsigned", 2, 18}, {"u4", "unsigned integer", 4, 20}, {"u8", "unsigned integer", 8, 24},
			{"f4", "float", 4, 32}, {"f8", "double", 8, 40}, {"f16", "float", 16, 48},
			{"c", "char", 1, 64}, {"e", "enumeration", 4, 68}, {"b", "boolean", 1, 72},
			{"fixed", "integer[3]", 2, 74}, {"s", "string", 8, 80}, {"two", "string[2]", 8, 88},
			{"n", "integer", 8, 104}, {"blob", "char[n]", 1, 112}, {"pairs", "integer[2][n]", 4, 120},
			{"texts", "string[n]", 8, 128}, {"flat", "Flat", 8, 136}, {"flats", "Flat[n]", 8, 144},
			{"full", "Full", 16, 152}, {"fulls", "Full[2]", 16, 168}, {"row", "Full[n]", 16, 200},
			{"one", "*Full", 16, 208}, {"some", "(*Full)[n]", 16, 216}, {"both", "(*Full)[2]", 16, 224},
		}},
		Struct{Name: "Flat", RecordLen: 8, Fields: []Field{{"re", "float", 4, 0}, {"im", "float", 4, 4}}},
		Struct{Name: "Full", RecordLen: 16, Fields: []Field{{"name", "string", 8, 0}, {"id", "integer", 4, 8}}},
	)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func full(b *Builder, name string, id int64) *Builder {
	c := b.Child("Full")
	c.SetText(c.Index("name"), name)
	c.SetInt(c.Index("id"), id)
	return c
}

func fillZoo(f *Format) *Builder {
	b := f.NewRecord()
	for i, v := range []int64{-5, -500, -70000, math.MinInt64, 250, 65000, 4e9, -1} {
		b.SetInt(i, v)
	}
	at := b.Index
	b.SetFloat(at("f4"), 0.5)
	b.SetFloat(at("f8"), -1e300)
	b.SetRaw(at("f16"), bytes.Repeat([]byte{7}, 16))
	b.SetInt(at("c"), -1)
	b.SetInt(at("e"), 3)
	b.SetInt(at("b"), 1)
	b.SetRaw(at("fixed"), []byte{1, 0, 2, 0, 3, 0})
	b.SetText(at("s"), "")
	b.SetTexts(at("two"), []string{"left", "right"})
	b.SetInt(at("n"), 2)
	b.SetRaw(at("blob"), []byte{8, 9})
	b.SetRaw(at("pairs"), bytes.Repeat([]byte{6}, 16))
	b.SetTexts(at("texts"), []string{"été", ""})
	flat := b.Child("Flat")
	flat.SetFloat(0, 1)
	b.SetStructs(at("flat"), flat)
	b.SetStructs(at("flats"), flat, flat)
	b.SetStructs(at("full"), full(b, "a", 1))
	b.SetStructs(at("fulls"), full(b, "b", 2), full(b, "c", 3))
	b.SetStructs(at("row"), full(b, "d", 4), full(b, "e", 5))
	b.SetStructs(at("one"), full(b, "f", 6))
	b.SetStructs(at("some"), nil, full(b, "g", 7))
	b.SetStructs(at("both"), full(b, "h", 8), nil)
	return b
}

func TestZoo(t *testing.T) {
	f := zoo(t)
	b := fillZoo(f)
	rec, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Append(nil) // encoding changes nothing
	if err != nil || !bytes.Equal(rec, again) {
		t.Errorf("encoded twice: %v", err)
	}
	r, n, err := f.Record(rec)
	if err != nil || n != len(rec) {
		t.Fatal(n, err)
	}
	checkEncoded(t, r, rec)

	v := r.Top()
	at := v.Index
	for i, want := range []int64{-5, -500, -70000, math.MinInt64, 250, 65000, 4e9, -1} {
		if got, err := v.Int(i); got != want || err != nil {
			t.Errorf("%s = %d, %v, want %d", v.Field(i).Name, got, err, want)
		}
	}
	for name, want := range map[string]int64{"c": -1, "e": 3, "b": 1, "n": 2} {
		if got, err := v.Int(at(name)); got != want || err != nil {
			t.Errorf("%s = %d, %v, want %d", name, got, err, want)
		}
	}
	for name, want := range map[string]float64{"f4": 0.5, "f8": -1e300} {
		if got, err := v.Float(at(name)); got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", name, got, err, want)
		}
	}
	for name, want := range map[string][]byte{
		"f16": bytes.Repeat([]byte{7}, 16), "fixed": {1, 0, 2, 0, 3, 0}, "blob": {8, 9}, "pairs": bytes.Repeat([]byte{6}, 16),
		"flat": {0, 0, 0x80, 0x3f, 0, 0, 0, 0}, "flats": {0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0},
	} {
		if got, err := v.Raw(at(name)); !bytes.Equal(got, want) || err != nil {
			t.Errorf("%s = % x, %v, want % x", name, got, err, want)
		}
	}
	if s, ok, err := v.Text(at("s")); s != "" || !ok || err != nil {
		t.Errorf("s = %q, %v, %v", s, ok, err)
	}
	for name, want := range map[string][]string{"two": {"left", "right"}, "texts": {"été", ""}} {
		if got, err := v.Texts(at(name)); !cmp.Equal(got, want) || err != nil {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]int{
		"i1": 1, "fixed": 3, "s": 1, "two": 2, "blob": 2, "pairs": 4, "texts": 2, "flat": 1, "fulls": 2, "row": 2, "one": 1, "some": 2, "both": 2,
	} {
		if got, err := v.Count(at(name)); got != want || err != nil {
			t.Errorf("%s has %d elements, %v, want %d", name, got, err, want)
		}
	}
	checkFull(t, v)
}

// checkFull reads the structs of the zoo in the two ways there are.
func checkFull(t *testing.T, v View) {
	t.Helper()
	for name, want := range map[string][]string{
		"full": {"a"}, "fulls": {"b", "c"}, "row": {"d", "e"}, "one": {"f"}, "some": {"NULL", "g"}, "both": {"h", "NULL"},
	} {
		i := v.Index(name)
		list, err := v.Structs(i)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for k, s := range list {
			if one := must(v.At(i, k)); one.IsNil() != s.IsNil() || one.at != s.at {
				t.Errorf("%s: At(%d) and Structs disagree", name, k)
			}
			if s.IsNil() {
				got = append(got, "NULL")
				continue
			}
			text, _, err := s.Text(0)
			if id, idErr := s.Int(1); err != nil || idErr != nil || id != int64(text[0]-'a'+1) {
				t.Errorf("%s: id %d of %q, %v, %v", name, id, text, err, idErr)
			}
			got = append(got, text)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if _, err := v.Struct(i); (err == nil) != (len(want) == 1) {
			t.Errorf("Struct(%s): %v", name, err)
		}
		for _, k := range []int{-1, len(want)} {
			if _, err := v.At(i, k); !errors.Is(err, ErrKind) {
				t.Errorf("At(%s, %d): %v", name, k, err)
			}
		}
	}
}

// An empty record is all zeros and NULLs.
func TestZooEmpty(t *testing.T) {
	f := zoo(t)
	rec, err := f.NewRecord().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := variant(f, make([]byte, 240)); !bytes.Equal(rec, want) {
		t.Errorf("% x", rec)
	}
	r, _, err := f.Record(rec)
	if err != nil {
		t.Fatal(err)
	}
	v := r.Top()
	if s, ok, err := v.Text(v.Index("s")); s != "" || ok || err != nil {
		t.Errorf("s = %q, %v, %v", s, ok, err)
	}
	if p, err := v.Raw(v.Index("blob")); p != nil || err != nil {
		t.Errorf("blob = %v, %v", p, err)
	}
	if l, err := v.Texts(v.Index("texts")); l != nil || err != nil {
		t.Errorf("texts = %v, %v", l, err)
	}
	if l, err := v.Texts(v.Index("two")); !cmp.Equal(l, []string{"", ""}) || err != nil {
		t.Errorf("two = %q, %v", l, err)
	}
	if l, err := v.Structs(v.Index("row")); l != nil || err != nil {
		t.Errorf("row = %v, %v", l, err)
	}
	if one, err := v.Struct(v.Index("one")); !one.IsNil() || err != nil {
		t.Errorf("one = %v, %v", one, err)
	}
	checkEncoded(t, r, rec)
}

// A field that is asked for as what it is not is an error, never a panic; the
// same for setting it.
func TestWrongKind(t *testing.T) {
	f := zoo(t)
	r, _, err := f.Record(must(fillZoo(f).Append(nil)))
	if err != nil {
		t.Fatal(err)
	}
	v := r.Top()
	is := func(i int, names ...string) bool {
		for _, n := range names {
			if v.Field(i).Name == n {
				return true
			}
		}
		return false
	}
	for i := -1; i <= v.NumFields(); i++ {
		integer := i >= 0 && i < 8 || is(i, "c", "e", "b", "n")
		flat := integer || is(i, "f4", "f8", "f16", "fixed", "blob", "pairs", "flat", "flats")
		subs := is(i, "flat", "flats", "full", "fulls", "row", "one", "some", "both")
		for method, tt := range map[string]struct {
			ok   bool
			view func() error
			set  func(b *Builder)
		}{
			"Int":     {integer, func() error { _, err := v.Int(i); return err }, func(b *Builder) { b.SetInt(i, 0) }},
			"Float":   {is(i, "f4", "f8"), func() error { _, err := v.Float(i); return err }, func(b *Builder) { b.SetFloat(i, 0) }},
			"Raw":     {flat, func() error { _, err := v.Raw(i); return err }, func(b *Builder) { b.SetRaw(i, must(v.Raw(i))) }},
			"Text":    {is(i, "s"), func() error { _, _, err := v.Text(i); return err }, func(b *Builder) { b.SetText(i, "") }},
			"TextNil": {is(i, "s"), nil, func(b *Builder) { b.SetTextNil(i) }},
			"Texts":   {is(i, "two", "texts"), func() error { _, err := v.Texts(i); return err }, func(b *Builder) { b.SetTexts(i, nil) }},
			"Structs": {subs, func() error { _, err := v.Structs(i); return err }, func(b *Builder) { b.SetStructs(i) }},
			"At":      {subs, func() error { _, err := v.At(i, 0); return err }, nil},
			"Struct":  {is(i, "flat", "full", "one"), func() error { _, err := v.Struct(i); return err }, nil},
		} {
			if tt.view != nil {
				if err := tt.view(); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrKind) {
					t.Errorf("%s(%d %q): %v", method, i, v.Field(i).Name, err)
				}
			}
			if tt.set == nil || method == "Raw" && !tt.ok {
				continue
			}
			b := f.NewRecord()
			b.SetInt(b.Index("n"), 2)
			tt.set(b)
			if _, err := b.Append(nil); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrKind) {
				t.Errorf("Set%s(%d %q): %v", method, i, v.Field(i).Name, err)
			}
		}
	}
	b := f.NewRecord()
	b.SetRaw(b.Index("s"), make([]byte, 8))
	if _, err := b.Append(nil); !errors.Is(err, ErrKind) {
		t.Errorf("SetRaw of a string: %v", err)
	}
}

func TestNilView(t *testing.T) {
	var v View
	if !v.IsNil() || v.Name() != "" || v.NumFields() != 0 || v.Index("x") != -1 || v.Field(0) != (Field{}) || v.Type(0).Kind != 0 {
		t.Error("the zero View is not a NULL struct")
	}
	for name, err := range map[string]error{
		"Int": second(v.Int(0)), "Float": second(v.Float(0)), "Raw": second(v.Raw(0)), "Texts": second(v.Texts(0)),
		"Structs": second(v.Structs(0)), "Struct": second(v.Struct(0)), "At": second(v.At(0, 0)), "Count": second(v.Count(0)),
	} {
		if !errors.Is(err, ErrNil) {
			t.Errorf("%s: %v, want ErrNil", name, err)
		}
	}
	if _, _, err := v.Text(0); !errors.Is(err, ErrNil) {
		t.Errorf("Text: %v", err)
	}
	var r Record
	if !r.Top().IsNil() || r.Format() != nil {
		t.Error("the zero Record has a struct")
	}
	if _, err := r.Builder(); !errors.Is(err, ErrNil) {
		t.Errorf("Builder: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestSetRefuses(t *testing.T) {
	f := zoo(t)
	other := zoo(t)
	for name, set := range map[string]func(b *Builder, at func(string) int){
		"i1 high":          func(b *Builder, at func(string) int) { b.SetInt(at("i1"), 128) },
		"i1 low":           func(b *Builder, at func(string) int) { b.SetInt(at("i1"), -129) },
		"i2 high":          func(b *Builder, at func(string) int) { b.SetInt(at("i2"), 1<<15) },
		"i4 high":          func(b *Builder, at func(string) int) { b.SetInt(at("i4"), 1<<31) },
		"u1 high":          func(b *Builder, at func(string) int) { b.SetInt(at("u1"), 256) },
		"u1 negative":      func(b *Builder, at func(string) int) { b.SetInt(at("u1"), -1) },
		"u4 high":          func(b *Builder, at func(string) int) { b.SetInt(at("u4"), 1<<32) },
		"char high":        func(b *Builder, at func(string) int) { b.SetInt(at("c"), 256) },
		"char low":         func(b *Builder, at func(string) int) { b.SetInt(at("c"), -129) },
		"boolean":          func(b *Builder, at func(string) int) { b.SetInt(at("b"), -1) },
		"raw short":        func(b *Builder, at func(string) int) { b.SetRaw(at("fixed"), make([]byte, 5)) },
		"raw none":         func(b *Builder, at func(string) int) { b.SetRaw(at("fixed"), nil) },
		"NUL in text":      func(b *Builder, at func(string) int) { b.SetText(at("s"), "a\x00b") },
		"NUL in texts":     func(b *Builder, at func(string) int) { b.SetTexts(at("texts"), []string{"a", "b\x00"}) },
		"texts, count":     func(b *Builder, at func(string) int) { b.SetTexts(at("texts"), []string{"a"}) },
		"texts, constant":  func(b *Builder, at func(string) int) { b.SetTexts(at("two"), []string{"a"}) },
		"blob, count":      func(b *Builder, at func(string) int) { b.SetRaw(at("blob"), make([]byte, 3)) },
		"count negative":   func(b *Builder, at func(string) int) { b.SetInt(at("n"), -1); b.SetRaw(at("blob"), []byte{1}) },
		"count 0":          func(b *Builder, at func(string) int) { b.SetInt(at("n"), 0); b.SetRaw(at("blob"), []byte{1}) },
		"pairs, half one":  func(b *Builder, at func(string) int) { b.SetRaw(at("pairs"), make([]byte, 15)) },
		"pairs, one less":  func(b *Builder, at func(string) int) { b.SetRaw(at("pairs"), make([]byte, 12)) },
		"row, count":       func(b *Builder, at func(string) int) { b.SetStructs(at("row"), full(b, "", 0)) },
		"row, nil":         func(b *Builder, at func(string) int) { b.SetStructs(at("row"), full(b, "", 0), nil) },
		"fulls, count":     func(b *Builder, at func(string) int) { b.SetStructs(at("fulls"), full(b, "", 0)) },
		"one, two":         func(b *Builder, at func(string) int) { b.SetStructs(at("one"), full(b, "", 0), nil) },
		"some, count":      func(b *Builder, at func(string) int) { b.SetStructs(at("some"), nil) },
		"both, count":      func(b *Builder, at func(string) int) { b.SetStructs(at("both"), nil) },
		"other struct":     func(b *Builder, at func(string) int) { b.SetStructs(at("one"), b.Child("Flat")) },
		"other format":     func(b *Builder, at func(string) int) { b.SetStructs(at("one"), full(other.NewRecord(), "", 0)) },
		"error of a child": func(b *Builder, at func(string) int) { b.SetStructs(at("one"), full(b, "\x00", 0)) },
		"in a row":         func(b *Builder, at func(string) int) { b.SetStructs(at("row"), full(b, "", 0), full(b, "\x00", 0)) },
	} {
		b := f.NewRecord()
		b.SetInt(b.Index("n"), 2)
		set(b, b.Index)
		b.SetInt(b.Index("i1"), 1) // what comes later does not hide the error
		front := []byte("front")
		if out, err := b.Append(front); !errors.Is(err, ErrValue) || string(out) != "front" {
			t.Errorf("%s: %q, %v, want ErrValue", name, out, err)
		}
		if _, err := b.Len(); !errors.Is(err, ErrValue) {
			t.Errorf("%s: Len: %v", name, err)
		}
		if _, err := b.Buffers(1); !errors.Is(err, ErrValue) {
			t.Errorf("%s: Buffers: %v", name, err)
		}
	}
}

func TestUnknownChild(t *testing.T) {
	b := zoo(t).NewRecord()
	c := b.Child("Nothing")
	c.SetInt(c.Index("x"), 1)
	c.SetText(0, "x")
	b.SetStructs(b.Index("one"), c)
	if _, err := b.Append(nil); !errors.Is(err, ErrKind) {
		t.Errorf("%v, want ErrKind", err)
	}
	if c.Name() != "Nothing" {
		t.Errorf("Name() = %q", c.Name())
	}
	if _, err := c.Append(nil); !errors.Is(err, ErrKind) {
		t.Errorf("the child itself: %v, want ErrKind", err)
	}
}

// Later values take the place of earlier ones, also of another sort.
func TestSetAgain(t *testing.T) {
	f := zoo(t)
	b := f.NewRecord()
	at := b.Index
	b.SetInt(at("n"), 1)
	b.SetText(at("s"), "first")
	b.SetTextNil(at("s"))
	flat := b.Child("Flat")
	flat.SetFloat(0, 1)
	b.SetStructs(at("flat"), flat)
	b.SetRaw(at("flat"), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	b.SetRaw(at("flats"), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	b.SetStructs(at("flats"), flat)
	b.SetStructs(at("one"), full(b, "x", 1))
	b.SetStructs(at("one"))
	b.SetRaw(at("blob"), []byte{1})
	b.SetRaw(at("blob"), nil)
	r, _, err := f.Record(must(b.Append(nil)))
	if err != nil {
		t.Fatal(err)
	}
	v := r.Top()
	if _, ok, _ := v.Text(at("s")); ok {
		t.Error("s is not NULL")
	}
	if p := must(v.Raw(at("flat"))); p[0] != 1 {
		t.Errorf("flat is % x", p)
	}
	if p := must(v.Raw(at("flats"))); p[2] != 0x80 {
		t.Errorf("flats is % x", p)
	}
	if !must(v.Struct(at("one"))).IsNil() || must(v.Raw(at("blob"))) != nil {
		t.Error("one or blob are not NULL")
	}
}

// Whoever is inside itself would be written for ever. The error leaves the
// builders usable.
func TestBuilderCycle(t *testing.T) {
	f := listFormat(t)
	top := list(f, 3)
	first := top.Child("Block")
	top.SetStructs(0, first)
	first.SetStructs(2, first)
	if _, err := top.Append(nil); !errors.Is(err, ErrValue) {
		t.Errorf("%v, want ErrValue", err)
	}
	first.SetStructs(2, top.Child("Block"))
	if _, err := top.Append(nil); err != nil {
		t.Errorf("after the cycle was opened: %v", err)
	}
}

// An array of one is an array.
func TestArrayOfOne(t *testing.T) {
	f, err := New(
		Struct{Name: "S", RecordLen: 32, Fields: []Field{{"i", "integer[1]", 8, 0}, {"s", "string[1]", 8, 8}, {"in", "T[1]", 8, 16}, {"p", "(*T)[1]", 8, 24}}},
		Struct{Name: "T", RecordLen: 8, Fields: []Field{{"x", "string", 8, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	b := f.NewRecord()
	b.SetRaw(0, words(7))
	b.SetTexts(1, []string{"one"})
	sub := b.Child("T")
	sub.SetText(0, "two")
	b.SetStructs(2, sub)
	b.SetStructs(3, sub)
	rec, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := f.Record(rec)
	if err != nil {
		t.Fatal(err)
	}
	v := r.Top()
	if _, err := v.Int(0); !errors.Is(err, ErrKind) {
		t.Errorf("Int: %v", err)
	}
	if _, _, err := v.Text(1); !errors.Is(err, ErrKind) {
		t.Errorf("Text: %v", err)
	}
	if l, err := v.Texts(1); !cmp.Equal(l, []string{"one"}) || err != nil {
		t.Errorf("Texts: %q, %v", l, err)
	}
	for i := 2; i < 4; i++ {
		if _, err := v.Struct(i); !errors.Is(err, ErrKind) {
			t.Errorf("Struct(%d): %v", i, err)
		}
		if s, _, err := must(v.At(i, 0)).Text(0); s != "two" || err != nil {
			t.Errorf("At(%d, 0): %q, %v", i, s, err)
		}
	}
	checkEncoded(t, r, rec)
}

// A struct may be set in several places; it is written as often.
func TestBuilderShared(t *testing.T) {
	f := treeFormat(t)
	b := f.NewRecord()
	leaf := b.Child("Node")
	leaf.SetText(2, "leaf")
	mid := b.Child("Node")
	for _, n := range []*Builder{b, mid} {
		n.SetInt(0, 2)
	}
	mid.SetStructs(1, leaf, leaf)
	b.SetStructs(1, mid, mid)
	r, _, err := f.Record(must(b.Append(nil)))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, m := range must(r.Top().Structs(1)) {
		for _, l := range must(m.Structs(1)) {
			if s, _, _ := l.Text(2); s != "leaf" {
				t.Errorf("name %q", s)
			}
			seen[l.at] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d leaves, want 4", len(seen))
	}
}

func TestTooDeep(t *testing.T) {
	b := list(listFormat(t), maxDepth+1)
	if _, err := b.Append(nil); !errors.Is(err, ErrValue) {
		t.Errorf("%v, want ErrValue", err)
	}
}

// Large values are not copied, small ones are.
func TestBuffers(t *testing.T) {
	f := zoo(t)
	b := fillZoo(f)
	big := bytes.Repeat([]byte{5}, 5000)
	b.SetInt(b.Index("n"), 5000)
	for i := range f.Structs()[0].Fields {
		switch f.Structs()[0].Fields[i].Name {
		case "pairs", "flats", "row", "some":
			b.vals[b.l.fields[i].slot] = value{}
		case "texts":
			b.SetTexts(i, nil)
		case "blob":
			b.SetRaw(i, big)
		}
	}
	want := must(b.Append(nil))
	for small, pieces := range map[int]int{-1: 3, 0: 3, 1: 3, 5000: 3, 5001: 1} {
		bufs, err := b.Buffers(small)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.Join(bufs, nil), want) || len(bufs) != pieces {
			t.Errorf("Buffers(%d): %d pieces, want %d", small, len(bufs), pieces)
		}
		if pieces == 3 && &bufs[1][0] != &big[0] {
			t.Errorf("Buffers(%d) has copied the value", small)
		}
	}
}

// A value in pieces is the same record as in one piece, and each piece is copied
// or not by its own size.
func TestSetParts(t *testing.T) {
	f := listFormat(t)
	big := bytes.Repeat([]byte{5}, 3000)
	build := func(set func(b *Builder)) *Builder {
		top := f.NewRecord()
		b := top.Child("Block")
		b.SetInt(1, 3005)
		set(b)
		top.SetStructs(0, b)
		return top
	}
	whole := slices.Concat([]byte("ab"), big, []byte("cde"))
	want := must(build(func(b *Builder) { b.SetRaw(0, whole) }).Append(nil))
	for name, parts := range map[string][][]byte{
		"one":   {whole},
		"three": {[]byte("ab"), big, []byte("cde")},
		"empty": {nil, []byte("ab"), {}, big, []byte("cde"), nil},
	} {
		b := build(func(b *Builder) { b.SetParts(0, parts) })
		if got, err := b.Append(nil); !bytes.Equal(got, want) || err != nil {
			t.Errorf("%s: other bytes, %v", name, err)
		}
		bufs, err := b.Buffers(1000)
		if !bytes.Equal(bytes.Join(bufs, nil), want) || err != nil {
			t.Errorf("%s: Buffers gives other bytes, %v", name, err)
		}
		if name != "one" && &bufs[1][0] != &big[0] {
			t.Errorf("%s: the large piece was copied", name)
		}
	}
	for name, parts := range map[string][][]byte{"short": {whole[:5], whole[6:]}, "long": {whole, {1}}} {
		if _, err := build(func(b *Builder) { b.SetParts(0, parts) }).Append(nil); !errors.Is(err, ErrValue) {
			t.Errorf("%s: %v, want ErrValue", name, err)
		}
	}
	for _, parts := range [][][]byte{nil, {}, {nil}, {nil, {}}} { // nothing at all is NULL
		r, _, err := f.Record(must(build(func(b *Builder) { b.SetParts(0, parts) }).Append(nil)))
		if err != nil {
			t.Fatal(err)
		}
		if p, err := must(r.Top().Struct(0)).Raw(0); p != nil || err != nil {
			t.Errorf("%v: %v, %v", parts, p, err)
		}
	}
	for _, i := range []int{-1, 1, 2, 3, 4} {
		if _, err := build(func(b *Builder) { b.SetParts(i, nil) }).Append(nil); !errors.Is(err, ErrKind) {
			t.Errorf("field %d: %v, want ErrKind", i, err)
		}
	}
}

// Append leaves what is in front alone and does not touch the caller's bytes
// behind it on an error.
func TestAppendInPlace(t *testing.T) {
	f, rec := queryResponse(t)
	b := f.NewRecord()
	b.SetInt(0, 2)
	b.SetText(1, "evpath")
	buf := make([]byte, 3, 100)
	copy(buf, "abc")
	out, err := b.Append(buf)
	if err != nil || !bytes.Equal(out, append([]byte("abc"), rec...)) {
		t.Fatalf("% x, %v", out, err)
	}
	if &out[0] != &buf[0] {
		t.Error("there was room, but the buffer was not used")
	}
}

// The copy of a record is independent of it, but for raw values.
func TestRecordBuilderChange(t *testing.T) {
	f := zoo(t)
	rec := must(fillZoo(f).Append(nil))
	r, _, err := f.Record(rec)
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Builder()
	if err != nil {
		t.Fatal(err)
	}
	b.SetText(b.Index("s"), "changed")
	b.SetInt(b.Index("i4"), 77)
	out, _, err := f.Record(must(b.Append(nil)))
	if err != nil {
		t.Fatal(err)
	}
	if s, _, _ := out.Top().Text(b.Index("s")); s != "changed" {
		t.Errorf("s = %q", s)
	}
	if v, _ := r.Top().Int(b.Index("i4")); v != -70000 {
		t.Errorf("the first record has changed to %d", v)
	}
}
