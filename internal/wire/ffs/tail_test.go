package ffs

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// reply is a format like that of a read reply: numbers on both sides of an array.
func reply(t testing.TB, extra ...Field) *Format {
	t.Helper()
	f, err := New(Struct{Name: "reply", RecordLen: 40, Fields: append([]Field{
		{Name: "step", Type: "integer", Size: 8, Offset: 0},
		{Name: "length", Type: "integer", Size: 8, Offset: 8},
		{Name: "data", Type: "char[length]", Size: 1, Offset: 16},
		{Name: "n", Type: "integer", Size: 4, Offset: 24},
	}, extra...)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func replyRecord(t testing.TB, f *Format, data []byte) []byte {
	t.Helper()
	b := f.NewRecord()
	b.SetInt(0, 7)
	b.SetInt(1, int64(len(data)))
	b.SetRaw(2, data)
	b.SetInt(3, -5)
	rec, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestTail(t *testing.T) {
	f := reply(t)
	data := bytes.Repeat([]byte("weft"), 25)
	rec := replyRecord(t, f, data)
	for n := range rec {
		tail, ok := f.Tail(rec[:n], len(rec))
		if ok != (n >= longHeader+40) {
			t.Fatalf("%d of %d bytes: %v", n, len(rec), ok)
		}
		if !ok {
			continue
		}
		if !bytes.Equal(rec[tail.Offset:], data) || tail.Field != 2 {
			t.Fatalf("%+v", tail)
		}
		for i, want := range map[int]int64{0: 7, 1: 100, 3: -5} {
			if got, err := tail.Top.Int(i); err != nil || got != want {
				t.Errorf("field %d: %d, %v", i, got, err)
			}
		}
		if b, err := tail.Top.Raw(2); err == nil {
			t.Errorf("the array is not there, but %d bytes of it were read", len(b))
		}
	}
	if _, ok := f.Tail(rec, len(rec)-1); ok {
		t.Error("a record of another length was accepted")
	}
}

// TestTailRefused changes one word at a time.
func TestTailRefused(t *testing.T) {
	f := reply(t)
	good := replyRecord(t, f, make([]byte, 100))
	for name, damage := range map[string]func(rec []byte){
		"another format":       func(rec []byte) { rec[11]++ },
		"length in the header": func(rec []byte) { rec[IDLen]++ },
		"huge length":          func(rec []byte) { binary.LittleEndian.PutUint64(rec[IDLen:], 1<<63) },
		"shorter array":        func(rec []byte) { rec[longHeader+8]-- },
		"longer array":         func(rec []byte) { rec[longHeader+8]++ },
		"negative array":       func(rec []byte) { binary.LittleEndian.PutUint64(rec[longHeader+8:], 1<<63) },
		"NULL":                 func(rec []byte) { binary.LittleEndian.PutUint64(rec[longHeader+16:], 0) },
		"on the struct":        func(rec []byte) { rec[longHeader+16] = 32; rec[longHeader+8] += 8 },
		"behind the end":       func(rec []byte) { binary.LittleEndian.PutUint64(rec[longHeader+16:], 1<<63) },
		"gap before the end":   func(rec []byte) { rec[longHeader+16] = 48 },
	} {
		rec := bytes.Clone(good)
		damage(rec)
		if tail, ok := f.Tail(rec, len(rec)); ok {
			t.Errorf("%s: %+v", name, tail)
		}
	}
	two := reply(t, Field{Name: "more", Type: "char[length]", Size: 1, Offset: 32})
	if _, ok := two.Tail(replyRecord(t, two, make([]byte, 100)), 100+longHeader+40); ok {
		t.Error("a format with two arrays")
	}
	text, err := New(Struct{Name: "text", RecordLen: 8, Fields: []Field{{Name: "s", Type: "string", Size: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	b := text.NewRecord()
	b.SetText(0, "hello")
	rec, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := text.Tail(rec, len(rec)); ok {
		t.Error("a string is no array")
	}
}

// FuzzTail: what Tail accepts, Record accepts too, and they agree.
func FuzzTail(f *testing.F) {
	format := reply(f)
	f.Add(replyRecord(f, format, make([]byte, 100)), 0)
	f.Fuzz(func(t *testing.T, rec []byte, cut int) {
		if len(rec) >= IDLen {
			id := format.ID()
			copy(rec, id[:])
		}
		head := rec[:max(0, len(rec)-max(0, cut))]
		tail, ok := format.Tail(head, len(rec))
		if !ok {
			return
		}
		r, n, err := format.Record(rec)
		if err != nil || n != len(rec) {
			t.Fatalf("Record: %d of %d bytes, %v", n, len(rec), err)
		}
		raw, err := r.Top().Raw(tail.Field)
		if err != nil || !bytes.Equal(raw, rec[tail.Offset:]) {
			t.Fatalf("%d bytes of %d, %v", len(raw), len(rec)-tail.Offset, err)
		}
	})
}
