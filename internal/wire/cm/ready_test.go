package cm

import (
	"errors"
	"io"
	"reflect"
	"testing"
)

// drip is a stream of which the test says how much has come.
type drip struct {
	b     []byte
	dry   bool // it was asked for more than has come
	limit int  // most bytes of one Read
}

var errDry = errors.New("nothing has come")

func (d *drip) Read(p []byte) (int, error) {
	if len(d.b) == 0 {
		d.dry = true
		return 0, errDry
	}
	n := copy(p, d.b[:min(len(d.b), d.limit)])
	d.b = d.b[n:]
	return n, nil
}

// TestMissing lets random units come in random pieces: Next needs no more than what
// Missing asked for, and no less.
func TestMissing(t *testing.T) {
	rnd := newRand(t)
	src := &drip{limit: 700}
	r := NewReader(src, ReaderConfig{Buffer: 1 << 16})
	for range 300 {
		want := randomUnit(rnd)
		rest := want.Append(nil)
		for r.Missing() > 0 {
			n := min(1+rnd.IntN(r.Missing()), len(rest))
			if len(rest) == 0 {
				t.Fatalf("%T is all there, %d bytes are missing", want, r.Missing())
			}
			src.b, rest = rest[:n], rest[n:]
			for len(src.b) > 0 {
				if err := r.Fill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(rest) > 0 {
			t.Fatalf("%d bytes of a %T have not come, none is missing", len(rest), want)
		}
		got, err := r.Next()
		if a, ok := got.(AttrData); ok && len(a.Attrs) == 0 {
			want = AttrData{Attrs: a.Attrs, Record: want.(AttrData).Record}
		}
		if err != nil || src.dry || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, read from the stream: %v, %T became %T", err, src.dry, want, got)
		}
	}
	if err := r.Fill(); !errors.Is(err, errDry) {
		t.Errorf("filling from a dry stream: %v", err)
	}
	src.b = Data{Record: []byte("goes on")}.Append(nil)
	if err := r.Fill(); err != nil || r.Missing() != 0 {
		t.Errorf("afterwards: %v, %d bytes missing", err, r.Missing())
	}
}

// TestMissingOfNonsense: what Next refuses by its first bytes needs no more of them,
// and what is too long for the buffer says so.
func TestMissingOfNonsense(t *testing.T) {
	badHandshake := Handshake{}.Append(nil)
	badHandshake[4] = 21
	for name, b := range map[string][]byte{
		"HTTP":      []byte("GET / HTTP/1.1"),
		"negative":  {0, 'D', 'M', 'C', 0xff, 0xff, 0xff, 0xff},
		"handshake": badHandshake,
		"format":    append([]byte{0x4f, 0x49, 0x42, 0x50}, make([]byte, 20)...),
	} {
		src := &drip{b: b, limit: 100}
		r := NewReader(src, ReaderConfig{})
		if err := r.Fill(); err != nil || r.Missing() != 0 {
			t.Errorf("%s: %v, %d bytes missing", name, err, r.Missing())
		}
		if _, err := r.Next(); err == nil || src.dry {
			t.Errorf("%s: %v, read from the stream: %v", name, err, src.dry)
		}
		if r.Missing() != 0 {
			t.Errorf("%s: %d bytes missing after the end", name, r.Missing())
		}
	}
	r := NewReader(&drip{b: claim(1 << 20), limit: 100}, ReaderConfig{Buffer: 64})
	if err := r.Fill(); err != nil || r.Missing() <= r.Room() {
		t.Errorf("a long unit: %v, %d bytes missing, room for %d", err, r.Missing(), r.Room())
	}
	full := NewReader(&drip{b: make([]byte, 100), limit: 100}, ReaderConfig{Buffer: 64})
	for range 2 {
		if err := full.Fill(); err != nil {
			t.Error(err)
		}
	}
	if full.Room() != 0 {
		t.Errorf("room for %d", full.Room())
	}
	if err := NewReader(&drip{limit: 1}, ReaderConfig{}).Fill(); !errors.Is(err, errDry) || errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
