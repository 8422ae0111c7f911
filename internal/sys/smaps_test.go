package sys

import (
	"slices"
	"testing"
)

const someSmaps = `0059d000-005d3000 rw-p 00000000 00:00 0 
Size:                216 kB
VmFlags: rd wr mr mw me ac uw 
7f5fbe3ea000-7f5fbe3ec000 rw-p 00000000 fe:00 5856933                    /a: uw
Size:                  8 kB
THPeligible:           0
VmFlags: rd wr mr mw me ac 
7f5fbe400000-7f5fbe401000 rw-p 00000000 00:00 0 
Size:                  4 kB
VmFlags: rd uw mr
`

func TestParseGuarded(t *testing.T) {
	want := []MappingInfo{
		{Addr: 0x59d000, Len: 0x36000, Readable: true, Writable: true},
		{Addr: 0x7f5fbe400000, Len: 0x1000, Readable: true, Writable: true},
	}
	if got, err := parseGuarded([]byte(someSmaps)); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parseGuarded([]byte("59d000-5d3 odd")); err == nil {
		t.Errorf("%+v", got)
	}
}

func FuzzParseGuarded(f *testing.F) {
	f.Add([]byte(someSmaps))
	f.Fuzz(func(t *testing.T, b []byte) {
		if list, err := parseGuarded(b); err != nil && list != nil {
			t.Errorf("%+v with %v", list, err)
		}
	})
}
