package cm

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// placing is a stream with a Place that takes the end of records.
type placing struct {
	src    io.Reader // what fill reads
	offset int
	dst    []byte
	asked  int
	heads  [][]byte
	refuse bool
}

func (p *placing) place(head []byte, total int) (int, func([]byte, int) (int, error)) {
	p.asked++
	p.heads = append(p.heads, bytes.Clone(head))
	if p.refuse {
		return 0, nil
	}
	p.dst = make([]byte, total-p.offset)
	return p.offset, func(have []byte, rest int) (int, error) {
		n := copy(p.dst, have)
		if n+rest != len(p.dst) {
			return 0, errors.New("the numbers do not add up")
		}
		return io.ReadFull(p.src, p.dst[n:])
	}
}

// longRecord is a record of n bytes that differ.
func longRecord(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/251)
	}
	return b
}

func TestPlace(t *testing.T) {
	const n = PlaceMin + 1000
	record := longRecord(n)
	stream := Data{Record: record}.Append(nil)
	stream = LongData{Record: record}.Append(stream)
	stream = Data{Record: []byte("small")}.Append(stream)
	for _, offset := range []int{0, 1, 64, PlaceHead, PlaceHead + 1, 20000, n - 1} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "half": iotest.HalfReader,
		} {
			src := wrap(bytes.NewReader(stream))
			p := &placing{src: src, offset: offset}
			r := NewReader(src, ReaderConfig{Place: p.place})
			for range 2 {
				u, err := r.Next()
				if err != nil {
					t.Fatalf("offset %d, %s: %v", offset, name, err)
				}
				got, _ := Record(u)
				if !bytes.Equal(append(bytes.Clone(got), p.dst...), record) || r.Placed() != n-offset {
					t.Fatalf("offset %d, %s: %d and %d bytes, %d placed", offset, name, len(got), len(p.dst), r.Placed())
				}
			}
			if u, err := r.Next(); err != nil || r.Placed() != 0 || string(u.(Data).Record) != "small" {
				t.Fatalf("offset %d, %s: %v, %v", offset, name, u, err)
			}
			if p.asked != 2 || len(p.heads[0]) != PlaceHead || !bytes.Equal(p.heads[0], record[:PlaceHead]) {
				t.Errorf("offset %d, %s: asked %d times", offset, name, p.asked)
			}
			if r.Offset() != int64(len(stream)) {
				t.Errorf("offset %d, %s: %d of %d bytes", offset, name, r.Offset(), len(stream))
			}
		}
	}
}

func TestPlaceDeclined(t *testing.T) {
	record := longRecord(PlaceMin)
	stream := Data{Record: record}.Append(nil)
	p := &placing{refuse: true}
	r := NewReader(bytes.NewReader(stream), ReaderConfig{})
	r.SetPlace(p.place)
	u, err := r.Next()
	if got, _ := Record(u); err != nil || !bytes.Equal(got, record) || p.asked != 1 || r.Placed() != 0 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestPlaceNotAsked: short records, and those whose checksum is to be compared.
func TestPlaceNotAsked(t *testing.T) {
	p := &placing{}
	stream := Data{Record: longRecord(PlaceMin - 1)}.Append(nil)
	summed := Data{Record: longRecord(PlaceMin)}.Append(nil)
	summed[0] = sum8(summed[4:])
	if summed[0] == 0 {
		t.Fatal("choose other bytes")
	}
	stream = append(stream, summed...)
	stream = AttrData{Record: longRecord(PlaceMin)}.Append(stream)
	r := NewReader(bytes.NewReader(stream), ReaderConfig{Place: p.place})
	for range 3 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if p.asked != 0 {
		t.Errorf("asked %d times", p.asked)
	}
}

// TestPlaceTruncated cuts the stream at places of every sort: no hang, no record,
// and what was allocated comes back.
func TestPlaceTruncated(t *testing.T) {
	stream := Data{Record: longRecord(PlaceMin)}.Append(nil)
	for _, cut := range []int{9, 100, 8 + PlaceHead - 1, 8 + PlaceHead, 8 + 1000, 8 + 20000, len(stream) - 1} {
		src := bytes.NewReader(stream[:cut])
		p := &placing{src: src, offset: 1000}
		out := 0
		r := NewReader(src, ReaderConfig{
			Place: p.place,
			Alloc: func(n int) []byte { out++; return make([]byte, n) },
			Free:  func([]byte) { out-- },
		})
		if u, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) || u != nil || out != 0 {
			t.Errorf("cut at %d: %v, %v, %d buffers out", cut, u, err, out)
		}
		if _, err := r.Next(); err == nil {
			t.Errorf("cut at %d: reading goes on", cut)
		}
	}
}

func TestPlaceOutside(t *testing.T) {
	stream := Data{Record: longRecord(PlaceMin)}.Append(nil)
	for _, offset := range []int{-1, PlaceMin, PlaceMin + 1} {
		r := NewReader(bytes.NewReader(stream), ReaderConfig{Place: func([]byte, int) (int, func([]byte, int) (int, error)) {
			return offset, func([]byte, int) (int, error) { return 0, errors.New("called") }
		}})
		if _, err := r.Next(); !errors.Is(err, ErrNoBuffer) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
}
