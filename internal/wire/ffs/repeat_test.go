package ffs

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// repeatFormat has a count, a number that counts nothing, a dynamic array, a string, a struct in place
// and one behind a slot.
func repeatFormat(tb testing.TB) (*Format, []byte) {
	tb.Helper()
	inner := Struct{Name: "Inner", RecordLen: 16, Fields: []Field{{"a", "integer", 8, 0}, {"s", "string", 8, 8}}}
	f, err := New(Struct{Name: "Top", RecordLen: 64, Fields: []Field{
		{"n", "integer", 8, 0},
		{"free", "float", 8, 8},
		{"list", "integer[n]", 8, 16},
		{"in", "Inner", 16, 24},
		{"out", "*Inner", 16, 40},
		{"few", "integer[2]", 4, 48}, // and a gap
	}}, inner)
	if err != nil {
		tb.Fatal(err)
	}
	b := f.NewRecord()
	b.SetInt(0, 3)
	b.SetFloat(1, 0.5)
	b.SetRaw(2, words(7, 8, 9))
	in := b.Child("Inner")
	in.SetInt(0, 1)
	in.SetText(1, "text")
	b.SetStructs(3, in)
	b.SetStructs(4, in)
	b.SetRaw(5, words(1))
	rec, err := b.Append(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return f, rec
}

// TestRepeat changes each byte of a record: it repeats as long as that is in an atom in place that
// counts nothing, or in a gap, and then it says what a check would have said.
func TestRepeat(t *testing.T) {
	f, rec := repeatFormat(t)
	r, n, err := f.Record(rec)
	if err != nil {
		t.Fatal(err)
	}
	free := func(i int) bool {
		at := i - longHeader
		return at >= 8 && at < 16 || at >= 48 && at < 64
	}
	for i := range rec[:n] {
		if i >= IDLen+8 && i < longHeader {
			continue // not looked at by Record either
		}
		other := bytes.Clone(rec)
		other[i] ^= 0x5a
		again, ok := r.Repeat(other)
		if ok != free(i) {
			t.Errorf("byte %d: %v, want %v", i, ok, free(i))
		}
		if ok && !bytes.Equal(again.body, other[longHeader:n]) {
			t.Errorf("byte %d: another record", i)
		}
	}
	for i := range rec[:n] {
		if _, ok := r.Repeat(rec[:i]); ok {
			t.Errorf("%d bytes of %d repeat", i, n)
		}
	}
	if _, ok := r.Repeat(append(bytes.Clone(rec), 0, 0)); !ok {
		t.Error("padding makes a difference")
	}
	longer := append(bytes.Clone(rec), 0)
	putLength(longer)
	if _, ok := r.Repeat(longer); ok {
		t.Error("a longer one repeats")
	}
	if _, ok := (Record{}).Repeat(rec); ok {
		t.Error("the zero Record repeats")
	}
}

// TestRepeatWithoutSlots: records of fixed length have no header with a length.
func TestRepeatWithoutSlots(t *testing.T) {
	f, err := New(Struct{Name: "Flat", RecordLen: 8, Fields: []Field{{"a", "integer", 4, 0}, {"b", "float", 4, 4}}})
	if err != nil {
		t.Fatal(err)
	}
	id := f.ID()
	rec := binary.LittleEndian.AppendUint32(append([]byte{}, id[:]...), 0)
	r, _, err := f.Record(append(rec, 1, 0, 0, 0, 2, 0, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	again, ok := r.Repeat(append(rec, 3, 0, 0, 0, 4, 0, 0, 0, 9))
	if a, err := again.Top().Int(0); !ok || a != 3 || err != nil {
		t.Errorf("%v, %d, %v", ok, a, err)
	}
	if _, ok := r.Repeat(rec); ok {
		t.Error("a header alone repeats")
	}
}

// TestRepeatInward: what a slot finds in the top struct, or in a gap of it, is more than a number. Such a record
// has none that repeats it: that one would not have been checked.
func TestRepeatInward(t *testing.T) {
	inner := Struct{Name: "Inner", RecordLen: 16, Fields: []Field{{"n", "integer", 8, 0}, {"list", "integer[n]", 8, 8}}}
	for typ, c := range map[string]struct{ good, bad, last uint64 }{ // the words at 16, and at 24
		"*Inner":     {0, 1 << 40, 8},
		"string":     {0, ^uint64(0), ^uint64(0)},
		"integer[n]": {1, 2, 3},
	} {
		top := []Field{{"n", "integer", 8, 0}, {"slot", typ, 8, 8}}
		for what, fields := range map[string][]Field{"a gap": top, "a field": append(top, Field{"free", "integer[2]", 8, 16})} {
			f, err := New(Struct{Name: "Top", RecordLen: 32, Fields: fields}, inner)
			if err != nil {
				t.Fatal(err)
			}
			id := f.ID()
			record := func(word uint64) []byte {
				rec := append(append([]byte{}, id[:]...), make([]byte, longHeader-IDLen)...)
				rec = append(rec, words(2, 16, word, c.last)...)
				putLength(rec)
				return rec
			}
			r, _, err := f.Record(record(c.good))
			if err != nil {
				t.Fatalf("%s in %s: %v", typ, what, err)
			}
			if _, ok := r.Repeat(record(c.bad)); ok {
				t.Errorf("%s in %s: another one repeats it", typ, what)
			}
		}
	}
}
