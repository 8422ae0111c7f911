package bp5

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// manyAttrs has each type as a value, as an array, as an array of one and as an
// empty one.
func manyAttrs(strings bool) []Attr {
	var out []Attr
	for typ := Int8; typ <= Char; typ++ {
		if typ == String {
			continue
		}
		data := make([]byte, 3*typ.Size())
		for i := range data {
			data[i] = byte(int(typ) + 3*i + 1)
		}
		name := "_" + string('a'+rune(typ))
		out = append(out,
			Attr{Name: "v" + name, Type: typ, Data: data[:typ.Size()]},
			Attr{Name: "a/" + name, Type: typ, Array: true, Data: data},
			Attr{Name: "one " + name, Type: typ, Array: true, Data: data[:typ.Size()]},
			Attr{Name: "none" + name, Type: typ, Array: true})
	}
	out = append(out, Attr{Name: "text", Type: String, Strings: []string{"été"}}, Attr{Name: "empty", Type: String, Strings: []string{""}})
	if strings {
		out = append(out,
			Attr{Name: "list", Type: String, Array: true, Strings: []string{"one", "", "three"}},
			Attr{Name: "list1", Type: String, Array: true, Strings: []string{"x"}},
			Attr{Name: "list0", Type: String, Array: true})
	}
	return out
}

func TestGenericAttributesBytes(t *testing.T) {
	got, err := AppendGenericAttributes([]byte{0xff}, []Attr{
		{Name: "s", Type: String, Array: true, Strings: []string{"one", ""}},
		{Name: "n", Type: Int32, Data: []byte{42, 0, 0, 0}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := append([]byte{0xff}, unhex(t, `
		0200008d72b6d67f54032261 7d00000000000000 00000000
		0100000000000000 2000000000000000 0100000000000000 4800000000000000
		3800000000000000 0400000000000000 4000000000000000
		336e000000000000
		2a000000 00000000
		6000000000000000 0200000000000000 6800000000000000
		5073000000000000
		7800000000000000 7c00000000000000
		6f6e6500 00`)...)
	if !bytes.Equal(got, want) {
		t.Errorf("record\n%x, want\n%x", got, want)
	}
}

// What was encoded comes back from the parser.
func TestGenericAttributesRoundTrip(t *testing.T) {
	f, err := GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	for _, attrs := range [][]Attr{nil, manyAttrs(true)[:1], manyAttrs(true)} {
		rec, err := AppendGenericAttributes(nil, attrs)
		if err != nil {
			t.Fatal(err)
		}
		got, replace, err := ParseAttributes(f, rec)
		if err != nil || replace {
			t.Fatalf("replace %v, %v", replace, err)
		}
		if diff := cmp.Diff(attrs, got, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestOldAttributesRoundTrip(t *testing.T) {
	attrs := manyAttrs(false)
	rec, f, err := AppendOldAttributes(nil, attrs)
	if err != nil {
		t.Fatal(err)
	}
	checkNatural(t, f)
	got, replace, err := ParseAttributes(f, rec)
	if err != nil || !replace {
		t.Fatalf("replace %v, %v", replace, err)
	}
	for i, a := range attrs {
		if a.Type == Char && a.Array {
			attrs[i].Type = Int8 // the format has no code for it
		}
	}
	if diff := cmp.Diff(attrs, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// Numbers alone make a format without slots: its record has the short header.
func TestOldAttributesWithoutSlots(t *testing.T) {
	attrs := []Attr{
		{Name: "b", Type: Int8, Data: []byte{7}},
		{Name: "d", Type: Double, Data: []byte{1, 2, 3, 4, 5, 6, 7, 8}},
	}
	rec, f, err := AppendOldAttributes(nil, attrs)
	if err != nil {
		t.Fatal(err)
	}
	id := f.ID()
	want := append(id[:], unhex(t, "00000000 0700000000000000 0102030405060708")...)
	if !bytes.Equal(rec, want) || f.Variant() {
		t.Errorf("record %x, want %x", rec, want)
	}
	got, _, err := ParseAttributes(f, rec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(attrs, got); diff != "" {
		t.Error(diff)
	}
}

func TestOldAttributeFields(t *testing.T) {
	_, f, err := AppendOldAttributes(nil, []Attr{
		{Name: "c", Type: Char, Data: []byte{7}},
		{Name: "s", Type: String, Strings: []string{"t"}},
		{Name: "z", Type: ComplexFloat, Data: make([]byte, 8)},
		{Name: "v", Type: ComplexDouble, Array: true, Data: make([]byte, 32)},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []ffs.Struct{
		{Name: "Attributes", RecordLen: 40, Align: 8, Fields: []ffs.Field{
			{Name: "BPg_1_15_c", Type: "integer", Size: 1, Offset: 0},
			{Name: "BPg_8_14_s", Type: "string", Size: 8, Offset: 8},
			{Name: "BPg_8_12_z", Type: "complex4", Size: 8, Offset: 16},
			{Name: "BPG_v_ElemCount", Type: "integer", Size: 8, Offset: 24},
			{Name: "BPG_v", Type: "complex8[BPG_v_ElemCount]", Size: 16, Offset: 32},
		}},
		complexStruct("complex8"),
		complexStruct("complex4"),
	}
	if diff := cmp.Diff(want, f.Structs()); diff != "" {
		t.Error(diff)
	}
}

func TestAttributesRefused(t *testing.T) {
	for name, a := range map[string]Attr{
		"no name":            {Type: Int8, Data: []byte{1}},
		"NUL in name":        {Name: "a\x00", Type: Int8, Data: []byte{1}},
		"no type":            {Name: "a"},
		"struct":             {Name: "a", Type: Struct, Data: []byte{1}},
		"type out of range":  {Name: "a", Type: 99, Data: []byte{1}},
		"short":              {Name: "a", Type: Int16, Data: []byte{1}},
		"two for a value":    {Name: "a", Type: Int8, Data: []byte{1, 2}},
		"none for a value":   {Name: "a", Type: Int8},
		"broken array":       {Name: "a", Type: Int16, Array: true, Data: []byte{1, 2, 3}},
		"strings, number":    {Name: "a", Type: Int8, Data: []byte{1}, Strings: []string{"x"}},
		"bytes for a string": {Name: "a", Type: String, Data: []byte{1}, Strings: []string{"x"}},
		"no string":          {Name: "a", Type: String},
		"two strings":        {Name: "a", Type: String, Strings: []string{"x", "y"}},
		"NUL in string":      {Name: "a", Type: String, Array: true, Strings: []string{"x", "y\x00"}},
	} {
		if err := a.Check(); !errors.Is(err, ErrEncode) {
			t.Errorf("%s: Check: %v", name, err)
		}
		if _, err := AppendGenericAttributes(nil, []Attr{a}); !errors.Is(err, ErrEncode) {
			t.Errorf("%s: generic: %v", name, err)
		}
		if _, _, err := AppendOldAttributes(nil, []Attr{a}); !errors.Is(err, ErrEncode) {
			t.Errorf("%s: old: %v", name, err)
		}
	}
}

// What only the old style cannot do.
func TestOldStyleLimits(t *testing.T) {
	for name, a := range map[string]Attr{
		"string array":       {Name: "a", Type: String, Array: true, Strings: []string{"x"}},
		"bracket":            {Name: "a[0", Type: Int8, Array: true},
		"closing bracket":    {Name: "a]", Type: Int8, Array: true},
		"count of another":   {Name: "a_ElemCount", Type: Int64, Data: make([]byte, 8)},
		"count as an array":  {Name: "aElemCount", Type: Int64, Array: true},
		"count as the whole": {Name: "ElemCount", Type: Int8, Data: []byte{1}},
	} {
		if err := a.CheckOldStyle(); !errors.Is(err, ErrEncode) {
			t.Errorf("%s: %v", name, err)
		}
		if err := a.Check(); err != nil {
			t.Errorf("%s, generic: %v", name, err)
		}
	}
	odd := []string{"br[0]", "a:b", "* x", "with space", "été", "(p)", "integer", "a_1_2", "9"}
	var attrs []Attr
	for _, name := range odd {
		attrs = append(attrs, Attr{Name: name, Type: Int8, Data: []byte{1}})
	}
	for _, name := range odd[1:] {
		attrs = append(attrs, Attr{Name: name + "s", Type: Int8, Array: true, Data: []byte{1, 2}})
	}
	rec, f, err := AppendOldAttributes(nil, attrs)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := ParseAttributes(f, rec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(attrs, got); diff != "" {
		t.Error(diff)
	}
}

func TestAttributeRecordsTruncated(t *testing.T) {
	generic, err := GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	rec, err := AppendGenericAttributes(nil, manyAttrs(true))
	if err != nil {
		t.Fatal(err)
	}
	oldRec, old, err := AppendOldAttributes(nil, manyAttrs(false))
	if err != nil {
		t.Fatal(err)
	}
	for n := range rec {
		if _, _, err := ParseAttributes(generic, rec[:n:n]); err == nil {
			t.Errorf("generic: %d of %d bytes are accepted", n, len(rec))
		}
	}
	for n := range oldRec {
		if _, _, err := ParseAttributes(old, oldRec[:n:n]); err == nil {
			t.Errorf("old: %d of %d bytes are accepted", n, len(oldRec))
		}
	}
}

// The records of the encoder are good seeds for a parser, and must never make
// one panic when damaged.
func FuzzEncodedRecords(f *testing.F) {
	generic, err := GenericAttributesFormat()
	if err != nil {
		f.Fatal(err)
	}
	rec, err := AppendGenericAttributes(nil, manyAttrs(true))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rec)
	f.Fuzz(func(t *testing.T, rec []byte) {
		attrs, _, err := ParseAttributes(generic, rec)
		if err != nil {
			return
		}
		// What parses can be encoded, unless it is beyond what writers may do,
		// and then says the same.
		again, err := AppendGenericAttributes(nil, attrs)
		if err != nil {
			return
		}
		back, _, err := ParseAttributes(generic, again)
		if err != nil {
			t.Fatalf("own record does not parse: %v", err)
		}
		if diff := cmp.Diff(attrs, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}
