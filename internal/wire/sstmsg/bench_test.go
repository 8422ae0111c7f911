package sstmsg

import "testing"

// stepMessages are what goes over the wire for a small step that is preloaded.
func stepMessages() map[string]Message {
	return map[string]Message{
		"metadata": &TimestepMetadata{
			ReaderID: 1 << 40, Step: 7, CohortSize: 1, PreloadMode: 1,
			Metadata: []Block{{Data: ByteBlob(make([]byte, 120))}}, Attributes: []Block{{}},
		},
		"preload": &Preload{Step: 7, ReaderID: 1 << 40, Data: ByteBlob(make([]byte, 8))},
		"reply":   &ReadReply{Step: 7, ReaderID: 1 << 40, Condition: 3, Data: ByteBlob(make([]byte, 1<<20))},
		"request": &ReadRequest{Step: 7, Length: 8, WriterID: 1 << 40, ReaderID: 1 << 41, Condition: 3},
		"release": &ReleaseTimestep{WriterID: 1 << 40, Step: 7},
	}
}

func BenchmarkEncode(b *testing.B) {
	for name, m := range stepMessages() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Encode(m, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, m := range stepMessages() {
		f, rec, err := Append(nil, m, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(f, rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
