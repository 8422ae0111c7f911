package cp

import (
	"errors"
	"strings"
	"testing"
)

func TestChoosePlane(t *testing.T) {
	both, evpath, native := []string{PlaneNative, PlaneEvpath}, []string{PlaneEvpath}, []string{PlaneNative}
	for _, c := range []struct {
		reader string
		writer []string
		plane  string
		ok     bool
	}{
		{"", both, PlaneEvpath, true}, // ADIOS2, or an older Weft
		{"", evpath, PlaneEvpath, true},
		{"", native, PlaneNative, false},
		{"native,evpath", both, PlaneNative, true},
		{"native,evpath", evpath, PlaneEvpath, true},
		{"native,evpath", native, PlaneNative, true},
		{"evpath,native", both, PlaneEvpath, true}, // the reader's choice
		{"native", both, PlaneNative, true},
		{"native", evpath, PlaneEvpath, false},
		{"evpath", native, PlaneNative, false},
		{"faster,native,evpath", both, PlaneNative, true}, // of a newer Weft
		{"mixed", both, PlaneNative, false},
		{"native, evpath", evpath, PlaneEvpath, false}, // nothing but commas
		{",,", both, PlaneNative, false},
		{strings.Repeat(",", 1<<16), evpath, PlaneEvpath, false},
	} {
		if plane, ok := ChoosePlane(c.reader, c.writer); plane != c.plane || ok != c.ok {
			t.Errorf("%.20q of a writer with %q: %q, %v, want %q, %v", c.reader, c.writer, plane, ok, c.plane, c.ok)
		}
	}
}

// TestPlaneError: it names both sides, and which of them has to give in.
func TestPlaneError(t *testing.T) {
	for _, c := range []struct {
		err   PlaneError
		parts []string
	}{
		{PlaneError{Writer: "ucx", Ours: []string{"native", "evpath"}}, []string{`"ucx"`, `["native" "evpath"]`, "DataTransport to WAN in the writer"}},
		{PlaneError{Writer: "evpath", Ours: []string{"native"}}, []string{`"evpath"`, "DataTransport to WAN in the writer"}},
		{PlaneError{Writer: "native", Ours: []string{"evpath"}, Weft: true}, []string{`DataTransport out in the writer, or set it to "native" in this reader`}},
		{PlaneError{Writer: "evpath", Ours: []string{"native"}, Weft: true}, []string{`DataTransport out in this reader, and ManualProgress, or`, `set it to "native" in the writer, which needs the import of prov/shm`}},
	} {
		if !errors.Is(&c.err, ErrPlane) {
			t.Errorf("%+v is no ErrPlane", c.err)
		}
		for _, part := range c.parts {
			if !strings.Contains(c.err.Error(), part) {
				t.Errorf("%q does not say %s", c.err.Error(), part)
			}
		}
	}
}
