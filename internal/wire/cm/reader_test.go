package cm

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// claim is the header of a data message of n bytes without checksum.
func claim(n int) []byte {
	b := appendLongHeader(nil, n)
	if n <= MaxData {
		b = Data{}.Append(nil)
		b[0] = 0
		b[4], b[5], b[6], b[7] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	}
	return b
}

// counter is an allocator that keeps books.
type counter struct {
	biggest, live, handed int
	refuse                bool
}

func (c *counter) alloc(n int) []byte {
	if c.refuse {
		return nil
	}
	c.biggest = max(c.biggest, n)
	c.live += n
	c.handed++
	return make([]byte, n)
}

func (c *counter) free(b []byte) { c.live -= len(b) }

func (c *counter) config(limit int) ReaderConfig {
	return ReaderConfig{MaxRecord: limit, Alloc: c.alloc, Free: c.free}
}

func TestReaderHugeClaim(t *testing.T) {
	for _, n := range []int{MaxData, 1 << 40} {
		var c counter
		r := NewReader(bytes.NewReader(append(claim(n), "little"...)), c.config(1<<50))
		if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("claim of %d: %v", n, err)
		}
		if c.biggest > firstChunk || c.live != 0 {
			t.Errorf("claim of %d: %d bytes allocated at once, %d not given back", n, c.biggest, c.live)
		}
	}
}

func TestReaderGrowsAsBytesArrive(t *testing.T) {
	record := make([]byte, 5<<20+3)
	for i := range record {
		record[i] = byte(i ^ i>>8)
	}
	var c counter
	one := Data{Record: record}.Append(nil)
	stream := append(bytes.Clone(one), one...)
	r := NewReader(bytes.NewReader(append(stream, claim(len(record))...)), c.config(0))
	for i := range 2 {
		before := c.handed
		u, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		got := u.(Data).Record
		if !bytes.Equal(got, record) {
			t.Fatal("the record changed on its way")
		}
		// 1, 2, 4 MiB, all; then, the peer having proven itself, one piece.
		if want := []int{4, 1}[i]; c.handed-before != want {
			t.Errorf("record %d took %d pieces, want %d", i, c.handed-before, want)
		}
		c.free(got)
	}
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) || c.live != 0 {
		t.Errorf("%v; %d bytes not given back", err, c.live)
	}
}

func TestReaderCutInsideGrowth(t *testing.T) {
	var c counter
	stream := append(claim(64<<20), make([]byte, 3<<20)...)
	if _, err := NewReader(bytes.NewReader(stream), c.config(0)).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if c.biggest != 4<<20 || c.live != 0 {
		t.Errorf("%d bytes at once for 3 MiB, %d not given back", c.biggest, c.live)
	}
}

func TestReaderLimits(t *testing.T) {
	record := make([]byte, 100)
	tests := []struct {
		name   string
		unit   Unit
		config ReaderConfig
	}{
		{"record", Data{Record: record}, ReaderConfig{MaxRecord: 99}},
		{"long record", LongData{Record: record}, ReaderConfig{MaxRecord: 99}},
		{"record with attributes", AttrData{Record: record}, ReaderConfig{MaxRecord: 99}},
		{"attributes", AttrData{Attrs: make([]byte, maxAttrBlock+1)}, ReaderConfig{}},
		{"format", Push(record[:12], record), ReaderConfig{MaxFormat: 111}},
		{"format, default", Push(nil, make([]byte, DefaultMaxFormat+1)), ReaderConfig{}},
	}
	for _, tt := range tests {
		r := NewReader(bytes.NewReader(tt.unit.Append(nil)), tt.config)
		_, err := r.Next()
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, again := r.Next(); again != err {
			t.Errorf("%s: then %v", tt.name, again)
		}
	}
	ok := append(Data{Record: record}.Append(nil), Push(record[:12], record).Append(nil)...)
	r := NewReader(bytes.NewReader(ok), ReaderConfig{MaxRecord: 100, MaxFormat: 112})
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Errorf("at the limit: %v", err)
		}
	}
	big := NewReader(bytes.NewReader(claim(MaxData+1)), ReaderConfig{})
	if _, err := big.Next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("long data by default: %v", err)
	}
}

func TestReaderAllocatorRefuses(t *testing.T) {
	stream := append(claim(4<<20), make([]byte, 4<<20)...)
	c := &counter{refuse: true}
	if _, err := NewReader(bytes.NewReader(stream), c.config(0)).Next(); !errors.Is(err, ErrNoBuffer) {
		t.Error(err)
	}
	c.refuse = false
	config := c.config(0)
	config.Alloc = func(n int) []byte { b := c.alloc(n); c.refuse = true; return b }
	if _, err := NewReader(bytes.NewReader(stream), config).Next(); !errors.Is(err, ErrNoBuffer) || c.live != 0 {
		t.Errorf("second piece refused: %v, %d bytes not given back", err, c.live)
	}
}

func TestReaderGoesOnAfterChecksum(t *testing.T) {
	bad := Data{Record: []byte("damaged")}.Append(nil)
	bad[len(bad)-1]++
	stream := append(bad, Data{Record: []byte("whole")}.Append(nil)...)
	var c counter
	r := NewReader(bytes.NewReader(stream), c.config(0))
	if _, err := r.Next(); !errors.Is(err, ErrChecksum) {
		t.Fatal(err)
	}
	if c.live != 0 {
		t.Errorf("%d bytes not given back", c.live)
	}
	u, err := r.Next()
	if rec, _ := Record(u); err != nil || string(rec) != "whole" {
		t.Errorf("%v, %v", u, err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("past the end: %v", err)
	}
}

func TestReaderOpening(t *testing.T) {
	hello := Handshake{Version: 1, FormatServer: SelfHosted, ID: 77}
	stream := hello.Append(Preamble{Port: 4242}.Append(nil))
	r := NewReader(iotest.OneByteReader(bytes.NewReader(stream)), ReaderConfig{})
	p, err := r.Preamble()
	if err != nil || p.Port != 4242 {
		t.Fatalf("%+v, %v", p, err)
	}
	h, err := r.Handshake()
	if err != nil || h != hello {
		t.Fatalf("%+v, %v", h, err)
	}
	if _, err := r.Handshake(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	for i := range len(stream) {
		r := NewReader(bytes.NewReader(stream[:i]), ReaderConfig{})
		_, err := r.Preamble()
		if err == nil {
			_, err = r.Handshake()
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Errorf("prefix %d: %v", i, err)
		}
	}
}

func TestReaderOpeningRefused(t *testing.T) {
	r := NewReader(bytes.NewReader([]byte("GET / HTTP/1.1")), ReaderConfig{})
	if _, err := r.Preamble(); !errors.Is(err, ErrMalformed) {
		t.Errorf("HTTP: %v", err)
	}
	// A data message is refused by its magic; its length is not waited for.
	pr, pw := io.Pipe()
	defer pr.Close()
	go pw.Write(claim(MaxData)[:4])
	if _, err := NewReader(pr, ReaderConfig{Buffer: 16}).Handshake(); !errors.Is(err, ErrMagic) {
		t.Errorf("data first: %v", err)
	}
	bad := Handshake{}.Append(nil)
	bad[4] = 21
	if _, err := NewReader(bytes.NewReader(bad), ReaderConfig{}).Handshake(); !errors.Is(err, ErrMalformed) {
		t.Errorf("handshake of 21 bytes: %v", err)
	}
}

func TestReaderKeepsTheCause(t *testing.T) {
	boom := errors.New("boom")
	for _, stream := range [][]byte{nil, claim(100)[:6], claim(100), {0x4f, 0x49, 0x42, 0x50}} {
		r := NewReader(io.MultiReader(bytes.NewReader(stream), iotest.ErrReader(boom)), ReaderConfig{})
		if _, err := r.Next(); !errors.Is(err, boom) {
			t.Errorf("after %x: %v", stream, err)
		}
	}
}
