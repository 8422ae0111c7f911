package ffs

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
)

// putLength sets the length in the header of a variant record to what it has.
func putLength(rec []byte) {
	binary.LittleEndian.PutUint64(rec[IDLen:], uint64(len(rec)-longHeader))
}

// queryResponse returns the worked example of docs/wire/ffs.md §5.3.
func queryResponse(tb testing.TB) (*Format, []byte) {
	tb.Helper()
	f, err := New(Struct{Name: "DPQueryResponse", RecordLen: 16, Fields: []Field{
		{"writer_response_condition", "integer", 4, 0},
		{"writer_data_plane", "string", 8, 8},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return f, unhex(tb, `02000027d02ddad87f49360d 1700000000000000 00000000
		02000000 00000000 1000000000000000 65767061746800`)
}

// unhex reads hexadecimal digits, spaces between them ignored.
func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
