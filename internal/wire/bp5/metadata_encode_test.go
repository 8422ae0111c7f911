package bp5

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newEncoder(t testing.TB, vars ...VarDesc) *MetadataEncoder {
	t.Helper()
	m := NewMetadataEncoder()
	for i, v := range vars {
		if got, err := m.Add(v); err != nil || got != i {
			t.Fatalf("Add(%q) = %d, %v", v.Name, got, err)
		}
	}
	m.Begin()
	return m
}

// encoded returns the record of the open step, and what a reader makes of its
// format.
func encoded(t testing.TB, enc *MetadataEncoder, dataSize uint64) ([]byte, *Schema) {
	t.Helper()
	rec, err := enc.Append(nil, dataSize)
	if err != nil {
		t.Fatal(err)
	}
	f, err := enc.Format()
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSchema(f)
	if err != nil {
		t.Fatal(err)
	}
	return rec, s
}

var (
	valueS = VarDesc{Name: "s", Kind: GlobalValue, Type: String}
	valueI = VarDesc{Name: "i", Kind: GlobalValue, Type: Int16, ElemSize: 2}
	arrayX = VarDesc{Name: "x", Kind: GlobalArray, Type: Int32, ElemSize: 4, MinMax: 4}
	arrayL = VarDesc{Name: "l", Kind: LocalArray, Type: Double, ElemSize: 8, Operator: true}
)

func blocksX() *ArrayMeta {
	return &ArrayMeta{Dims: 1, Blocks: 2, Shape: []uint64{6}, Count: []uint64{2, 3}, Offset: []uint64{0, 3}, Location: []uint64{0, 8},
		MinMax: []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}}
}

// A whole record, byte for byte, in the natural layout.
func TestMetadataRecordBytes(t *testing.T) {
	m := newEncoder(t, valueI, valueS, arrayX)
	if err := errors.Join(m.SetValue(0, []byte{0x34, 0x12}), m.SetText(1, "hé"), m.SetArray(2, blocksX())); err != nil {
		t.Fatal(err)
	}
	got, err := m.Append([]byte("front"), 32)
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Format()
	if err != nil {
		t.Fatal(err)
	}
	want := append([]byte("front"), f.Body()[:0]...)
	id := f.ID()
	want = append(want, id[:]...)
	want = append(want, unhex(t, `
		c000000000000000 00000000
		0100000000000000 6800000000000000 2000000000000000
		3412000000000000 7000000000000000
		0100000000000000 0200000000000000 0200000000000000
		7800000000000000 8000000000000000 9000000000000000 a000000000000000 b000000000000000
		0700000000000000
		68c3a90000000000
		0600000000000000
		0200000000000000 0300000000000000
		0000000000000000 0300000000000000
		0000000000000000 0800000000000000
		01000000 02000000 03000000 04000000`)...)
	if !bytes.Equal(got, want) {
		t.Errorf("record\n%x, want\n%x", got, want)
	}
}

func TestEmptyMetadataRecord(t *testing.T) {
	m := newEncoder(t)
	got, err := m.Append(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := unhex(t, "0200002eb807f4459b36b2af 1800000000000000 00000000 000000000000000000000000000000000000000000000000")
	if !bytes.Equal(got, want) {
		t.Errorf("record %x, want %x", got, want)
	}
}

// Begin forgets everything of the step before.
func TestMetadataStepsAreIndependent(t *testing.T) {
	m := newEncoder(t, valueI, valueS, arrayX, arrayL)
	if err := errors.Join(m.SetValue(0, []byte{1, 2}), m.SetText(1, "t"), m.SetArray(2, blocksX())); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Append(nil, 16); err != nil {
		t.Fatal(err)
	}
	m.Begin()
	got, err := m.Append(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := m.Format()
	want := make([]byte, recordHeader+f.Structs()[0].RecordLen+8)
	id := f.ID()
	copy(want, id[:])
	binary.LittleEndian.PutUint64(want[12:], uint64(len(want)-recordHeader))
	want[recordHeader] = 1
	binary.LittleEndian.PutUint64(want[recordHeader+8:], uint64(len(want)-recordHeader-8))
	if !bytes.Equal(got, want) {
		t.Errorf("record\n%x, want\n%x", got, want)
	}
}

// The format changes with each new variable, and only then.
func TestMetadataFormatGrows(t *testing.T) {
	m := newEncoder(t, valueI)
	first, err := m.Format()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetValue(0, []byte{9, 0}); err != nil {
		t.Fatal(err)
	}
	if again, _ := m.Format(); again != first {
		t.Error("the format changed without a new variable")
	}
	if _, err := m.Add(arrayX); err != nil { // in the middle of a step
		t.Fatal(err)
	}
	second, err := m.Format()
	if err != nil || second.ID() == first.ID() {
		t.Fatalf("format %v after %v, %v", second.ID(), first.ID(), err)
	}
	rec, err := m.Append(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := ParseSchema(second)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]VarDesc{valueI, arrayX}, schema.Vars()); diff != "" {
		t.Errorf("variables: %s", diff)
	}
	md, err := schema.Metadata(rec)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := md.Value(0); err != nil || b[0] != 9 || !md.Has(0) || md.Has(1) {
		t.Errorf("value %x, %v, has %v %v", b, err, md.Has(0), md.Has(1))
	}
}

// Two encoders that add the same variables have the same format.
func TestMetadataFormatIsDeterministic(t *testing.T) {
	vars := []VarDesc{
		{Name: "a", Kind: GlobalValue, Type: ComplexDouble, ElemSize: 16}, {Name: "b", Kind: GlobalValue, Type: ComplexFloat, ElemSize: 8},
		arrayX, arrayL, {Name: "m", Kind: JoinedArray, Type: Int8, ElemSize: 1, MinMax: 1},
	}
	want, err := newEncoder(t, vars...).Format()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got, err := newEncoder(t, vars...).Format(); err != nil || got.ID() != want.ID() {
			t.Fatalf("format %v, want %v, %v", got.ID(), want.ID(), err)
		}
	}
}

// A record that was cut anywhere is refused.
func TestMetadataRecordTruncated(t *testing.T) {
	m := newEncoder(t, valueI, valueS, arrayX, arrayL)
	if err := errors.Join(m.SetText(1, "text"), m.SetArray(2, blocksX())); err != nil {
		t.Fatal(err)
	}
	rec, schema := encoded(t, m, 32)
	for n := range rec {
		if _, err := schema.Metadata(rec[:n:n]); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(rec))
		}
	}
}

// Bits beyond the first word.
func TestMetadataManyBits(t *testing.T) {
	m := newEncoder(t)
	for i := range 130 {
		if _, err := m.Add(VarDesc{Name: fmt.Sprint("v", i), Kind: GlobalValue, Type: Uint8, ElemSize: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, 63, 64, 129} {
		if err := m.SetValue(i, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	rec, err := m.Append(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := m.Format()
	schema, err := ParseSchema(f)
	if err != nil {
		t.Fatal(err)
	}
	md, err := schema.Metadata(rec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 130 {
		want := i == 0 || i == 63 || i == 64 || i == 129
		if md.Has(i) != want {
			t.Errorf("variable %d written: %v", i, md.Has(i))
		}
		if b, err := md.Value(i); err != nil || want && b[0] != byte(i) || !want && b[0] != 0 {
			t.Errorf("variable %d: %x, %v", i, b, err)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	m := newEncoder(t, valueI, valueS, arrayX, arrayL)
	bad := func(i int, change func(a *ArrayMeta)) error {
		a := blocksX()
		if i == 3 {
			a.MinMax, a.Shape, a.Offset, a.StoredSize = nil, nil, nil, []uint64{1, 2}
		}
		if err := m.SetArray(i, a); err != nil {
			t.Errorf("the array as such: %v", err)
		}
		change(a)
		return m.SetArray(i, a)
	}
	for name, err := range map[string]error{
		"negative":         m.SetValue(-1, nil),
		"beyond":           m.SetValue(4, nil),
		"short value":      m.SetValue(0, []byte{1}),
		"long value":       m.SetValue(0, []byte{1, 2, 3}),
		"bytes for text":   m.SetValue(1, make([]byte, 8)),
		"bytes for array":  m.SetValue(2, nil),
		"text for number":  m.SetText(0, "x"),
		"text for array":   m.SetText(2, "x"),
		"NUL":              m.SetText(1, "a\x00"),
		"array for number": m.SetArray(0, blocksX()),
		"no dims":          bad(2, func(a *ArrayMeta) { a.Dims = 0 }),
		"blocks":           bad(2, func(a *ArrayMeta) { a.Blocks = 3 }),
		"negative blocks":  bad(2, func(a *ArrayMeta) { a.Blocks = -1 }),
		"shape":            bad(2, func(a *ArrayMeta) { a.Shape = []uint64{1, 2} }),
		"count":            bad(2, func(a *ArrayMeta) { a.Count = a.Count[:1] }),
		"offset":           bad(2, func(a *ArrayMeta) { a.Offset = a.Offset[:1] }),
		"location":         bad(2, func(a *ArrayMeta) { a.Location = nil }),
		"minmax":           bad(2, func(a *ArrayMeta) { a.MinMax = a.MinMax[:8] }),
		"stored size":      bad(2, func(a *ArrayMeta) { a.StoredSize = []uint64{1, 2} }),
		"no stored size":   bad(3, func(a *ArrayMeta) { a.StoredSize = nil }),
		"stats of no-MM":   bad(3, func(a *ArrayMeta) { a.MinMax = make([]byte, 16) }),
	} {
		if !errors.Is(err, ErrEncode) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A steady step costs one allocation, the record itself; the race detector adds
// one.
func TestMetadataAllocations(t *testing.T) {
	m := newEncoder(t, valueI, valueS, arrayX)
	a := blocksX()
	value := []byte{1, 2}
	step := func() {
		m.Begin()
		if errors.Join(m.SetValue(0, value), m.SetText(1, "text"), m.SetArray(2, a)) != nil {
			t.Fatal("set")
		}
		if _, err := m.Append(nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(100, step); n > 2 {
		t.Errorf("%v allocations a step", n)
	}
}

func BenchmarkMetadata10000(b *testing.B) {
	m := NewMetadataEncoder()
	for i := range 10000 {
		v := arrayX
		v.Name = fmt.Sprint("variable", i)
		if _, err := m.Add(v); err != nil {
			b.Fatal(err)
		}
	}
	a := blocksX()
	b.ReportAllocs()
	for b.Loop() {
		m.Begin()
		for i := range m.Len() {
			if err := m.SetArray(i, a); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := m.Append(nil, 0); err != nil {
			b.Fatal(err)
		}
	}
}
