package carrier

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
)

// units has one of each kind, with its bytes.
var units = []struct {
	u    unit
	wire string
}{
	{unit{kind: unitHello, dialler: true, link: 0x1122334455667788, version: 1}, "01010000 00000000 8877665544332211 576566744c696e6b 01000000"},
	{unit{kind: unitWelcome, link: 1, version: 1}, "02000000 00000000 0100000000000000 01000000"},
	{unit{kind: unitRefusal, link: 1, version: 2, code: refusedLimit}, "03000000 00000000 0100000000000000 02000000 03000000"},
	{unit{kind: unitFormat, dialler: true, seq: 7, link: 1, total: 300, data: []byte{9, 8}}, "04010000 07000000 0100000000000000 2c01000000000000 0908"},
	{unit{kind: unitRecord, seq: 0xfffffffe, link: 1, total: 12, data: []byte("abcdefghijkl")}, "05000000 feffffff 0100000000000000 0c00000000000000 6162636465666768696a6b6c"},
	{unit{kind: unitRest, seq: 2, link: 1, data: []byte{5}}, "06000000 02000000 0100000000000000 05"},
	{unit{kind: unitGoodbye, seq: 3, link: 1}, "07000000 03000000 0100000000000000"},
	{unit{kind: unitEnd, dialler: true, link: 1}, "08010000 00000000 0100000000000000"},
	{unit{kind: unitHold, seq: 4, link: 1}, "09000000 04000000 0100000000000000"},
	{unit{kind: unitGo, seq: 5, link: 1}, "0a000000 05000000 0100000000000000"},
}

func same(a, b unit) bool {
	data := bytes.Equal(a.data, b.data)
	a.data, b.data = nil, nil
	return data && a.kind == b.kind && a.dialler == b.dialler && a.seq == b.seq && a.link == b.link &&
		a.version == b.version && a.code == b.code && a.total == b.total
}

func TestUnits(t *testing.T) {
	for _, c := range units {
		want, err := hex.DecodeString(strings.ReplaceAll(c.wire, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.u.Append(nil); !bytes.Equal(got, want) {
			t.Errorf("%v: %x, want %x", c.u.kind, got, want)
		}
		if got, err := parseUnit(want); err != nil || !same(got, c.u) {
			t.Errorf("%v: %+v, %v", c.u.kind, got, err)
		}
		for i := range want {
			_, err := parseUnit(want[:i])
			data := i > blobHead || c.u.kind == unitRest && i > unitHead
			switch {
			case data && c.u.data != nil: // a shorter one
			case !errors.Is(err, ErrProtocol):
				t.Errorf("%v cut to %d: %v", c.u.kind, i, err)
			case c.u.kind != unitGoodbye && !errors.Is(err, io.ErrUnexpectedEOF):
				t.Errorf("%v cut to %d: %v", c.u.kind, i, err)
			}
		}
		if c.u.data == nil && c.u.kind != unitRefusal {
			if _, err := parseUnit(append(want, 0)); !errors.Is(err, ErrProtocol) {
				t.Errorf("%v with a byte more: %v", c.u.kind, err)
			}
		}
	}
}

func TestBadUnits(t *testing.T) {
	for name, text := range map[string]string{
		"kind 0":       "00000000 00000000 0100000000000000",
		"kind 11":      "0b000000 00000000 0100000000000000",
		"side 2":       "07020000 00000000 0100000000000000",
		"not zero":     "07000001 00000000 0100000000000000",
		"magic":        "01010000 00000000 8877665544332211 576566744c696e6c 01000000",
		"total":        "05000000 00000000 0100000000000000 0b00000000000000 6162636465666768696a6b",
		"total passed": "05000000 00000000 0100000000000000 0c00000000000000 6162636465666768696a6b6c6d",
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if u, err := parseUnit(b); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
	later, err := hex.DecodeString("01010000000000008877665544332211576566744c696e6b02000000ffff")
	if err != nil {
		t.Fatal(err)
	}
	if u, err := parseUnit(later); err != nil || u.version != 2 {
		t.Errorf("a hello of a later version: %+v, %v", u, err)
	}
}

func FuzzUnit(f *testing.F) {
	for _, c := range units {
		f.Add(c.u.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := parseUnit(b)
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Error(err)
			}
			return
		}
		again := u.Append(nil)
		if u.kind != unitRefusal && !(u.kind == unitHello && u.version != unitVersion) && !bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
		if v, err := parseUnit(again); err != nil || !same(u, v) {
			t.Errorf("%+v became %+v, %v", u, v, err)
		}
	})
}
