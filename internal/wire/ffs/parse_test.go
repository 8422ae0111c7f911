package ffs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

// edit returns a copy of b with the bytes at off replaced.
func edit(b []byte, off int, with ...byte) []byte {
	c := bytes.Clone(b)
	copy(c[off:], with)
	return c
}

// The struct description of ReaderActivate begins at 8, its field entry at 36,
// its strings at 52.
func TestParseRefuses(t *testing.T) {
	good := unhex(t, readerActivateBody)
	tests := []struct {
		name string
		body []byte
		want error
	}{
		{"big-endian", edit(good, 2, 1), ErrUnsupported},
		{"version 1", edit(good, 3, 1), ErrUnsupported},
		{"struct version 0", edit(good, 8+2, 0), ErrUnsupported},
		{"struct big-endian", edit(good, 8+3, 1), ErrUnsupported},
		{"32-bit", edit(good, 8+16, 4), ErrUnsupported},
		{"header size", edit(good, 8+17, 24), ErrUnsupported},
		{"float format", edit(good, 8+18, 1), ErrUnsupported},
		{"length 0", edit(good, 0, 0, 0), ErrFormat},
		{"length 7", edit(good, 0, 0, 7), ErrFormat},
		{"length 8", edit(good, 0, 0, 8), ErrFormat},
		{"length short", edit(good, 0, 0, 96), ErrFormat},
		{"length long", edit(good, 0, 0, 101), ErrTruncated},
		{"length huge", edit(good, 6, 0xff, 0xff), ErrTruncated},
		{"one subformat too many", edit(good, 4, 1), ErrFormat},
		{"struct length 27", edit(good, 8, 0, 27), ErrFormat},
		{"struct length short", edit(good, 8, 0, 88), ErrFormat},
		{"struct length long", edit(good, 8, 0, 96), ErrFormat},
		{"struct length huge", edit(good, 8+24, 1, 0), ErrFormat},
		{"name in the header", edit(good, 8+4, 4), ErrFormat},
		{"name outside", edit(good, 8+4, 0xff), ErrFormat},
		{"name huge", edit(good, 8+4, 0xff, 0xff, 0xff, 0xff), ErrFormat},
		{"too many fields", edit(good, 8+8, 5), ErrFormat},
		{"fields huge", edit(good, 8+8, 0xff, 0xff, 0xff, 0xff), ErrFormat},
		{"record too short", edit(good, 8+12, 7), ErrFormat},
		{"record huge", edit(good, 8+15, 0xff), ErrFormat},
		{"field name outside", edit(good, 36, 0xff), ErrFormat},
		{"field type outside", edit(good, 36+4, 0xff), ErrFormat},
		{"field size 0", edit(good, 36+8, 0), ErrFormat},
		{"field size huge", edit(good, 36+11, 0xff), ErrFormat},
		{"field offset", edit(good, 36+12, 1), ErrFormat},
		{"field offset huge", edit(good, 36+15, 0xff), ErrFormat},
		{"unknown type", edit(good, 78, 'x'), ErrFormat},
		{"strings without end", edit(good[:85], 0, 0, 85, 0, 2, 0, 0, 0, 0, 0, 77), ErrFormat},
	}
	for _, tt := range tests {
		f, n, err := Parse(tt.body)
		if !errors.Is(err, tt.want) || f != nil || n != 0 {
			t.Errorf("%s: %v, %d, %v, want %v", tt.name, f, n, err, tt.want)
		}
	}
}

func TestParsePrefixes(t *testing.T) {
	good := unhex(t, readerActivateBody)
	for n := range good {
		if _, _, err := Parse(good[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("prefix of %d bytes: %v", n, err)
		}
	}
}

// Whatever byte of a body is wrong, Parse neither panics nor reads a different
// length than it says.
func TestParseEveryByte(t *testing.T) {
	top, subs := generic()
	f, err := Ordered(top, subs...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Body() {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			bad := edit(f.Body(), i, v)
			g, n, err := Parse(bad)
			if err == nil && (n > len(bad) || !bytes.Equal(g.Body(), bad[:n])) {
				t.Errorf("byte %d = %d: %d bytes", i, v, n)
			}
		}
	}
}

// What is ignored in a body stays part of it, and so of its ID.
func TestParseKeepsBody(t *testing.T) {
	good := unhex(t, readerActivateBody)
	for _, off := range []int{5, 8 + 22, 8 + 23, len(good) - 1} { // recursive flag, column major, alignment, optional info
		odd := edit(good, off, 3)
		f, n, err := Parse(odd)
		if err != nil || n != len(odd) {
			t.Errorf("byte %d: %d, %v", off, n, err)
			continue
		}
		if !bytes.Equal(f.Body(), odd) || f.ID() != IDOf(odd) || f.ID() == IDOf(good) {
			t.Errorf("byte %d: body or ID are not those of the input", off)
		}
		odd[0] = 0xee
		if f.Body()[0] == 0xee {
			t.Error("the format shares the caller's bytes")
		}
	}
}

// Fields that share one long name would make reading the names quadratic.
func TestParseSharedNames(t *testing.T) {
	top := Struct{Name: "S", RecordLen: 1 << 20}
	for i := range 1 << 14 {
		top.Fields = append(top.Fields, Field{string(rune('a' + i%26)), "char", 1, i})
	}
	long := strings.Repeat("x", 1<<18)
	top.Name = long
	body, err := appendBody(nil, []Struct{top})
	if err != nil {
		t.Fatal(err)
	}
	name := binary.LittleEndian.Uint32(body[outerLen+4:])
	for i := range top.Fields {
		binary.LittleEndian.PutUint32(body[outerLen+structLen+entryLen*i:], name)
	}
	if _, _, err := Parse(body); !errors.Is(err, ErrFormat) {
		t.Errorf("%v, want ErrFormat", err)
	}
}

// Names that occur twice are taken from others; the first one is found.
func TestParseTwoNames(t *testing.T) {
	top := Struct{Name: "S", RecordLen: 8, Fields: []Field{{"a", "integer", 4, 0}, {"a", "integer", 4, 4}}}
	body, err := appendBody(nil, []Struct{top, {Name: "S", RecordLen: 1}})
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	if f.FieldIndex("a") != 0 || f.NewRecord().Child("S").Index("a") != 0 {
		t.Error("not the first one")
	}
}
