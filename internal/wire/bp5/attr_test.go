package bp5

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// attrsOf reads the attribute records of a step.
func attrsOf(t *testing.T, st realStep, formats map[ffs.ID]*ffs.Format) (attrs map[string]Attr, replace bool) {
	t.Helper()
	attrs = map[string]Attr{}
	for _, rec := range st.attrs {
		if len(rec) == 0 {
			continue
		}
		id, _ := ffs.RecordID(rec)
		list, all, err := ParseAttributes(formats[id], rec)
		if err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		for _, a := range list {
			attrs[a.Name] = a
		}
		replace = all
	}
	return attrs, replace
}

func TestGenericAttributes(t *testing.T) {
	steps, formats := realSteps(t, "main-attrs")
	attrs, replace := attrsOf(t, steps[0], formats)
	if replace || len(attrs) != 32 {
		t.Errorf("%d attributes, replace %v", len(attrs), replace)
	}
	for _, want := range []Attr{
		{Name: "at_int32", Type: Int32, Data: []byte{42, 0, 0, 0}},
		{Name: "at_char", Type: Char, Data: []byte{42}},
		{Name: "ar_int16", Type: Int16, Array: true, Data: []byte{40, 0, 41, 0, 42, 0}},
		{Name: "ar_char", Type: Char, Array: true, Data: []byte{40, 41, 42}},
		{Name: "ar_len1", Type: Double, Array: true, Data: []byte{0, 0, 0, 0, 0, 0, 0x0c, 0x40}},
		{Name: "at_string", Type: String, Strings: []string{"hello attr"}},
		{Name: "ar_string", Type: String, Array: true, Strings: []string{"one", "", "three"}},
		{Name: "x/units", Type: String, Strings: []string{"m/s"}},
	} {
		if diff := cmp.Diff(want, attrs[want.Name]); diff != "" {
			t.Error(diff)
		}
	}
	later, _ := attrsOf(t, steps[2], formats)
	if diff := cmp.Diff(map[string]Attr{"late": {Name: "late", Type: Int32, Data: []byte{2, 0, 0, 0}}}, later); diff != "" {
		t.Error(diff)
	}
}

func TestOldAttributes(t *testing.T) {
	steps, formats := realSteps(t, "v2.10.2-attrs-oldstyle")
	attrs, replace := attrsOf(t, steps[0], formats)
	if !replace || len(attrs) != 31 {
		t.Errorf("%d attributes, replace %v", len(attrs), replace)
	}
	for _, want := range []Attr{
		{Name: "at_char", Type: Char, Data: []byte{42}},
		{Name: "ar_char", Type: Int8, Array: true, Data: []byte{40, 41, 42}},
		{Name: "ar_uint16", Type: Uint16, Array: true, Data: []byte{40, 0, 41, 0, 42, 0}},
		{Name: "at_string", Type: String, Strings: []string{"hello attr"}},
		{Name: "at_cfloat", Type: ComplexFloat, Data: []byte{0, 0, 0x2a, 0x42, 0, 0, 0x28, 0xc2}},
		{Name: "x/units", Type: String, Strings: []string{"m/s"}},
	} {
		if diff := cmp.Diff(want, attrs[want.Name]); diff != "" {
			t.Error(diff)
		}
	}
	if later, _ := attrsOf(t, steps[1], formats); len(later) != 32 {
		t.Errorf("step 1: %d attributes", len(later))
	}
}

// A variable or an attribute may be called as the parts of the encoding are.
func TestOldAttributeNames(t *testing.T) {
	in := []Attr{
		{Name: "8_14_x", Type: Int8, Data: []byte{1}},
		{Name: "BPG_x", Type: Int8, Array: true, Data: []byte{1, 2}},
		{Name: "a_b", Type: Uint64, Array: true},
		{Name: "with space/é", Type: Float, Data: []byte{0, 0, 0, 0}},
	}
	rec, f, err := AppendOldAttributes(nil, in)
	if err != nil {
		t.Fatal(err)
	}
	out, all, err := ParseAttributes(f, rec)
	if err != nil || !all {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Error(diff)
	}
}

func TestAttributesOfOtherFormats(t *testing.T) {
	steps, formats := realSteps(t, "main-attrs")
	id, _ := ffs.RecordID(steps[0].meta[0])
	if _, _, err := ParseAttributes(formats[id], steps[0].meta[0]); !errors.Is(err, ErrBadRecord) {
		t.Errorf("metadata: %v", err)
	}
	if _, _, err := ParseAttributes(formats[id], steps[0].attrs[0]); !errors.Is(err, ffs.ErrOtherFormat) {
		t.Errorf("other format: %v", err)
	}
	for _, field := range []string{"x", "BPG_x", "BPg_x", "BPg_8_x", "BPg_8_400_x", "BPg_x_1_y", "BPG_x_ElemCount"} {
		f, err := ffs.New(ffs.Struct{Name: "Attributes", RecordLen: 8, Fields: []ffs.Field{{Name: field, Type: "integer", Size: 8}}})
		if err != nil {
			t.Fatal(err)
		}
		id := f.ID()
		if _, _, err := ParseAttributes(f, append(id[:], make([]byte, 12)...)); !errors.Is(err, ErrBadRecord) {
			t.Errorf("field %q: %v", field, err)
		}
	}
}

// Generic names and values that contradict each other.
func TestGenericAttributesRefuse(t *testing.T) {
	rec, err := AppendGenericAttributes(nil, []Attr{{Name: "n", Type: Int32, Data: []byte{1, 2, 3, 4}}, {Name: "s", Type: String, Strings: []string{"t"}}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := GenericAttributesFormat()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		codes string
		ok    bool
	}{
		{"3n", "379BCEZ", true}, {"3n", "\x00 /1248:;<=>?", false}, {">s", ">P", true}, {">s", " 03?EQ", false},
	} {
		for _, c := range []byte(tc.codes) {
			bad := slices.Clone(rec)
			bad[bytes.Index(rec, []byte(tc.name))] = c
			if list, _, err := ParseAttributes(f, bad); (err == nil) != tc.ok {
				t.Errorf("%q with %q: %v, %+v", tc.name, c, err, list)
			}
		}
	}
}

func TestAttributesTruncated(t *testing.T) {
	eachRealStep(t, func(st realStep, formats map[ffs.ID]*ffs.Format) {
		for _, rec := range st.attrs {
			id, ok := ffs.RecordID(rec)
			if !ok {
				continue
			}
			rec = trimRecord(t, rec)
			for n := range rec {
				if _, _, err := ParseAttributes(formats[id], rec[:n:n]); err == nil {
					t.Errorf("%s: %d of %d bytes accepted", st.name, n, len(rec))
				}
			}
		}
	})
}
