package cm

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestErrorsSayWhere: an error names the unit, and the byte at which it began.
func TestErrorsSayWhere(t *testing.T) {
	first := Data{Record: make([]byte, 100)}.Append(nil) // 108 bytes
	tests := []struct {
		name string
		tail []byte
		want string
	}{
		{"data", claim(50)[:7], "data message at byte 108"},
		{"long data", LongData{Record: []byte("x")}.Append(nil)[:16], "long data message at byte 108"},
		{"attribute data", AttrData{Record: []byte("x")}.Append(nil)[:16], "attribute data message at byte 108"},
		{"attribute data, list", AttrData{Attrs: make([]byte, 8)}.Append(nil)[:17], "attribute data message at byte 108"},
		{"attribute data, header", AttrData{}.Append(nil)[:10], "attribute data message at byte 108"},
		{"handshake", Handshake{}.Append(nil)[:10], "handshake at byte 108"},
		{"format", Push(nil, nil).Append(nil)[:10], "format message at byte 108"},
		{"format, body", Push(nil, []byte("x")).Append(nil)[:24], "format message at byte 108"},
		{"long data, header", LongData{}.Append(nil)[:10], "long data message at byte 108"},
		{"magic", []byte("what"), "unit at byte 108"},
		{"half a magic", []byte("wh"), "unit at byte 108"},
	}
	for _, tt := range tests {
		r := NewReader(bytes.NewReader(append(bytes.Clone(first), tt.tail...)), ReaderConfig{})
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		_, err := r.Next()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", tt.name, err, tt.want)
		}
	}
}

func TestContactErrorsSayWhere(t *testing.T) {
	for wire, want := range map[string]string{
		"00010100 94c9f28d01c10000 04030201 03000000 0300": "offset 12: attribute 0x01020304",
		"00000100 04030201":          "offset 4",
		"00000100 04030201 07000000": "kind 7 cannot stand here",
		"00020000 94c9f28d01c10000":  "2 integers",
		"00000000 00000001":          "offset 4: 4 bytes behind the list",
	} {
		if _, err := ParseAttrs(unhex(t, wire)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", wire, err, want)
		}
	}
}

// TestErrorTexts: the typed errors name what a user must know.
func TestErrorTexts(t *testing.T) {
	if s := (&TransportError{Transport: "enet"}).Error(); !strings.Contains(s, `"enet"`) || !strings.Contains(s, "sockets") {
		t.Error(s)
	}
	if s := (&HostOnlyError{Host: "node7", Port: 80}).Error(); !strings.Contains(s, `"node7"`) || !strings.Contains(s, "80") {
		t.Error(s)
	}
	_, _, err := ParseUnit([]byte("GET / HTTP/1.1"))
	if !strings.Contains(err.Error(), `"GET "`) {
		t.Error(err)
	}
	all := []error{ErrContact, ErrNoAddress, ErrMagic, ErrByteOrder, ErrUnsupported, ErrMalformed, ErrTooLarge, ErrChecksum, ErrNoBuffer}
	for i, a := range all {
		for j, b := range all {
			if errors.Is(a, b) != (i == j) {
				t.Errorf("%v and %v", a, b)
			}
		}
		if !strings.HasPrefix(a.Error(), "cm: ") {
			t.Error(a)
		}
	}
}
