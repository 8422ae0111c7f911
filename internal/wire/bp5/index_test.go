package bp5

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// literalHeader is the header of a dataset of ADIOS2 2.10.2, row-major, closed.
const literalHeader = "ADIOS-BP v2.:.2 Index Table\x00\x00\x00\x00\x00" +
	"2:2\x00\x00\x05\x02\x00n\x00" +
	"\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func header(t testing.TB) IndexHeader {
	t.Helper()
	h, err := ParseIndexHeader([]byte(literalHeader))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestIndexHeaderLiteral(t *testing.T) {
	if len(literalHeader) != IndexHeaderSize {
		t.Fatalf("literal has %d bytes", len(literalHeader))
	}
	want := IndexHeader{Major: 2, Minor: 10, Patch: 2, BPVersion: 5, BPMinor: 2}
	if diff := cmp.Diff(want, header(t)); diff != "" {
		t.Error(diff)
	}
	if got := string(want.Append(nil)); got != literalHeader {
		t.Errorf("Append = %q", got)
	}
}

func TestIndexHeaderFlags(t *testing.T) {
	for _, h := range []IndexHeader{
		{Major: 2, Minor: 12, Active: true},
		{Major: 2, Minor: 9, ColumnMajor: true},
		{Major: 3, Minor: 0, Patch: 11, Flatten: true, FileID: 0xfedcba98},
	} {
		h.BPVersion, h.BPMinor = BPVersion, BPMinor
		b := h.Append([]byte("front"))
		got, err := ParseIndexHeader(b[5:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, got); diff != "" {
			t.Error(diff)
		}
		if active := b[5+IndexActiveOffset] == 1; active != h.Active {
			t.Errorf("active byte = %v, want %v", active, h.Active)
		}
	}
}

// Headers of all datasets parse, say the right things, and come out of Append as they were.
func TestIndexHeaderFixtures(t *testing.T) {
	for _, name := range bpfixture.Names() {
		idx := bpfixture.Files(t, name)["md.idx"]
		h, err := ParseIndexHeader(idx)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(h.Append(nil), idx[:IndexHeaderSize]) {
			t.Errorf("%s: Append gives other bytes", name)
		}
		old := strings.HasPrefix(name, "v2.10.2")
		if h.Major != 2 || (h.Minor == 10) != old || (h.FileID == 0) != old {
			t.Errorf("%s: header %+v", name, h)
		}
		if h.ColumnMajor != strings.Contains(name, "columnmajor") || h.Active || h.Flatten {
			t.Errorf("%s: header %+v", name, h)
		}
	}
}

func TestIndexHeaderTruncated(t *testing.T) {
	for _, name := range bpfixture.Names() {
		idx := bpfixture.Files(t, name)["md.idx"]
		for n := range IndexHeaderSize {
			if _, err := ParseIndexHeader(idx[:n:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s: %d bytes: %v", name, n, err)
			}
		}
	}
}

func TestIndexHeaderRefuses(t *testing.T) {
	set := func(at int, v byte) []byte {
		b := []byte(literalHeader)
		b[at] = v
		return b
	}
	bp4 := set(37, 4)
	bp4[38] = 1
	for _, tc := range []struct {
		name string
		in   []byte
		want error
		text string
	}{
		{"text", []byte("hello"), ErrNotBP, "hello"},
		{"short text", []byte("ADx"), ErrNotBP, "ADx"},
		{"contact file", []byte("#ADIOS2-SST v0\n0000"), ErrNotBP, "contact file of a running stream"},
		{"zeros", make([]byte, 64), ErrNotBP, ""},
		{"big-endian", set(36, 1), ErrByteOrder, "big-endian"},
		{"BP4", bp4, ErrBPVersion, "version 4"},
		{"version 0", set(37, 0), ErrBPVersion, "version 0"},
		{"minor 3", set(38, 3), ErrBPVersion, "5.3, want 5.2"},
		{"array order", set(40, 'x'), ErrBadFile, "byte 40"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseIndexHeader(tc.in)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func FuzzIndexHeader(f *testing.F) {
	for _, name := range bpfixture.Names() {
		f.Add(bpfixture.Files(f, name)["md.idx"][:IndexHeaderSize])
	}
	f.Add([]byte("#ADIOS2-SST v0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseIndexHeader(b)
		if err != nil {
			return
		}
		again, err := ParseIndexHeader(h.Append(nil))
		if diff := cmp.Diff(h, again); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}
