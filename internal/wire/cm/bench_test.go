package cm

import (
	"bytes"
	"testing"
)

func BenchmarkAppendDataHeader(b *testing.B) {
	parts := [][]byte{make([]byte, 200), make([]byte, 56)}
	buf := make([]byte, 0, MaxDataHeader)
	b.ReportAllocs()
	for b.Loop() {
		AppendDataHeader(buf, parts)
	}
}

func BenchmarkReaderSmall(b *testing.B) {
	one := Data{Record: make([]byte, 256)}.Append(nil)
	stream := bytes.NewReader(bytes.Repeat(one, 1000))
	pool := make([]byte, 256)
	config := ReaderConfig{Alloc: func(n int) []byte { return pool[:n] }}
	r := NewReader(stream, config)
	b.SetBytes(int64(len(one)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			stream.Reset(bytes.Repeat(one, 1000))
			r = NewReader(stream, config)
		}
	}
}

func BenchmarkParseContact(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseContact(contactMain); err != nil {
			b.Fatal(err)
		}
	}
}
