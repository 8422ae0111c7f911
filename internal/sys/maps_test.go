package sys

import (
	"slices"
	"strings"
	"testing"
)

const someMaps = `00400000-004ae000 r-xp 00000000 fe:00 10004490                           /tmp/a program
0059d000-005d3000 rw-p 00000000 00:00 0 
7f5fbe3ea000-7f5fbe3ec000 rw-s 00000000 00:01 5856933                    /memfd:weft (deleted)
7f5fbe400000-7f5fbe401000 rw-s 00000000 00:01 98309                      /SYSV00000000 (deleted)
7ffea2ee0000-7ffea2f01000 rw-p 00000000 00:00 0                          [stack]
`

func TestParseMaps(t *testing.T) {
	want := []MappingInfo{
		{Addr: 0x400000, Len: 0xae000, Readable: true, File: "/tmp/a program"},
		{Addr: 0x59d000, Len: 0x36000, Readable: true, Writable: true},
		{Addr: 0x7f5fbe3ea000, Len: 0x2000, Readable: true, Writable: true, Shared: true, File: "/memfd:weft (deleted)"},
		{Addr: 0x7f5fbe400000, Len: 0x1000, Readable: true, Writable: true, Shared: true, File: "/SYSV00000000 (deleted)", SystemV: true},
		{Addr: 0x7ffea2ee0000, Len: 0x21000, Readable: true, Writable: true},
	}
	got, err := parseMaps([]byte(someMaps))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	odd := "0059d000-005d3000 r--p 00000000 fe:00 7                  /two  spaces, a\\012line "
	if m, err := parseMapping(odd); err != nil || m.File != "/two  spaces, a\nline " {
		t.Errorf("%+v, %v", m, err)
	}
	line, _, _ := strings.Cut(someMaps, "\n")
	for i := range line[:38] {
		if m, err := parseMapping(line[:i]); err == nil {
			t.Errorf("%q is %+v", line[:i], m)
		}
	}
}

func FuzzParseMaps(f *testing.F) {
	f.Add([]byte(someMaps))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseMaps(b)
		if err == nil && len(list) != len(slices.Collect(strings.Lines(string(b)))) {
			t.Errorf("%d mappings in %q", len(list), b)
		}
	})
}

func TestMappingsOf(t *testing.T) {
	m, err := MapAnonymous(2 * osPageSize)
	if err != nil {
		t.Fatal(err)
	}
	at := Address(m.Bytes())
	list, err := MappingsOf(at+1, uint64(2*osPageSize)-1)
	if err != nil || len(list) != 1 || !list[0].Writable || list[0].Shared || list[0].File != "" {
		t.Errorf("%+v, %v", list, err)
	}
	m.Bytes()[0] = 1
	if err := m.MapOver(); err != nil || m.Bytes()[0] != 0 {
		t.Error("not new memory", err)
	}
	if err := m.Close(); err != nil || m.Bytes() != nil || m.Close() != nil {
		t.Error(err)
	}
}

func TestGapless(t *testing.T) {
	list := []MappingInfo{{Addr: 10, Len: 10}, {Addr: 20, Len: 5}, {Addr: 30, Len: 10}}
	for _, c := range []struct {
		addr, n uint64
		want    bool
	}{{10, 15, true}, {12, 3, true}, {10, 16, false}, {9, 2, false}, {20, 12, false}, {30, 10, true}} {
		var of []MappingInfo // those that overlap, as MappingsOf gives
		for _, m := range list {
			if m.Addr < c.addr+c.n && c.addr < m.Addr+m.Len {
				of = append(of, m)
			}
		}
		if Gapless(of, c.addr, c.n) != c.want {
			t.Errorf("%d bytes at %d: gapless is %v", c.n, c.addr, !c.want)
		}
	}
	if Gapless(nil, 1, 1) {
		t.Error("nothing has no gaps")
	}
}
