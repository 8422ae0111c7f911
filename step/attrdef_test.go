package step

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// attributesOf decodes an attribute record.
func attributesOf(t *testing.T, e *Encoder, rec []byte) map[string]bp5.Attr {
	t.Helper()
	id, ok := ffs.RecordID(rec)
	if !ok {
		t.Fatalf("record %x", rec)
	}
	attrs, _, err := bp5.ParseAttributes(formatOf(t, e, id), rec)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bp5.Attr{}
	for _, a := range attrs {
		if _, dup := out[a.Name]; dup {
			t.Errorf("attribute %q twice", a.Name)
		}
		out[a.Name] = a
	}
	return out
}

func TestAttributeConstructors(t *testing.T) {
	vs := []int16{1, 2}
	a := NewAttributeArray("a", vs)
	vs[0] = 9
	if diff := cmp.Diff(bp5.Attr{Name: "a", Type: bp5.Int16, Array: true, Data: []byte{1, 0, 2, 0}}, a.wire); diff != "" {
		t.Errorf("array: %s", diff)
	}
	if a.Name() != "a" || a.Type() != Int16 || !a.IsArray() {
		t.Errorf("%q %v %v", a.Name(), a.Type(), a.IsArray())
	}
	texts := []string{"x"}
	b := NewAttributeArray("b", texts)
	texts[0] = "y"
	if diff := cmp.Diff(bp5.Attr{Name: "b", Type: bp5.String, Array: true, Strings: []string{"x"}}, b.wire); diff != "" {
		t.Errorf("strings: %s", diff)
	}
	for _, tc := range []struct {
		a    AttributeDef
		want bp5.Attr
	}{
		{NewAttribute("v", 2.5), bp5.Attr{Name: "v", Type: bp5.Double, Data: []byte{0, 0, 0, 0, 0, 0, 4, 0x40}}},
		{NewAttribute("v", Char('x')), bp5.Attr{Name: "v", Type: bp5.Char, Data: []byte{'x'}}},
		{NewAttribute("v", complex64(1)), bp5.Attr{Name: "v", Type: bp5.ComplexFloat, Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0}}},
		{NewAttribute("v", "t"), bp5.Attr{Name: "v", Type: bp5.String, Strings: []string{"t"}}},
		{RawAttribute("v", Uint8, true, []byte{1}), bp5.Attr{Name: "v", Type: bp5.Uint8, Array: true, Data: []byte{1}}},
	} {
		if diff := cmp.Diff(tc.want, tc.a.wire); diff != "" {
			t.Error(diff)
		}
	}
}

// Each record has all attributes; there is one only when something changed.
func TestAttributeRecords(t *testing.T) {
	for _, old := range []bool{false, true} {
		e := NewEncoder(EncoderConfig{OldAttributes: old})
		if out := emptyStep(t, e); len(out.Attributes) != 0 || e.AttributesNow() != nil {
			t.Errorf("old %v: a record without attributes", old)
		}
		set := func(a AttributeDef) {
			t.Helper()
			if err := e.SetAttribute(a); err != nil {
				t.Fatal(err)
			}
		}
		set(NewAttribute("n", int32(1)))
		set(NewAttribute("s", "one"))
		if e.AttributesNow() != nil {
			t.Errorf("old %v: readers have attributes before the step ended", old)
		}
		first := emptyStep(t, e)
		if got := attributesOf(t, e, first.Attributes); len(got) != 2 || got["n"].Data[0] != 1 || got["s"].Strings[0] != "one" {
			t.Errorf("old %v: first record %v", old, got)
		}
		set(NewAttribute("n", int32(1))) // no change
		if out := emptyStep(t, e); len(out.Attributes) != 0 {
			t.Errorf("old %v: a record without a change", old)
		}
		set(NewAttribute("n", int32(2)))
		set(NewAttributeArray("v", []float32{1, 2}))
		second := emptyStep(t, e)
		got := attributesOf(t, e, second.Attributes)
		if len(got) != 3 || got["n"].Data[0] != 2 || got["s"].Strings[0] != "one" || len(got["v"].Data) != 8 {
			t.Errorf("old %v: second record %v", old, got)
		}
		if !cmp.Equal(e.AttributesNow(), second.Attributes) {
			t.Errorf("old %v: AttributesNow is not the newest record", old)
		}
		if got := attributesOf(t, e, first.Attributes); len(got) != 2 || got["n"].Data[0] != 1 {
			t.Errorf("old %v: the first record changed: %v", old, got)
		}
	}
}

// An aborted step sends nothing, and loses nothing.
func TestAttributesSurviveAbort(t *testing.T) {
	e := NewEncoder(EncoderConfig{})
	if err := e.Begin(new(HeapStore)); err != nil {
		t.Fatal(err)
	}
	if err := e.SetAttribute(NewAttribute("a", int8(1))); err != nil {
		t.Fatal(err)
	}
	e.Abort()
	if e.AttributesNow() != nil {
		t.Error("readers have attributes of an aborted step")
	}
	if got := attributesOf(t, e, emptyStep(t, e).Attributes); len(got) != 1 {
		t.Errorf("attributes %v", got)
	}
}

// Empty arrays of every type are legal (and a crash in other writers).
func TestEmptyAttributeArrays(t *testing.T) {
	defs := []AttributeDef{
		NewAttributeArray("int8", []int8{}), NewAttributeArray[uint64]("uint64", nil), NewAttributeArray("double", []float64{}),
		NewAttributeArray("ld", []Float80{}), NewAttributeArray("c", []complex128{}), NewAttributeArray("char", []Char{}),
	}
	for _, old := range []bool{false, true} {
		e := NewEncoder(EncoderConfig{OldAttributes: old})
		want := len(defs)
		if !old {
			defs := NewAttributeArray("strings", []string{})
			if err := e.SetAttribute(defs); err != nil {
				t.Error(err)
			}
			want++
		}
		for _, a := range defs {
			if err := e.SetAttribute(a); err != nil {
				t.Error(err)
			}
		}
		got := attributesOf(t, e, emptyStep(t, e).Attributes)
		if len(got) != want {
			t.Errorf("old %v: %d attributes, want %d", old, len(got), want)
		}
		for name, a := range got {
			if !a.Array || len(a.Data) != 0 || len(a.Strings) != 0 {
				t.Errorf("old %v: %q is %+v", old, name, a)
			}
		}
	}
}

func TestAttributesRefused(t *testing.T) {
	e := NewEncoder(EncoderConfig{})
	if err := e.SetAttribute(NewAttribute("known", int32(1))); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]AttributeDef{
		"zero":         {},
		"no name":      NewAttribute("", int8(1)),
		"NUL in name":  NewAttribute("a\x00", int8(1)),
		"NUL in text":  NewAttribute("a", "\x00"),
		"NUL in texts": NewAttributeArray("a", []string{"x", "\x00"}),
		"struct":       RawAttribute("a", Struct, false, []byte{1}),
		"raw string":   RawAttribute("a", String, false, []byte("x")),
		"raw length":   RawAttribute("a", Int32, false, []byte{1}),
		"raw array":    RawAttribute("a", Int32, true, []byte{1, 2, 3, 4, 5}),
		"raw type":     RawAttribute("a", 77, true, nil),
		"other type":   NewAttribute("known", int64(1)),
		"other kind":   NewAttributeArray("known", []int32{1}),
	} {
		err := e.SetAttribute(a)
		if !errors.Is(err, ErrDefinition) {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(name, "other") != errors.Is(err, ErrType) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := attributesOf(t, e, emptyStep(t, e).Attributes); len(got) != 1 || got["known"].Data[0] != 1 {
		t.Errorf("attributes %v after refusals", got)
	}
	old := NewEncoder(EncoderConfig{OldAttributes: true})
	for name, a := range map[string]AttributeDef{
		"strings": NewAttributeArray("a", []string{"x"}),
		"bracket": NewAttributeArray("a[1]", []int8{1}),
		"count":   NewAttribute("a_ElemCount", int64(1)),
	} {
		if err := old.SetAttribute(a); !errors.Is(err, ErrDefinition) {
			t.Errorf("old style, %s: %v", name, err)
		}
		if err := e.SetAttribute(a); err != nil {
			t.Errorf("generic style, %s: %v", name, err)
		}
	}
}

// A value that is not equal to itself does not make a record in every step.
func TestNaNAttributeIsNoChange(t *testing.T) {
	e := NewEncoder(EncoderConfig{})
	for i := range 2 {
		if err := e.SetAttribute(NewAttribute("nan", math.NaN())); err != nil {
			t.Fatal(err)
		}
		if out := emptyStep(t, e); (len(out.Attributes) > 0) != (i == 0) {
			t.Errorf("step %d: %d bytes of attributes", i, len(out.Attributes))
		}
	}
}
