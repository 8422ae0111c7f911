package ffs

import (
	"fmt"
	"testing"
)

// wide returns a format like that of a BP5 step with n variables, every second
// one an array, and a record of it.
func wide(tb testing.TB, n int) (*Format, []byte) {
	tb.Helper()
	array := Struct{Name: "MetaArray", RecordLen: 56, Fields: []Field{
		{"Dims", "integer", 8, 0},
		{"BlockCount", "integer", 8, 8},
		{"DBCount", "integer", 8, 16},
		{"Shape", "integer[Dims]", 8, 24},
		{"Count", "integer[DBCount]", 8, 32},
		{"Offset", "integer[DBCount]", 8, 40},
		{"DataBlockLocation", "integer[BlockCount]", 8, 48},
	}}
	top := Struct{Name: "MetaData"}
	for i := range n {
		f := Field{fmt.Sprintf("BPg_value%d", i), "float", 8, top.RecordLen}
		if i%2 == 0 {
			f = Field{fmt.Sprintf("BPG_8_10_array%d", i), "MetaArray", 56, top.RecordLen}
		}
		top.RecordLen += f.Size
		top.Fields = append(top.Fields, f)
	}
	f, err := New(top, array)
	if err != nil {
		tb.Fatal(err)
	}
	rec, err := fillWide(f, n).Append(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return f, rec
}

var wideDims, wideBlock = make([]byte, 24), make([]byte, 8)

func fillWide(f *Format, n int) *Builder {
	b := f.NewRecord()
	for i := range n {
		if i%2 != 0 {
			b.SetFloat(i, float64(i))
			continue
		}
		a := b.Child("MetaArray")
		a.SetInt(0, 3)
		a.SetInt(1, 1)
		a.SetInt(2, 3)
		a.SetRaw(3, wideDims)
		a.SetRaw(4, wideDims)
		a.SetRaw(5, wideDims)
		a.SetRaw(6, wideBlock)
		b.SetStructs(i, a)
	}
	return b
}

const wideFields = 10000

func BenchmarkParse(b *testing.B) {
	f, _ := wide(b, wideFields)
	b.SetBytes(int64(len(f.Body())))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(f.Body()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode checks a record and reads all of it.
func BenchmarkDecode(b *testing.B) {
	f, rec := wide(b, wideFields)
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		r, _, err := f.Record(rec)
		if err != nil {
			b.Fatal(err)
		}
		if err := readWide(r.Top()); err != nil {
			b.Fatal(err)
		}
	}
}

func readWide(top View) error {
	for i := range top.NumFields() {
		if i%2 != 0 {
			if _, err := top.Float(i); err != nil {
				return err
			}
			continue
		}
		a, err := top.Struct(i)
		if err != nil {
			return err
		}
		for k := range 3 {
			if _, err := a.Int(k); err != nil {
				return err
			}
		}
		for k := 3; k < 7; k++ {
			if _, err := a.Raw(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// BenchmarkCheck is the part of BenchmarkDecode that Record does.
func BenchmarkCheck(b *testing.B) {
	f, rec := wide(b, wideFields)
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := f.Record(rec); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode builds a record and encodes it.
func BenchmarkEncode(b *testing.B) {
	f, rec := wide(b, wideFields)
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	buf := make([]byte, 0, len(rec))
	for b.Loop() {
		out, err := fillWide(f, wideFields).Append(buf)
		if err != nil || len(out) != len(rec) {
			b.Fatal(len(out), err)
		}
	}
}

// BenchmarkSmall reads one control message.
func BenchmarkSmall(b *testing.B) {
	f, rec := queryResponse(b)
	b.ReportAllocs()
	for b.Loop() {
		r, _, err := f.Record(rec)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Top().Int(0); err != nil {
			b.Fatal(err)
		}
	}
}
