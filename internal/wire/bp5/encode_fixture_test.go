package bp5

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/bpfixture"
	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// realStep is what one writer of a fixture sent in one step.
type realStep struct {
	name  string
	meta  [][]byte
	attrs [][]byte
}

// realFormats parses all formats of an mmd file.
func realFormats(t *testing.T, mmd []byte) map[ffs.ID]*ffs.Format {
	t.Helper()
	entries, _, err := ParseMMD(mmd)
	if err != nil {
		t.Fatal(err)
	}
	out := map[ffs.ID]*ffs.Format{}
	for _, e := range entries {
		f, _, err := ffs.Parse(e.Description)
		if err != nil {
			t.Fatal(err)
		}
		out[f.ID()] = f
	}
	return out
}

// realSteps cuts the metadata of a dataset into steps.
func realSteps(t *testing.T, name string) ([]realStep, map[ffs.ID]*ffs.Format) {
	t.Helper()
	files := bpfixture.Files(t, name)
	var steps []realStep
	writers := 0
	for b := files["md.idx"][IndexHeaderSize:]; len(b) > 0; {
		rec, n, err := ParseIndexRecord(b, writers)
		if err != nil {
			t.Fatal(err)
		}
		b = b[n:]
		switch r := rec.(type) {
		case WriterMap:
			writers = int(r.Writers)
		case StepIndex:
			meta, attrs, err := ParseStepMeta(files["md.0"][r.MetaPos:r.MetaPos+r.MetaLen], writers)
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, realStep{name: name, meta: meta, attrs: attrs})
		}
	}
	return steps, realFormats(t, files["mmd.0"])
}

// eachRealStep visits the steps of all datasets, and those of the SST writer.
func eachRealStep(t *testing.T, visit func(s realStep, formats map[ffs.ID]*ffs.Format)) {
	t.Helper()
	for _, name := range bpfixture.Names() {
		steps, formats := realSteps(t, name)
		for _, s := range steps {
			visit(s, formats)
		}
	}
	dir := bpfixture.Blocks(t)
	for _, sub := range []string{"main-sst-blocks", "main-sst-blocks-onetime"} {
		read := func(name string) []byte {
			b, err := os.ReadFile(filepath.Join(dir, sub, name))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		for _, rank := range []string{"0", "1"} {
			formats := realFormats(t, read("mmd."+rank))
			for _, step := range []string{"0", "1", "2"} {
				visit(realStep{
					name:  sub + " rank " + rank + " step " + step,
					meta:  [][]byte{read("md." + step + "." + rank)},
					attrs: [][]byte{read("attr." + step + "." + rank)},
				}, formats)
			}
		}
	}
}

// adiosOffset is how ADIOS2 itself places fields: at a multiple of the field's
// own size (docs/wire/bp5.md §2.5).
func adiosOffset(end int, f *encField) int {
	if f.width != f.size || f.typ == "string" {
		return roundUp(end, slotSize) // a slot
	}
	return roundUp(end, f.size)
}

// adiosStatsOffset also repeats what ADIOS2 does when statistics are on: an
// array of structs has a struct without MinMax, but a field of the size of one
// with it (docs/wire/bp5.md §2.3).
func adiosStatsOffset(end int, f *encField) int {
	if f.typ == metaArrayName {
		f.size += slotSize
		f.width = f.size
	}
	return adiosOffset(end, f)
}

func trimRecord(t *testing.T, rec []byte) []byte {
	t.Helper()
	n := recordHeader + word(rec[ffs.IDLen:], 0)
	if n > uint64(len(rec)) {
		t.Fatalf("record of %d bytes says %d", len(rec), n)
	}
	return rec[:n]
}

// Every metadata format and record of real ADIOS2, taken apart and encoded again
// with ADIOS2's own field offsets, has the same id and the same bytes.
func TestMetadataLikeADIOS2(t *testing.T) {
	records, ids := 0, map[ffs.ID]bool{}
	eachRealStep(t, func(s realStep, formats map[ffs.ID]*ffs.Format) {
		for _, rec := range s.meta {
			id, _ := ffs.RecordID(rec)
			schema, err := ParseSchema(formats[id])
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			want := trimRecord(t, rec)
			got, err := reencode(schema, want)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if !bytes.Equal(got[:ffs.IDLen], want[:ffs.IDLen]) {
				t.Errorf("%s: format id %x, want %x", s.name, got[:ffs.IDLen], want[:ffs.IDLen])
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s: record\n%x, want\n%x", s.name, got, want)
			}
			records++
			ids[id] = true
		}
	})
	t.Logf("%d records of %d formats", records, len(ids))
	if records < 100 || len(ids) < 20 {
		t.Errorf("only %d records of %d formats were seen", records, len(ids))
	}
}

func reencode(schema *Schema, rec []byte) ([]byte, error) {
	place := adiosOffset
	for _, v := range schema.Vars() {
		if v.MinMax != 0 {
			place = adiosStatsOffset
		}
	}
	m := newMetadataEncoder(place)
	for _, v := range schema.Vars() {
		if _, err := m.Add(v); err != nil {
			return nil, err
		}
	}
	m.Begin()
	size, err := copyRecord(m, schema, rec)
	if err != nil {
		return nil, err
	}
	return m.Append(nil, size)
}

// copyRecord sets in m everything that rec holds, and returns the data size.
func copyRecord(m *MetadataEncoder, schema *Schema, rec []byte) (uint64, error) {
	md, err := schema.Metadata(rec)
	if err != nil {
		return 0, err
	}
	for i, v := range schema.Vars() {
		if !md.Has(i) {
			continue
		}
		switch {
		case v.Kind.IsArray():
			var a ArrayMeta
			if a, err = md.Array(i); err == nil {
				err = m.SetArray(i, &a)
			}
		case v.Type == String:
			var s string
			if s, err = md.Text(i); err == nil {
				err = m.SetText(i, s)
			}
		default:
			var b []byte
			if b, err = md.Value(i); err == nil {
				err = m.SetValue(i, b)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return md.DataSize(), nil
}

// Every attribute record of real ADIOS2, of both styles, comes out again byte
// for byte. What real ADIOS2 sends as an empty string in place of a string array
// is an ordinary string here.
func TestAttributesLikeADIOS2(t *testing.T) {
	count := map[string]int{}
	eachRealStep(t, func(s realStep, formats map[ffs.ID]*ffs.Format) {
		for _, rec := range s.attrs {
			if len(rec) == 0 {
				continue
			}
			id, _ := ffs.RecordID(rec)
			f := formats[id]
			want := rec
			if f.Variant() {
				want = trimRecord(t, rec)
			}
			attrs, _, err := ParseAttributes(f, rec)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			var got []byte
			if f.Name() == genericAttrsName {
				got, err = AppendGenericAttributes(nil, attrs)
			} else {
				got, _, err = appendOldAttributes(nil, attrs, adiosOffset)
			}
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: %s record\n%x, want\n%x", s.name, f.Name(), got, want)
			}
			count[f.Name()]++
		}
	})
	if count[genericAttrsName] < 10 || count[oldAttrsName] < 5 {
		t.Errorf("records seen: %v", count)
	}
}

// The format of struct elements is ADIOS2's, byte for byte.
func TestStructFormatLikeADIOS2(t *testing.T) {
	f, err := NewStructFormat(StructDef{Name: "particle", Size: 32, Fields: []StructMember{
		{Name: "c", Type: Double, Offset: 24, Count: 1}, // out of order on purpose
		{Name: "a", Type: Int8, Offset: 0, Count: 1},
		{Name: "b", Type: Int32, Offset: 4, Count: 4},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.ID().String(); got != "020000226064c32f44e74c58" {
		t.Errorf("id %s", got)
	}
	for _, name := range []string{"main-struct", "v2.10.2-struct"} {
		_, formats := realSteps(t, name)
		real := formats[f.ID()]
		if real == nil || !bytes.Equal(real.Body(), f.Body()) {
			t.Errorf("%s has no such format", name)
		}
	}
}

// In the natural layout the same records say the same things.
func TestNaturalLayoutKeepsContents(t *testing.T) {
	eachRealStep(t, func(s realStep, formats map[ffs.ID]*ffs.Format) {
		if strings.Contains(s.name, "many") {
			return // large, and nothing special
		}
		for _, rec := range s.meta {
			id, _ := ffs.RecordID(rec)
			schema, err := ParseSchema(formats[id])
			if err != nil {
				t.Fatal(err)
			}
			first, second := NewMetadataEncoder(), newMetadataEncoder(adiosOffset)
			for _, v := range schema.Vars() {
				for _, m := range []*MetadataEncoder{first, second} {
					if _, err := m.Add(v); err != nil {
						t.Fatal(err)
					}
				}
			}
			size, err := copyRecord(first, schema, rec)
			if err != nil {
				t.Fatal(err)
			}
			natural, err := first.Append(nil, size)
			if err != nil {
				t.Fatal(err)
			}
			f, err := first.Format()
			if err != nil {
				t.Fatal(err)
			}
			checkNatural(t, f)
			back, err := ParseSchema(f)
			if err != nil {
				t.Fatal(err)
			}
			if size, err = copyRecord(second, back, natural); err != nil {
				t.Fatal(err)
			}
			got, err := second.Append(nil, size)
			if err != nil {
				t.Fatal(err)
			}
			want, err := reencodePlain(schema, rec)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: by way of the natural layout\n%x, want\n%x", s.name, got, want)
			}
		}
	})
}

func reencodePlain(schema *Schema, rec []byte) ([]byte, error) {
	m := newMetadataEncoder(adiosOffset)
	for _, v := range schema.Vars() {
		if _, err := m.Add(v); err != nil {
			return nil, err
		}
	}
	size, err := copyRecord(m, schema, rec)
	if err != nil {
		return nil, err
	}
	return m.Append(nil, size)
}

// checkNatural compares the offsets with those a C compiler would choose.
func checkNatural(t *testing.T, f *ffs.Format) {
	t.Helper()
	end := 0
	structs := f.Structs()
	for i, field := range structs[0].Fields {
		align, width := field.Size, field.Size
		switch {
		case f.Types(0)[i].Kind == ffs.Substruct && len(f.Types(0)[i].Dims) == 0:
			for _, s := range structs {
				if s.Name == field.Type {
					align, width = s.Align, s.RecordLen
				}
			}
		case f.Types(0)[i].Dynamic():
			align, width = 8, 8
		}
		if want := roundUp(end, align); field.Offset != want {
			t.Errorf("field %q at %d, want %d", field.Name, field.Offset, want)
		}
		end = field.Offset + width
	}
	if structs[0].RecordLen != end {
		t.Errorf("record length %d, want %d", structs[0].RecordLen, end)
	}
}
