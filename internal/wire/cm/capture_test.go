package cm

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// capture is one direction of a recorded connection.
type capture struct {
	name   string
	bytes  []byte
	active bool // begins with the preamble
}

// captures loads all recorded directions.
func captures(t testing.TB) []capture {
	t.Helper()
	names, err := filepath.Glob("testdata/captures/*.bin")
	if err != nil || len(names) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	var all []capture
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, capture{filepath.Base(name), b, strings.Contains(name, ".a2p.")})
	}
	return all
}

// units cuts a capture with ParseUnit.
func (c capture) units(t testing.TB) []Unit {
	t.Helper()
	b := c.bytes
	if c.active {
		b = b[PreambleSize:]
	}
	var all []Unit
	for len(b) > 0 {
		u, n, err := ParseUnit(b)
		if err != nil {
			t.Fatalf("%s: byte %d: %v", c.name, len(c.bytes)-len(b), err)
		}
		all, b = append(all, u), b[n:]
	}
	return all
}

// encode writes a capture anew from what was parsed.
func (c capture) encode(t testing.TB, units []Unit) []byte {
	t.Helper()
	var b []byte
	if c.active {
		p, n, err := ParsePreamble(c.bytes)
		if err != nil || n != PreambleSize {
			t.Fatal(n, err)
		}
		b = p.Append(b)
	}
	for _, u := range units {
		b = u.Append(b)
	}
	return b
}

func TestCapturesReencode(t *testing.T) {
	kinds := map[string]int{}
	for _, c := range captures(t) {
		units := c.units(t)
		if got := c.encode(t, units); !bytes.Equal(c.bytes, got) {
			t.Errorf("%s: encoded anew it differs:\n%s", c.name, cmp.Diff(c.bytes, got))
		}
		for _, u := range units {
			switch u.(type) {
			case Handshake:
				kinds["handshake"]++
			case FormatMessage:
				kinds["format"]++
			case Data:
				kinds["data"]++
			default:
				t.Errorf("%s: unexpected %T", c.name, u)
			}
		}
	}
	if kinds["handshake"] != 30 || kinds["format"] < 50 || kinds["data"] < 100 {
		t.Errorf("too little in the captures: %v", kinds)
	}
}

func TestCapturesThroughReader(t *testing.T) {
	for _, c := range captures(t) {
		want := c.units(t)
		for name, stream := range map[string]io.Reader{
			"whole":     bytes.NewReader(c.bytes),
			"byte-wise": iotest.OneByteReader(bytes.NewReader(c.bytes)),
		} {
			r := NewReader(stream, ReaderConfig{Buffer: 64})
			if c.active {
				if _, err := r.Preamble(); err != nil {
					t.Fatal(err)
				}
			}
			var got []Unit
			for {
				u, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s, %s: %v", c.name, name, err)
				}
				got = append(got, u)
			}
			if !reflect.DeepEqual(want, got) {
				t.Errorf("%s, %s: %s", c.name, name, cmp.Diff(want, got))
			}
			if r.Offset() != int64(len(c.bytes)) {
				t.Errorf("%s, %s: offset %d of %d", c.name, name, r.Offset(), len(c.bytes))
			}
		}
	}
}

// TestCapturesHandshakes holds the opening of every connection to cm.md §3.
func TestCapturesHandshakes(t *testing.T) {
	for _, c := range captures(t) {
		h, ok := c.units(t)[0].(Handshake)
		if !ok {
			t.Fatalf("%s: no handshake", c.name)
		}
		if h.Version != HandshakeVersion || h.FormatServer != SelfHosted || h.Answer == c.active {
			t.Errorf("%s: %+v", c.name, h)
		}
		for _, old := range []string{"a-", "b-", "g-"} {
			if strings.HasPrefix(c.name, old) && h.ID != ID210 {
				t.Errorf("%s: a 2.10 peer with ID %#x", c.name, h.ID)
			}
		}
	}
}

func TestCapturesEveryPrefix(t *testing.T) {
	for _, c := range captures(t) {
		b := c.bytes
		if c.active {
			b = b[PreambleSize:]
		}
		for len(b) > 0 {
			_, n, err := ParseUnit(b)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for i := range n {
				if u, _, err := ParseUnit(b[:i]); !errors.Is(err, io.ErrUnexpectedEOF) || u != nil {
					t.Fatalf("%s: prefix %d of %d: %v, %v", c.name, i, n, u, err)
				}
				want := io.ErrUnexpectedEOF
				if i == 0 {
					want = io.EOF
				}
				if _, err := NewReader(bytes.NewReader(b[:i]), ReaderConfig{}).Next(); !errors.Is(err, want) {
					t.Fatalf("%s: reader on prefix %d of %d: %v", c.name, i, n, err)
				}
			}
			b = b[n:]
		}
	}
}

// TestCapturesContacts decodes and encodes every contact file.
func TestCapturesContacts(t *testing.T) {
	names, _ := filepath.Glob("testdata/captures/*.sst")
	if len(names) != 11 {
		t.Fatalf("%d contact files", len(names))
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(b), ":")
		c, err := ParseContact(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := c.String(); got != text {
			t.Errorf("%s: %s became %s", name, text, got)
		}
		addr, err := c.Addr()
		if err != nil || addr.Addr().String() != "127.0.0.1" {
			t.Errorf("%s: %v, %v", name, addr, err)
		}
		_, hasID := c.CMID()
		old := strings.Contains(name, "-2.10.2-") || strings.Contains(name, "w2102")
		if hasID == old {
			t.Errorf("%s: CM ID present: %v", name, hasID)
		}
	}
}

// inRecord finds contact strings inside records: base64 of a list with two to
// nine integers and none or one other attribute.
var inRecord = regexp.MustCompile(`AA[I-J]?[AB]?[AM][AB]?[A-Za-z0-9+/]{20,}=*\x00`)

// TestCapturesContactsInRecords decodes the contacts that real peers put into
// their messages, and finds them consistent with the opening of the connection.
func TestCapturesContactsInRecords(t *testing.T) {
	found := 0
	for _, c := range captures(t) {
		own := map[uint32]bool{} // the sender's CM ID
		units := c.units(t)
		own[units[0].(Handshake).ID] = true
		for _, u := range units {
			rec, ok := Record(u)
			if !ok {
				continue
			}
			for _, m := range inRecord.FindAll(rec, -1) {
				text := string(bytes.TrimRight(m, "\x00"))
				contact, err := ParseContact(text)
				if err != nil {
					continue // other text that looks like base64
				}
				found++
				if contact.String() != text {
					t.Errorf("%s: %s became %s", c.name, text, contact)
				}
				if _, err := contact.Addr(); err != nil {
					t.Errorf("%s: %s: %v", c.name, contact.Describe(), err)
				}
				// One process per side, so the ID is the sender's.
				one := strings.Contains(c.name, "1x1")
				if id, ok := contact.CMID(); ok && one && !own[id] {
					t.Errorf("%s: contact with ID %#x, handshake with another", c.name, id)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d contacts found in the records", found)
	}
}
