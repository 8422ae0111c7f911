package sstmsg

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// nativeSamples are the messages of the native plane, with something in each of
// its fields.
var nativeSamples = []struct {
	m    Message
	name string   // of the struct that has the fields
	want []string // its fields that are ours: name, type, size@offset
	size int
}{
	{
		&DPQuery{WriterID: 1, Condition: 2, Weft: 1, Planes: "native,evpath"},
		"DPQuery",
		[]string{"weft_version integer 4@12", "weft_planes string 8@16"},
		24,
	},
	{
		&ReaderRegister{
			WriterID: 1, Condition: 2, CP: []CPReader{{Contact: "c", ReaderID: 3}}, Evpath: []EvpathReader{{Contact: "d", ReaderID: 4}},
			Observer: 1, Plane: "native",
		},
		"ReaderRegister",
		[]string{"weft_observer integer 4@40", "weft_plane string 8@48"},
		56,
	},
	{
		&WriterResponse{
			Condition: 2, Params: &Params{}, NextStep: 3, CP: []CPWriter{{"c", 4}, {"d", 5}}, Evpath: []EvpathWriter{{"e", 6}, {"f", 7}},
			Native: []NativeWriter{{"1 @a 7f"}, {}},
		},
		"WriterResponse",
		[]string{"weft_native weft_native_writer[WriterCohortSize] 8@40"},
		48,
	},
	{
		&TimestepMetadata{
			ReaderID: 1, Step: 2, CohortSize: 2, Metadata: []Block{{Data: ByteBlob([]byte("m"))}, {}}, Attributes: make([]Block, 2),
			Native: []Block{{}, {Data: ByteBlob([]byte("extents"))}},
		},
		"timestepMetadata",
		[]string{"weft_native SstBlock[cohort_size] 16@56"},
		64,
	},
	{
		&ReaderPlane{WriterID: 1, Plane: "mixed", Alone: 1},
		"weft_reader_plane",
		[]string{"WSR_Stream integer 8@0", "plane string 8@8", "alone integer 8@16"},
		24,
	},
}

func nativeRecord(t testing.TB, m Message) (*ffs.Format, []byte) {
	t.Helper()
	f, b, err := Append(nil, m, Options{Release: ReleaseMain, Weft: true})
	if err != nil {
		t.Fatal(err)
	}
	return f, b
}

// TestNativeLayout pins what two releases of Weft must agree on, and no captured
// session shows (docs/wire/sst.md, "Additions").
func TestNativeLayout(t *testing.T) {
	for _, c := range nativeSamples {
		f, _ := nativeRecord(t, c.m)
		top := f.Structs()[0]
		if top.Name != c.name || top.RecordLen != c.size {
			t.Errorf("%s of %d bytes, want %s of %d", top.Name, top.RecordLen, c.name, c.size)
		}
		var got []string
		for _, w := range top.Fields[len(top.Fields)-len(c.want):] {
			got = append(got, fmt.Sprintf("%s %s %d@%d", w.Name, w.Type, w.Size, w.Offset))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestNativeBytes are the bytes of a ReaderPlane after the header, which has a
// random part: the format's ID.
func TestNativeBytes(t *testing.T) {
	_, b := nativeRecord(t, &ReaderPlane{WriterID: 0x1122, Plane: "mixed", Alone: 0x33})
	want := []byte{0x22, 0x11, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0x33, 0, 0, 0, 0, 0, 0, 0, 'm', 'i', 'x', 'e', 'd', 0}
	if d := cmp.Diff(want, b[recordHeader:]); d != "" {
		t.Error(d)
	}
}

func TestNativeRoundTrip(t *testing.T) {
	for _, c := range nativeSamples {
		f, b := nativeRecord(t, c.m)
		m, err := Decode(f, b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.m, m, canonical); d != "" {
			t.Errorf("%s:\n%s", c.name, d)
		}
	}
}

// TestNativeAbsent: a peer that lacks the fields, ADIOS2 or an older Weft, and one
// that has nothing to say in them, mean the same.
func TestNativeAbsent(t *testing.T) {
	for _, c := range nativeSamples[:4] {
		f, b, err := Append(nil, c.m, Options{Release: ReleaseMain})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(f, b)
		if err != nil {
			t.Fatal(err)
		}
		if saysNative(m) {
			t.Errorf("%s has what was not sent: %+v", c.name, m)
		}
		g, b := nativeRecord(t, m)
		again, err := Decode(g, b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, again, canonical); d != "" {
			t.Errorf("%s with empty fields:\n%s", c.name, d)
		}
	}
}

// saysNative reports whether a message has anything in the fields of the native plane.
func saysNative(m Message) bool {
	switch m := m.(type) {
	case *DPQuery:
		return m.Planes != ""
	case *ReaderRegister:
		return m.Plane != ""
	case *WriterResponse:
		return m.Native != nil
	case *TimestepMetadata:
		return m.Native != nil
	}
	return false
}

// TestNativeOfRdma: the plane is no companion of ADIOS2's rdma.
func TestNativeOfRdma(t *testing.T) {
	for _, m := range []Message{
		&WriterResponse{CP: make([]CPWriter, 1), Rdma: make([]RdmaWriter, 1), Native: make([]NativeWriter, 1)},
		&TimestepMetadata{CohortSize: 1, Metadata: make([]Block, 1), Attributes: make([]Block, 1), Rdma: make([]RdmaBuffer, 1), Native: make([]Block, 1)},
	} {
		f, b := nativeRecord(t, m)
		got, err := Decode(f, b)
		if err != nil {
			t.Fatal(err)
		}
		if saysNative(got) {
			t.Errorf("%s has it", Name(m))
		}
	}
}

// TestNativeOtherCounts: a list that does not fit the cohort is not sent.
func TestNativeOtherCounts(t *testing.T) {
	for _, m := range []Message{
		&WriterResponse{CP: make([]CPWriter, 2), Evpath: make([]EvpathWriter, 2), Native: make([]NativeWriter, 1)},
		&WriterResponse{CP: make([]CPWriter, 2), Evpath: make([]EvpathWriter, 2), Native: make([]NativeWriter, 3)},
		&TimestepMetadata{CohortSize: 2, Metadata: make([]Block, 2), Attributes: make([]Block, 2), Native: make([]Block, 1)},
		&TimestepMetadata{CohortSize: 2, Metadata: make([]Block, 2), Attributes: make([]Block, 2), Native: make([]Block, 3)},
	} {
		if _, _, err := Append(nil, m, Options{Release: ReleaseMain, Weft: true}); err == nil {
			t.Errorf("%+v is sent", m)
		}
	}
}

func TestNativeTruncated(t *testing.T) {
	for _, c := range nativeSamples {
		f, b := nativeRecord(t, c.m)
		for n := range b {
			if m, err := Decode(f, b[:n]); err == nil {
				t.Errorf("%s cut to %d of %d bytes is accepted: %+v", c.name, n, len(b), m)
			}
		}
	}
}

// TestNativeHostile puts numbers into records that no writer makes: offsets
// outside of the record, and cohorts larger than it.
func TestNativeHostile(t *testing.T) {
	cohorts := map[string]int{"WriterResponse": 4, "timestepMetadata": 16} // offsets of the count
	lists := map[string]int{"WriterResponse": 40, "timestepMetadata": 56}
	for _, c := range nativeSamples {
		cohort, ok := cohorts[c.name]
		if !ok {
			continue
		}
		f, b := nativeRecord(t, c.m)
		for _, n := range []uint32{3, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
			bad := append([]byte{}, b...)
			binary.LittleEndian.PutUint32(bad[recordHeader+cohort:], n)
			if m, err := Decode(f, bad); err == nil {
				t.Errorf("%s of a cohort of %d is accepted: %+v", c.name, int32(n), m)
			}
		}
		for _, at := range []uint64{uint64(len(b) - recordHeader), uint64(len(b)) + 100, 1 << 40, 1 << 63, 1<<64 - 1} {
			bad := append([]byte{}, b...)
			binary.LittleEndian.PutUint64(bad[recordHeader+lists[c.name]:], at)
			if m, err := Decode(f, bad); err == nil {
				t.Errorf("%s with the list at %d is accepted: %+v", c.name, at, m)
			}
		}
	}
}
