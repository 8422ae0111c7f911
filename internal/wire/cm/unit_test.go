package cm

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// literals are units as they stand on the wire, and what they mean.
var literals = []struct {
	name string
	wire string
	unit Unit
}{
	{"handshake of 2.10, active", "00484d43 14000001 ffffffff 05000000 00000000",
		Handshake{Version: 1, FormatServer: SelfHosted, ID: 5}},
	{"handshake, passive", "00484d43 14000001 ffffffff dc2a83be 00000000",
		Handshake{Version: 1, FormatServer: SelfHosted, ID: 0x3e832adc, Answer: true}},
	// The worked example of ffs.md §5.3, whole.
	{"DPQueryResponse", "c3444d43 2f000000 02000027d02ddad87f49360d 1700000000000000 00000000 0200000000000000 1000000000000000 65767061746800",
		Data{Record: []byte("\x02\x00\x00\x27\xd0\x2d\xda\xd8\x7f\x49\x36\x0d\x17\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x02\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00evpath\x00")}},
	{"empty record", "00444d43 00000000", Data{Record: []byte{}}},
	{"long data", "00424d43 00000000 03000000 00000000 616263", LongData{Record: []byte("abc")}},
	{"attribute data", "00414d43 00414d43 03000000 08000000 0000000000000000 616263",
		AttrData{Attrs: make([]byte, 8), Record: []byte("abc")}},
	{"push", "4f494250 15000000 02000000 00000000 03000000 02000000 010203 6263", Push([]byte{1, 2, 3}, []byte("bc"))},
	{"query", "4f494250 13000000 00000000 09000000 03000000 00000000 010203",
		FormatMessage{Type: FormatQuery, Condition: 9, First: []byte{1, 2, 3}, Second: []byte{}}},
	{"response", "4f494250 12000000 01000000 09000000 02000000 00000000 6263",
		FormatMessage{Type: FormatResponse, Condition: 9, First: []byte("bc"), Second: []byte{}}},
}

func TestUnitLiterals(t *testing.T) {
	for _, tt := range literals {
		wire := unhex(t, tt.wire)
		if got := tt.unit.Append([]byte("x")); !bytes.Equal(got[1:], wire) || got[0] != 'x' {
			t.Errorf("%s: encoded %x, want %x", tt.name, got[1:], wire)
		}
		u, n, err := ParseUnit(append(wire, "behind"...))
		if err != nil || n != len(wire) {
			t.Fatalf("%s: %d bytes, %v", tt.name, n, err)
		}
		if diff := cmp.Diff(tt.unit, u); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		u, err = NewReader(bytes.NewReader(wire), ReaderConfig{}).Next()
		if diff := cmp.Diff(tt.unit, u); diff != "" || err != nil {
			t.Errorf("%s, reader: %v %s", tt.name, err, diff)
		}
	}
}

func TestUnitEveryPrefix(t *testing.T) {
	for _, tt := range literals {
		wire := unhex(t, tt.wire)
		for i := range wire {
			u, n, err := ParseUnit(wire[:i])
			if !errors.Is(err, io.ErrUnexpectedEOF) || u != nil || n != 0 {
				t.Errorf("%s: prefix %d: %v, %d, %v", tt.name, i, u, n, err)
			}
			r := NewReader(bytes.NewReader(wire[:i]), ReaderConfig{})
			if _, err := r.Next(); i > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: reader, prefix %d: %v", tt.name, i, err)
			}
		}
	}
}

// Each typed parser refuses a unit of another kind, and short input.
func TestParsersRefuseOthers(t *testing.T) {
	parsers := map[string]func([]byte) (Unit, int, error){
		"handshake": func(b []byte) (Unit, int, error) { return boxed(ParseHandshake(b)) },
		"data":      func(b []byte) (Unit, int, error) { return boxed(ParseData(b)) },
		"long":      func(b []byte) (Unit, int, error) { return boxed(ParseLongData(b)) },
		"attr":      func(b []byte) (Unit, int, error) { return boxed(ParseAttrData(b)) },
		"format":    func(b []byte) (Unit, int, error) { return boxed(ParseFormatMessage(b)) },
	}
	for name, parse := range parsers {
		taken := 0
		for _, tt := range literals {
			_, _, err := parse(unhex(t, tt.wire))
			switch {
			case err == nil:
				taken++
			case !errors.Is(err, ErrMagic):
				t.Errorf("%s on %s: %v", name, tt.name, err)
			}
		}
		if taken == 0 || taken > 3 {
			t.Errorf("%s took %d literals", name, taken)
		}
		if _, _, err := parse([]byte{1, 2}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s on 2 bytes: %v", name, err)
		}
		if _, _, err := parse([]byte("GET / HTTP/1.1\r\n\r\n")); !errors.Is(err, ErrMagic) {
			t.Errorf("%s on HTTP: %v", name, err)
		}
	}
}

func TestUnitsRefused(t *testing.T) {
	tests := []struct {
		name, wire string
		want       error
	}{
		{"HTTP", "47455420 2f20485454502f312e310d0a", ErrMagic},
		{"TLS", "16030100 00000000", ErrMagic},
		{"zeros", "00000000 00000000", ErrMagic},
		{"PBIO with a checksum", "50494250 00000000", ErrMagic},
		{"swapped CMD", "434d44c3 0000002f", ErrByteOrder},
		{"swapped CMB", "434d4200 00000000", ErrByteOrder},
		{"swapped CMA", "434d4100 00000000", ErrByteOrder},
		{"swapped CMH", "434d4800 01000014", ErrByteOrder},
		{"swapped PBIO", "5042494f 00000010", ErrByteOrder},
		{"swapped EVC", "45564300 00000000", ErrByteOrder},
		{"CML", "004c4d43 00000000", ErrUnsupported},
		{"CMP", "00504d43 00000000", ErrUnsupported},
		{"EVC", "00435645 00000000", ErrUnsupported},
		{"handshake of 24 bytes", "00484d43 18000001 ffffffff 05000000 00000000 00000000", ErrMalformed},
		{"negative data length", "00444d43 ffffffff 00", ErrMalformed},
		{"wrong checksum", "c4444d43 03000000 616263", ErrChecksum},
		{"long data, absurd length", "00424d43 ffffffff ffffffff 00000000", ErrMalformed},
		{"long data, attributes", "00424d43 00000000 01000000 08000000 00", ErrMalformed},
		{"attribute data, one magic", "00414d43 00444d43 01000000 00000000 61", ErrMalformed},
		{"attribute data, negative", "00414d43 00414d43 ffffffff 00000000 61", ErrMalformed},
		{"attribute data, negative list", "00414d43 00414d43 01000000 f8ffffff 61", ErrMalformed},
		{"attribute data, odd list", "00414d43 00414d43 01000000 04000000 0000000061", ErrMalformed},
		{"format, lengths disagree", "4f494250 16000000 02000000 00000000 03000000 02000000 0102036263", ErrMalformed},
		{"format, lengths wrap", "4f494250 0f000000 02000000 00000000 ffffffff 00000000", ErrMalformed},
		{"format, type 3", "4f494250 10000000 03000000 00000000 00000000 00000000", ErrMalformed},
	}
	for _, tt := range tests {
		wire := unhex(t, tt.wire)
		if u, _, err := ParseUnit(wire); !errors.Is(err, tt.want) || u != nil {
			t.Errorf("%s: %v, %v", tt.name, u, err)
		}
		r := NewReader(bytes.NewReader(wire), ReaderConfig{MaxRecord: math.MaxInt})
		if u, err := r.Next(); !errors.Is(err, tt.want) || u != nil {
			t.Errorf("%s, reader: %v, %v", tt.name, u, err)
		}
	}
}

func TestRecord(t *testing.T) {
	with := 0
	for _, tt := range literals {
		if rec, ok := Record(tt.unit); ok {
			with++
			if len(rec) > 0 && !bytes.HasSuffix(unhex(t, tt.wire), rec) {
				t.Errorf("%s: record %x", tt.name, rec)
			}
		}
	}
	if with != 4 {
		t.Errorf("%d literals with a record", with)
	}
}

func TestPreamble(t *testing.T) {
	wire := unhex(t, "c6a9 0000") // capture a, main: port 50857, big-endian
	p, n, err := ParsePreamble(wire)
	if err != nil || n != PreambleSize || p.Port != 50857 {
		t.Errorf("%+v, %d, %v", p, n, err)
	}
	if got := p.Append(nil); !bytes.Equal(got, wire) {
		t.Errorf("%x", got)
	}
	for i := range wire {
		if _, _, err := ParsePreamble(wire[:i]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("prefix %d: %v", i, err)
		}
	}
	if _, _, err := ParsePreamble([]byte("GET ")); !errors.Is(err, ErrMalformed) {
		t.Errorf("HTTP: %v", err)
	}
}

func TestHandshakeIDIs31Bits(t *testing.T) {
	h, _, err := ParseHandshake(Handshake{Version: 1, ID: math.MaxUint32}.Append(nil))
	if err != nil || h.Answer || h.ID != math.MaxInt32 {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestChecksumBoundary holds the sender to cm.md §5.1: a total of 10240 bytes is
// the first without a checksum.
func TestChecksumBoundary(t *testing.T) {
	for total, has := range map[int]bool{10239: true, 10240: false, 16096: false} {
		record := bytes.Repeat([]byte{1}, total-dataHeaderSize)
		wire := Data{Record: record}.Append(nil)
		want := byte(0)
		if has {
			want = sum8(wire[4:])
		}
		if wire[0] != want || has && want == 0 {
			t.Errorf("total %d: checksum %#x, want %#x", total, wire[0], want)
		}
		wire[total-1]++
		_, n, err := ParseData(wire)
		if has != errors.Is(err, ErrChecksum) || n != total {
			t.Errorf("total %d, damaged: %d, %v", total, n, err)
		}
	}
}

func TestAttrDataPadsItsList(t *testing.T) {
	list, err := mustParse(t, contact210).Append(nil) // 36 bytes
	if err != nil {
		t.Fatal(err)
	}
	wire := AttrData{Attrs: list, Record: []byte("r")}.Append(nil)
	d, n, err := ParseAttrData(wire)
	if err != nil || n != 16+40+1 || len(d.Attrs) != 40 || string(d.Record) != "r" {
		t.Fatalf("%d, %+v, %v", n, d, err)
	}
	if c, err := ParseAttrs(d.Attrs); err != nil || c.String() != contact210 {
		t.Errorf("%v, %v", c, err)
	}
}

func TestDataVecEqualsData(t *testing.T) {
	for _, size := range []int{0, 1, 100, 10231, 10232, 50000} {
		record := make([]byte, size)
		for i := range record {
			record[i] = byte(i * 7)
		}
		parts := [][]byte{record[:size/3], nil, record[size/3 : size/2], {}, record[size/2:]}
		vec := AppendDataVec(nil, parts)
		want := Data{Record: record}.Append(nil)
		if got := bytes.Join(vec, nil); !bytes.Equal(got, want) {
			t.Errorf("size %d: the list differs from the joined unit", size)
		}
		for _, p := range vec {
			if len(p) == 0 {
				t.Errorf("size %d: empty slice in the list", size)
			}
		}
		if size > 0 && &vec[len(vec)-1][0] != &record[size/2] {
			t.Errorf("size %d: parts were copied", size)
		}
	}
}

// TestLongHeader passes 2 GiB as 2049 views of one MiB: nothing is joined.
func TestLongHeader(t *testing.T) {
	piece := make([]byte, 1<<20)
	parts := make([][]byte, 2048)
	for i := range parts {
		parts[i] = piece
	}
	if got := AppendDataHeader(nil, parts); !bytes.Equal(got, unhex(t, "00424d43 00000000 00000080 00000000")) {
		t.Errorf("2 GiB: %x", got)
	}
	parts[0] = piece[1:]
	if got := AppendDataHeader(nil, parts); !bytes.Equal(got, unhex(t, "00444d43 ffffff7f")) {
		t.Errorf("2 GiB - 1: %x", got)
	}
	for range 4096 {
		parts = append(parts, piece)
	}
	got := AppendDataHeader(nil, parts)
	if !bytes.Equal(got, unhex(t, "00424d43 01000000 ffffff7f 00000000")) || len(got) > MaxDataHeader {
		t.Errorf("6 GiB - 1: %x", got)
	}
	n, err := longLength(got)
	if err != nil || n != 6<<30-1 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestDataHeaderDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, MaxDataHeader)
	parts := [][]byte{make([]byte, 100), make([]byte, 100)}
	if n := testing.AllocsPerRun(100, func() { AppendDataHeader(buf, parts) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzUnits(f *testing.F) {
	for _, tt := range literals {
		f.Add(unhex(f, tt.wire))
	}
	for _, c := range captures(f) {
		if c.active {
			c.bytes = c.bytes[PreambleSize:]
		}
		f.Add(c.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b), ReaderConfig{MaxRecord: math.MaxInt, MaxFormat: math.MaxInt32})
		for {
			u, n, err := ParseUnit(b)
			got, rerr := r.Next()
			if (err == nil) != (rerr == nil) {
				if !errors.Is(rerr, ErrTooLarge) { // the reader bounds attribute blocks
					t.Fatalf("parser: %v; reader: %v", err, rerr)
				}
				return
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(u, got); diff != "" {
				t.Fatal(diff)
			}
			again, _, err := ParseUnit(u.Append(nil))
			if diff := cmp.Diff(u, again); err != nil || diff != "" {
				t.Fatalf("encoded anew: %v %s", err, diff)
			}
			b = b[n:]
		}
	})
}
