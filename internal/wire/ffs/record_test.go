package ffs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

func TestRecordExample(t *testing.T) {
	f, rec := queryResponse(t)
	if got := f.ID().String(); got != "02000027d02ddad87f49360d" {
		t.Fatalf("ID %s", got)
	}
	r, n, err := f.Record(append(rec, 0, 0, 0)) // padding is not part of it
	if err != nil || n != len(rec) || r.Format() != f {
		t.Fatalf("%d bytes of %d, %v", n, len(rec), err)
	}
	v := r.Top()
	if c, err := v.Int(v.Index("writer_response_condition")); c != 2 || err != nil {
		t.Errorf("condition %d, %v", c, err)
	}
	if s, ok, err := v.Text(v.Index("writer_data_plane")); s != "evpath" || !ok || err != nil {
		t.Errorf("plane %q, %v, %v", s, ok, err)
	}
	checkEncoded(t, r, rec)
}

// The metadata record of docs/wire/bp5.md §2.6, with ADIOS2's own offsets.
func TestRecordBP5Example(t *testing.T) {
	array := Struct{Name: "MetaArray", RecordLen: 56, Fields: []Field{
		{"Dims", "integer", 8, 0}, {"BlockCount", "integer", 8, 8}, {"DBCount", "integer", 8, 16},
		{"Shape", "integer[Dims]", 8, 24}, {"Count", "integer[DBCount]", 8, 32},
		{"Offset", "integer[DBCount]", 8, 40}, {"DataBlockLocation", "integer[BlockCount]", 8, 48},
	}}
	f, err := Ordered(Struct{Name: "MetaData", RecordLen: 120, Fields: []Field{
		{"BitFieldCount", "integer", 8, 0}, {"BitField", "integer[BitFieldCount]", 8, 8},
		{"DataBlockSize", "integer", 8, 16}, {"BPG_4_3_x", "MetaArray", 56, 56}, {"BPg_s", "float", 8, 112},
	}}, array)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.ID().String(); got != "0200008dcd01df7b066f7ba7" {
		t.Fatalf("ID %s", got)
	}
	b := f.NewRecord()
	b.SetInt(0, 1)
	b.SetRaw(1, words(3))
	b.SetInt(2, 16)
	a := b.Child("MetaArray")
	b.SetStructs(3, a) // filled afterwards
	for i := range 3 {
		a.SetInt(i, 1)
	}
	for i, w := range []uint64{4, 4, 0, 0} {
		a.SetRaw(3+i, words(w))
	}
	b.SetFloat(4, 0.25)
	got, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := append(unhex(t, `0200008dcd01df7b066f7ba7 a000000000000000 00000000`),
		words(1, 0x78, 16, 0, 0, 0, 0, 1, 1, 1, 0x80, 0x88, 0x90, 0x98, 0x3fd0000000000000, 3, 4, 4, 0, 0)...)
	if !bytes.Equal(got, want) {
		t.Errorf("% x\nwant\n% x", got, want)
	}
}

// words returns little-endian 64-bit words.
func words(w ...uint64) []byte {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

func TestRecordHeader(t *testing.T) {
	f, rec := queryResponse(t)
	tests := []struct {
		name string
		rec  []byte
		want error
	}{
		{"empty", nil, ErrTruncated},
		{"other ID", edit(rec, 11, 0), ErrOtherFormat},
		{"ID only", rec[:12], ErrTruncated},
		{"header only", rec[:24], ErrTruncated},
		{"one byte short", rec[:len(rec)-1], ErrTruncated},
		{"length long", edit(rec, 12, 24), ErrTruncated},
		{"length huge", edit(rec, 19, 0xff), ErrTruncated},
		{"length short", edit(rec, 12, 15), ErrRecord},
		{"length 0", edit(rec, 12, 0), ErrRecord},
		{"string cut", edit(rec, 12, 22), ErrRecord},
		{"string outside", edit(rec, 32, 24), ErrRecord},
		{"string at the end", edit(rec, 32, 23), ErrRecord},
		{"string negative", edit(rec, 39, 0xff), ErrRecord},
	}
	for _, tt := range tests {
		if _, n, err := f.Record(tt.rec); !errors.Is(err, tt.want) || n != 0 {
			t.Errorf("%s: %d, %v, want %v", tt.name, n, err, tt.want)
		}
	}
}

func TestRecordNotVariant(t *testing.T) {
	f, err := New(readerActivate)
	if err != nil {
		t.Fatal(err)
	}
	rec := append(unhex(t, "02000019d952f615b60dcc2a 00000000"), words(0x55f6ad3ae2f0)...)
	b := f.NewRecord()
	b.SetInt(0, 0x55f6ad3ae2f0)
	if got, err := b.Append(nil); !bytes.Equal(got, rec) || err != nil {
		t.Errorf("% x, %v", got, err)
	}
	r, n, err := f.Record(append(rec, 1, 2))
	if err != nil || n != 24 {
		t.Fatal(n, err)
	}
	if v, err := r.Top().Int(0); v != 0x55f6ad3ae2f0 || err != nil {
		t.Errorf("%x, %v", v, err)
	}
	for n := range rec {
		if _, _, err := f.Record(rec[:n]); !errors.Is(err, ErrTruncated) {
			t.Errorf("prefix of %d bytes: %v", n, err)
		}
	}
	checkEncoded(t, r, rec)
}

// listFormat is a format like that of FFSFormatBlock.
func listFormat(tb testing.TB) *Format {
	tb.Helper()
	f, err := New(Struct{Name: "Top", RecordLen: 8, Fields: []Field{{"formats", "*Block", 32, 0}}},
		Struct{Name: "Block", RecordLen: 32, Fields: []Field{
			{"Rep", "char[RepLen]", 1, 0}, {"RepLen", "integer", 4, 8}, {"Next", "*Block", 32, 16}, {"name", "string", 8, 24},
		}})
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// list builds a record with a list of n blocks.
func list(f *Format, n int) *Builder {
	top := f.NewRecord()
	blocks := make([]*Builder, n)
	for i := range blocks {
		blocks[i] = top.Child("Block")
		blocks[i].SetInt(1, 3)
		blocks[i].SetRaw(0, []byte("abc"))
		blocks[i].SetText(3, "n")
		if i > 0 {
			blocks[i-1].SetStructs(2, blocks[i])
		}
	}
	top.SetStructs(0, blocks[0])
	return top
}

func TestLongList(t *testing.T) {
	const n = 20_000
	f := listFormat(t)
	rec, err := list(f, n).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := f.Record(rec)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for v := must(r.Top().Struct(0)); !v.IsNil(); v = must(v.Struct(2)) {
		if p := must(v.Raw(0)); string(p) != "abc" {
			t.Fatalf("block %d: %q", count, p)
		}
		count++
	}
	if count != n {
		t.Errorf("%d blocks, want %d", count, n)
	}
	checkEncoded(t, r, rec)
}

// A list that comes back to an earlier block must not be followed for ever.
func TestCycles(t *testing.T) {
	f := listFormat(t)
	rec, err := list(f, 50).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	first := binary.LittleEndian.Uint64(rec[longHeader:])
	at := first
	for range 49 {
		next := binary.LittleEndian.Uint64(rec[longHeader+at+16:])
		bad := bytes.Clone(rec)
		binary.LittleEndian.PutUint64(bad[longHeader+at+16:], first)
		if _, _, err := f.Record(bad); !errors.Is(err, ErrRecord) {
			t.Fatalf("a cycle from %d: %v", at, err)
		}
		at = next
	}
}

// tree is a format in which a struct has a row of pointers to the same struct.
func treeFormat(tb testing.TB) *Format {
	tb.Helper()
	f, err := New(Struct{Name: "Node", RecordLen: 24, Fields: []Field{
		{"n", "integer", 4, 0}, {"kids", "(*Node)[n]", 24, 8}, {"name", "string", 8, 16},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// Targets may be shared, but not so much that walking over them takes more than
// the record is long: 30 levels of 16 pointers to the same next level would be
// 2^120 structs.
func TestSharedTargets(t *testing.T) {
	f := treeFormat(t)
	node := func(slots int) []byte {
		head := words(uint64(slots), 24, 0)
		if slots == 0 {
			head = words(0, 0, 0)
		}
		return head
	}
	share := func(levels, width int) []byte {
		body := node(width)
		for i := range levels {
			next := uint64(len(body) + 8*width)
			body = append(body, words(slices.Repeat([]uint64{next}, width)...)...)
			kids := 0
			if i+1 < levels {
				kids = width
			}
			n := node(kids)
			if kids > 0 {
				binary.LittleEndian.PutUint64(n[8:], next+24)
			}
			body = append(body, n...)
		}
		return variant(f, body)
	}
	if r, _, err := f.Record(share(1, 3)); err != nil {
		t.Errorf("three pointers to one struct: %v", err)
	} else if kids := must(r.Top().Structs(1)); len(kids) != 3 || kids[2].Name() != "Node" {
		t.Errorf("%d kids", len(kids))
	}
	if _, _, err := f.Record(share(30, 16)); !errors.Is(err, ErrRecord) {
		t.Errorf("30 levels: %v", err)
	}
}

// Many slots that point at one long string would make reading them quadratic.
func TestSharedStrings(t *testing.T) {
	f, err := New(Struct{Name: "S", RecordLen: 16, Fields: []Field{{"n", "integer", 8, 0}, {"a", "string[n]", 8, 8}}})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	body := words(n, 16)
	body = append(body, words(slices.Repeat([]uint64{16 + 8*n}, n)...)...)
	body = append(append(body, bytes.Repeat([]byte("x"), 8*n)...), 0)
	if _, _, err := f.Record(variant(f, body)); !errors.Is(err, ErrRecord) {
		t.Errorf("%v, want ErrRecord", err)
	}
}

// variant puts the header of a variant record before body.
func variant(f *Format, body []byte) []byte {
	id := f.ID()
	rec := append(id[:], make([]byte, longHeader-IDLen)...)
	rec = append(rec, body...)
	putLength(rec)
	return rec
}

func TestCounts(t *testing.T) {
	f, err := New(Struct{Name: "S", RecordLen: 32, Fields: []Field{
		{"n", "integer", 4, 0}, {"u", "unsigned integer", 1, 4}, {"b", "boolean", 1, 5},
		{"a", "integer[n][u]", 8, 8}, {"c", "char[16][n]", 1, 16}, {"x", "integer", 8, 24},
	}})
	if err != nil {
		t.Fatal(err)
	}
	head := func(n int32, u byte, a, c uint64) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(n))
		return append(append(b, u, 0, 0, 0), words(a, c, 0)...)
	}
	tests := []struct {
		name string
		body []byte
		want error
		a, c int
	}{
		{"NULL", head(0, 0, 0, 0), nil, 0, 0},
		{"NULL with counts", head(5, 9, 0, 0), nil, 0, 0},
		{"NULL with negative counts", head(-5, 9, 0, 0), nil, 0, 0},
		{"not NULL, count 0", head(0, 9, 32, 32), nil, 0, 0},
		{"at the end, count 0", head(0, 0, 32, 32), nil, 0, 0},
		{"beyond the end, count 0", head(0, 0, 33, 0), ErrRecord, 0, 0},
		{"2 x 2", append(head(2, 2, 32, 64), make([]byte, 64)...), nil, 4, 32},
		{"2 x 2, one byte short", append(head(2, 2, 32, 64), make([]byte, 63)...), ErrRecord, 0, 0},
		{"negative", append(head(-1, 2, 32, 0), make([]byte, 64)...), ErrRecord, 0, 0},
		{"huge", append(head(1<<31-1, 255, 32, 0), make([]byte, 64)...), ErrRecord, 0, 0},
	}
	for _, tt := range tests {
		r, _, err := f.Record(variant(f, tt.body))
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if err != nil || tt.want != nil {
			continue
		}
		a, errA := r.Top().Count(3)
		c, errC := r.Top().Count(4)
		if a != tt.a || c != tt.c || errA != nil || errC != nil {
			t.Errorf("%s: counts %d and %d, want %d and %d", tt.name, a, c, tt.a, tt.c)
		}
		if p, err := r.Top().Raw(4); len(p) != tt.c || err != nil {
			t.Errorf("%s: %d bytes, %v", tt.name, len(p), err)
		}
	}
}

// Products of counts must not wrap around.
func TestCountOverflow(t *testing.T) {
	f, err := New(Struct{Name: "S", RecordLen: 24, Fields: []Field{
		{"n", "integer", 8, 0}, {"m", "unsigned integer", 8, 8}, {"a", "integer[n][m]", 8, 16},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]uint64{{1 << 32, 1 << 32}, {1 << 61, 8}, {1 << 63, 1}, {1, 1 << 63}, {1<<63 - 1, 1<<63 - 1}, {1 << 60, 1}, {3, 1}} {
		body := append(words(c[0], c[1], 24), make([]byte, 16)...)
		if _, _, err := f.Record(variant(f, body)); !errors.Is(err, ErrRecord) {
			t.Errorf("%d x %d: %v", c[0], c[1], err)
		}
	}
}

// A NULL pointer to a struct that is larger than the whole record is NULL.
func TestNullOfLarge(t *testing.T) {
	f, err := New(Struct{Name: "S", RecordLen: 8, Fields: []Field{{"p", "*Large", 1000, 0}}}, Struct{Name: "Large", RecordLen: 1000})
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := f.Record(variant(f, words(0)))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Top().Struct(0); !v.IsNil() || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	if _, _, err := f.Record(variant(f, words(8))); !errors.Is(err, ErrRecord) {
		t.Errorf("not NULL: %v", err)
	}
}

// Reading a small message must not allocate anything but its strings.
func TestRecordAllocs(t *testing.T) {
	f, rec := queryResponse(t)
	if n := testing.AllocsPerRun(100, func() {
		r, _, err := f.Record(rec)
		if err != nil || r.Top().IsNil() {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
