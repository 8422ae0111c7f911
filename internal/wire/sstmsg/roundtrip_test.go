package sstmsg

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// messageNames are all messages, by their name on the wire.
var messageNames = []string{
	"DPQuery", "DPQueryResponse", "ReaderRegister", "PeerSetup", "WriterResponse", "ReaderActivate", "ReaderRequestStep",
	"timestepMetadata", "ReleaseTimestep", "LockReaderDefinitions", "CommPatternLocked", "WriterClose", "ReaderClose",
	"EvpathReadRequest", "EvpathReadReply", "EvpathPreload", "weft_stat_query", "weft_stat_reply", "weft_reader_plane",
}

// canonical compares messages by their bytes: a Blob in pieces is one in one,
// and of no bytes is none.
var canonical = cmp.Options{
	cmp.Transformer("bytes", func(b Blob) string { return string(b.Bytes()) }),
	cmp.Comparer(func(a, b []Block) bool { return len(a) == len(b) && sameBlocks(a, b) }),
}

func sameBlocks(a, b []Block) bool {
	for i := range a {
		if !bytes.Equal(a[i].Data.Bytes(), b[i].Data.Bytes()) {
			return false
		}
	}
	return true
}

// fillAny draws a value for every field of a message that the variant has.
func fillAny(t *rapid.T, v reflect.Value, variant variant, cohort int) {
	c := compiler{variant: variant}
	for i := range v.NumField() {
		sf, f := v.Type().Field(i), v.Field(i)
		if !c.wants(sf.Tag) || sf.Type.Kind() == reflect.Struct && sf.Type.NumField() == 0 {
			continue
		}
		drawInto(t, sf, f, variant, cohort)
	}
}

func drawInto(t *rapid.T, sf reflect.StructField, f reflect.Value, variant variant, cohort int) {
	switch {
	case sf.Type == reflect.TypeFor[Blob]():
		f.Set(reflect.ValueOf(drawBlob(t)))
	case sf.Type.Kind() == reflect.Int32:
		f.SetInt(int64(rapid.Int32().Draw(t, sf.Name)))
	case sf.Type.Kind() == reflect.Int64 && sf.Tag.Get("old") == "4" && variant.release == Release210:
		f.SetInt(int64(rapid.Int32().Draw(t, sf.Name)))
	case sf.Type.Kind() == reflect.Int64:
		f.SetInt(rapid.Int64().Draw(t, sf.Name))
	case sf.Type.Kind() == reflect.String:
		f.SetString(rapid.StringMatching(`[^\x00]{0,20}`).Draw(t, sf.Name))
	case sf.Type.Kind() == reflect.Struct:
		fillAny(t, f, variant, cohort)
	case sf.Type.Kind() == reflect.Pointer:
		if rapid.Bool().Draw(t, sf.Name) {
			f.Set(reflect.New(sf.Type.Elem()))
			fillAny(t, f.Elem(), variant, cohort)
		}
	case sf.Type.Kind() == reflect.Slice:
		n := cohort
		if sf.Tag.Get("list") != "" {
			n = rapid.IntRange(0, 4).Draw(t, sf.Name)
		}
		if n > 0 {
			f.Set(reflect.MakeSlice(sf.Type, n, n))
		}
		for i := range n {
			fillAny(t, f.Index(i), variant, cohort)
		}
	}
}

// drawBlob draws bytes in up to three pieces, around the size where copying ends.
func drawBlob(t *rapid.T) Blob {
	var b Blob
	for range rapid.IntRange(0, 3).Draw(t, "pieces") {
		n := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(smallBlob-2, smallBlob+2)).Draw(t, "bytes")
		b = append(b, bytes.Repeat([]byte{byte(n + len(b))}, n))
	}
	return b
}

// drawMessage draws a message of any kind, for any release and plane.
func drawMessage(t *rapid.T) (Message, Options) {
	m := newMessage(rapid.SampledFrom(messageNames).Draw(t, "message"))
	o := Options{Release: Release(rapid.IntRange(0, int(releases)-1).Draw(t, "release")), Weft: rapid.Bool().Draw(t, "weft")}
	plane := rapid.SampledFrom([]string{"evpath", "rdma"}).Draw(t, "plane")
	cohort := rapid.IntRange(1, 4).Draw(t, "cohort")
	fillAny(t, reflect.ValueOf(m).Elem(), variant{release: o.Release, plane: plane, weft: o.Weft}, cohort)
	if step, ok := m.(*TimestepMetadata); ok {
		step.CohortSize = int32(cohort)
	}
	return m, o
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawMessage(t)
		f, record, err := Append([]byte("before"), m, o)
		if err != nil {
			t.Fatal(err)
		}
		record, ok := bytes.CutPrefix(record, []byte("before"))
		if !ok {
			t.Fatal("what stood before the record is gone")
		}
		got, err := Decode(f, record)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, got, canonical); d != "" {
			t.Fatalf("%s %+v:\n%s", Name(m), o, d)
		}
		g, parts, err := Encode(m, o)
		if err != nil || g != f {
			t.Fatalf("Encode: format %v, %v", g, err)
		}
		if !bytes.Equal(bytes.Join(parts, nil), record) {
			t.Fatal("Encode and Append differ")
		}
		f2, _, err := ffs.Parse(f.Body())
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(f2, record)
		if err != nil {
			t.Fatalf("with the format as a peer learns it: %v", err)
		}
		if d := cmp.Diff(m, again, canonical); d != "" {
			t.Fatal(d)
		}
	})
}

// TestEncodeCopiesNoLargeBlob checks what step data depend on.
func TestEncodeCopiesNoLargeBlob(t *testing.T) {
	data := make([]byte, 1<<20)
	_, parts, err := Encode(&ReadReply{Data: Blob{data[:1<<19], data[1<<19:]}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range parts {
		if len(p) == 1<<19 && (&p[0] == &data[0] || &p[0] == &data[1<<19]) {
			found++
		}
	}
	if found != 2 {
		t.Errorf("%d of 2 halves are referred to, in %d parts", found, len(parts))
	}
}

// TestWeftField is about a field that is ours: whoever does not know it must find
// the rest as it was.
func TestWeftField(t *testing.T) {
	with, record, err := Append(nil, &DPQuery{WriterID: 1, Condition: 2, Weft: 3}, Options{Weft: true})
	if err != nil {
		t.Fatal(err)
	}
	plain, _, err := Append(nil, &DPQuery{WriterID: 1, Condition: 2, Weft: 3}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if with.ID() == plain.ID() {
		t.Error("the field is always, or never, there")
	}
	got, err := Decode(with, record)
	if err != nil || *got.(*DPQuery) != (DPQuery{WriterID: 1, Condition: 2, Weft: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
	extended := []string{"DPQuery", "ReaderRegister", "WriterResponse", "timestepMetadata", "WriterClose"} // sent to Weft peers only in that form
	for _, name := range messageNames {
		if slices.Contains(extended, name) {
			continue
		}
		a, _, err := Append(nil, newMessage(name), Options{Weft: true})
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := Append(nil, newMessage(name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.ID() != b.ID() {
			t.Errorf("%s differs between Weft peers: real peers would drop it", name)
		}
	}
}

// TestUnknownFields decodes a message of a release that knows more than we do.
func TestUnknownFields(t *testing.T) {
	f, err := ffs.New(ffs.Struct{Name: "ReaderClose", RecordLen: 24, Fields: []ffs.Field{
		{Name: "Reason", Type: "string", Size: 8, Offset: 0},
		{Name: "WSR_Stream", Type: "integer", Size: 8, Offset: 8},
		{Name: "When", Type: "double", Size: 8, Offset: 16},
	}})
	if err != nil {
		t.Fatal(err)
	}
	b := f.NewRecord()
	b.SetText(0, "bored")
	b.SetInt(1, 4711)
	record, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(f, record)
	if err != nil || *m.(*ReaderClose) != (ReaderClose{WriterID: 4711}) {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestNames(t *testing.T) {
	for _, name := range messageNames {
		if got := Name(newMessage(name)); got != name {
			t.Errorf("%s is called %s", name, got)
		}
	}
	for _, name := range []string{"", "dpquery", "SstParams", strings.Repeat("x", 1000)} {
		if newMessage(name) != nil {
			t.Errorf("%.20q is a message", name)
		}
	}
}

func TestBlob(t *testing.T) {
	for _, c := range []struct {
		b    Blob
		want string
	}{
		{nil, ""},
		{ByteBlob(nil), ""},
		{ByteBlob([]byte("x")), "x"},
		{Blob{[]byte("a"), nil, []byte("bc")}, "abc"},
	} {
		if got := string(c.b.Bytes()); got != c.want || c.b.Len() != len(c.want) {
			t.Errorf("%q with length %d, want %q", got, c.b.Len(), c.want)
		}
	}
}
