package cm

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Examples of cm.md §2.3: 2.10.2 with NetworkInterface=lo, and main.
const (
	contact210  = "AAIBAJTJ8o0BwQAAATkCmAEAAH9JOEt3AwAAAAMAbG8AAAAA"
	contactMain = "AAMAAJTJ8o0TlgAAATkCmAEAAH/e55DE3CqDPg=="
)

func i32(atom uint32, v int64) Attr { return Attr{Atom: atom, Kind: KindInt32, Int: v} }

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustParse(t testing.TB, s string) Contact {
	t.Helper()
	c, err := ParseContact(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestContactExamples(t *testing.T) {
	tests := []struct {
		text string
		want Contact
		addr string
		id   uint32
	}{
		{contact210, Contact{i32(AtomIPPort, 49409), i32(AtomIPAddr, 0x7f000001),
			{Atom: AtomIPInterface, Kind: KindString, Text: "lo"}}, "127.0.0.1:49409", 0},
		{contactMain, Contact{i32(AtomIPPort, 38419), i32(AtomIPAddr, 0x7f000001),
			i32(AtomCMID, 0x3e832adc)}, "127.0.0.1:38419", 0x3e832adc},
	}
	for _, tt := range tests {
		c := mustParse(t, tt.text)
		if diff := cmp.Diff(tt.want, c); diff != "" {
			t.Error(diff)
		}
		if got := c.String(); got != tt.text {
			t.Errorf("String() = %s, want %s", got, tt.text)
		}
		addr, err := c.Addr()
		if err != nil || addr.String() != tt.addr {
			t.Errorf("Addr() = %v, %v", addr, err)
		}
		id, ok := c.CMID()
		if id != tt.id || ok != (tt.id != 0) {
			t.Errorf("CMID() = %#x, %v", id, ok)
		}
	}
}

func TestContactLiteral(t *testing.T) {
	c := Contact{
		i32(AtomIPAddr, 0x7f000001), // unsorted: AtomIPPort is the smaller signed number
		i32(AtomIPPort, 49409),
		{Atom: AtomIPInterface, Kind: KindString, Text: "lo"},
	}
	got, err := c.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := unhex(t, "00020100 94c9f28d01c10000 013902980100007f 49384b7703000000 03006c6f00 000000")
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// every holds one attribute of each kind.
func every() Contact {
	return Contact{
		i32(AtomIPPort, 7), i32(AtomIPAddr, addrValue(netip.MustParseAddr("192.168.1.2"))),
		i32(Atom("NEGATIVE"), -3), i32(AtomWeft, WeftVersion),
		{Atom: Atom("i8"), Kind: KindInt64, Int: math.MinInt64},
		{Atom: Atom("text"), Kind: KindString, Text: "five!"},
		{Atom: Atom("empty"), Kind: KindString},
		{Atom: Atom("opaque"), Kind: KindOpaque, Bytes: []byte{0, 1, 2, 0}},
		{Atom: Atom("none"), Kind: KindOpaque},
		{Atom: Atom("atom"), Kind: KindAtom, Int: math.MaxUint32},
		{Atom: Atom("float"), Kind: KindFloat, Float: -2.5},
	}
}

func TestContactEveryKind(t *testing.T) {
	c := every()
	got := mustParse(t, c.String())
	if diff := cmp.Diff(c, got, cmpopts.SortSlices(func(a, b Attr) bool { return a.Atom < b.Atom }), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if addr, err := got.Addr(); err != nil || addr.String() != "192.168.1.2:7" {
		t.Errorf("Addr() = %v, %v", addr, err)
	}
}

func TestContactKindLiterals(t *testing.T) {
	tests := []struct {
		attr Attr
		want string
	}{
		{Attr{Atom: 0x01020304, Kind: KindInt64, Int: -2}, "04030201 02000000 feffffffffffffff"},
		{Attr{Atom: 0x01020304, Kind: KindString, Text: "abcdef"}, "04030201 03000000 0700 61626364656600 000000"},
		{Attr{Atom: 0x01020304, Kind: KindString, Text: "a"}, "04030201 03000000 0200 6100"},
		{Attr{Atom: 0x01020304, Kind: KindOpaque, Bytes: []byte{9}}, "04030201 04000000 0100 09 00"},
		{Attr{Atom: 0x01020304, Kind: KindAtom, Int: 0xfffefdfc}, "04030201 05000000 fcfdfeff"},
		{Attr{Atom: 0x01020304, Kind: KindFloat, Float: 1}, "04030201 08000000 000000000000f03f"},
	}
	for _, tt := range tests {
		want := append([]byte{0, 0, 1, 0}, unhex(t, tt.want)...)
		got, err := Contact{tt.attr}.Append(nil)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: %x, want %x (%v)", tt.attr.Kind, got, want, err)
		}
		c, err := ParseAttrs(want)
		if diff := cmp.Diff(Contact{tt.attr}, c); diff != "" || err != nil {
			t.Errorf("%v: %v %s", tt.attr.Kind, err, diff)
		}
	}
}

func TestContactEveryPrefix(t *testing.T) {
	for _, c := range []Contact{mustParse(t, contact210), mustParse(t, contactMain), every()} {
		raw, err := c.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range raw {
			got, err := ParseAttrs(raw[:i])
			if !errors.Is(err, ErrContact) || !errors.Is(err, io.ErrUnexpectedEOF) || got != nil {
				t.Errorf("prefix %d of %d: %v, %v", i, len(raw), got, err)
			}
		}
	}
}

func TestContactSlack(t *testing.T) {
	raw, _ := mustParse(t, contactMain).Append(nil)
	if _, err := ParseAttrs(append(bytes.Clone(raw), make([]byte, 8)...)); err != nil {
		t.Errorf("8 zero bytes of slack: %v", err)
	}
	for _, tail := range [][]byte{make([]byte, 9), {0, 1}} {
		if _, err := ParseAttrs(append(bytes.Clone(raw), tail...)); !errors.Is(err, ErrContact) {
			t.Errorf("tail % x: %v", tail, err)
		}
	}
}

func TestContactRefused(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString(unhex(t, s)) }
	tests := []struct{ name, text string }{
		{"empty", ""},
		{"not base64", "AAMA*"},
		{"no padding", strings.TrimRight(contactMain, "=")},
		{"line break", contactMain[:8] + "\n" + contactMain[8:]},
		{"kind 1", b64("00000100 04030201 01000000 00000000")},
		{"kind 6", b64("00000100 04030201 06000000 00000000")},
		{"kind 9", b64("00000100 04030201 09000000 0000000000000000")},
		{"negative length", b64("00000100 04030201 03000000 ffff0000")},
		{"no NUL", b64("00000100 04030201 03000000 02006162")},
		{"length 0", b64("00000100 04030201 03000000 00000000")},
		{"255 integers claimed", b64("00ff0000 94c9f28d01c10000")},
	}
	for _, tt := range tests {
		if c, err := ParseContact(tt.text); !errors.Is(err, ErrContact) || c != nil {
			t.Errorf("%s: %v, %v", tt.name, c, err)
		}
	}
	if _, err := ParseContact(b64("01010000 8df2c994 0000c101")); !errors.Is(err, ErrByteOrder) {
		t.Errorf("big-endian: %v", err)
	}
}

func TestContactTextEndsAtNUL(t *testing.T) {
	c, err := ParseAttrs(unhex(t, "00000100 04030201 03000000 06006100620000 00 00000000")[:20])
	if err != nil || c[0].Text != "a" {
		t.Errorf("%v, %v", c, err)
	}
}

func TestContactLimits(t *testing.T) {
	fill := func(n int, kind AttrKind) Contact {
		var c Contact
		for i := range n {
			c = append(c, Attr{Atom: uint32(i) * 0x1000193, Kind: kind, Int: int64(i)})
		}
		return c
	}
	good := append(fill(255, KindInt32), fill(255, KindAtom)...)
	if got := mustParse(t, good.String()); len(got) != 510 {
		t.Errorf("%d attributes came back", len(got))
	}
	long := Contact{{Atom: 1, Kind: KindString, Text: strings.Repeat("x", 32766)}}
	if got := mustParse(t, long.String()); got[0].Text != long[0].Text {
		t.Error("the longest string did not come back")
	}
	bad := map[string]Contact{
		"256 integers":  fill(256, KindInt32),
		"256 others":    fill(256, KindInt64),
		"long string":   {{Atom: 1, Kind: KindString, Text: strings.Repeat("x", 32767)}},
		"NUL in string": {{Atom: 1, Kind: KindString, Text: "a\x00b"}},
		"long opaque":   {{Atom: 1, Kind: KindOpaque, Bytes: make([]byte, 32768)}},
		"wide integer":  {i32(1, math.MaxInt32+1)},
		"negative atom": {{Atom: 1, Kind: KindAtom, Int: -1}},
		"no kind":       {{Atom: 1}},
		"kind 6":        {{Atom: 1, Kind: 6}},
	}
	for name, c := range bad {
		if _, err := c.Append(nil); !errors.Is(err, ErrContact) {
			t.Errorf("%s: %v", name, err)
		}
		if s := c.String(); s != "" {
			t.Errorf("%s: String() = %.20q", name, s)
		}
	}
}

func TestContactAddr(t *testing.T) {
	base := mustParse(t, contactMain)
	str := func(atom uint32, s string) Attr { return Attr{Atom: atom, Kind: KindString, Text: s} }

	_, err := base.With(str(AtomTransport, "enet")).Addr()
	if te, ok := errors.AsType[*TransportError](err); !ok || te.Transport != "enet" || !errors.Is(err, ErrNoAddress) {
		t.Errorf("enet: %v", err)
	}
	if _, err := base.With(str(AtomTransport, TransportSockets)).Addr(); err != nil {
		t.Errorf("sockets: %v", err)
	}
	_, err = Contact{i32(AtomIPPort, 80), str(AtomIPHost, "node7")}.Addr()
	if he, ok := errors.AsType[*HostOnlyError](err); !ok || he.Host != "node7" || he.Port != 80 || !errors.Is(err, ErrNoAddress) {
		t.Errorf("host only: %v", err)
	}
	if _, err := base.With(str(AtomIPHost, "node7")).Addr(); err != nil {
		t.Errorf("host and address: %v", err)
	}
	for name, c := range map[string]Contact{
		"nothing":        nil,
		"no port":        {i32(AtomIPAddr, 0x7f000001)},
		"port 0":         base.With(i32(AtomIPPort, 0)),
		"port -1":        base.With(i32(AtomIPPort, -1)),
		"port 65536":     base.With(i32(AtomIPPort, 65536)),
		"0.0.0.0":        base.With(i32(AtomIPAddr, 0)),
		"multicast":      base.With(i32(AtomIPAddr, addrValue(netip.MustParseAddr("224.0.0.1")))),
		"address a text": base.With(str(AtomIPAddr, "127.0.0.1")),
	} {
		if a, err := c.Addr(); !errors.Is(err, ErrNoAddress) || err.Error() == "" {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

func TestNewContact(t *testing.T) {
	c, err := NewContact(netip.MustParseAddrPort("127.0.0.1:38419"), 0x3e832adc)
	if err != nil || c.String() != contactMain {
		t.Errorf("%v, %v", c, err)
	}
	if c, err = NewContact(netip.MustParseAddrPort("[::ffff:10.0.0.200]:1"), 0); err != nil || len(c) != 2 {
		t.Errorf("mapped address: %v, %v", c, err)
	}
	if a, err := c.Addr(); err != nil || a.String() != "10.0.0.200:1" {
		t.Errorf("%v, %v", a, err)
	}
	for _, bad := range []netip.AddrPort{{}, netip.MustParseAddrPort("[::1]:5"), netip.MustParseAddrPort("1.2.3.4:0")} {
		if _, err := NewContact(bad, 1); !errors.Is(err, ErrNoAddress) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestContactWith(t *testing.T) {
	c := mustParse(t, contactMain)
	d, err := c.WithAddr(netip.MustParseAddr("10.1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := d.Addr(); a.String() != "10.1.2.3:38419" || len(d) != 3 {
		t.Errorf("%v in %v", a, d)
	}
	if c.String() != contactMain {
		t.Error("the original changed")
	}
	if _, err := c.WithAddr(netip.MustParseAddr("::1")); !errors.Is(err, ErrNoAddress) {
		t.Errorf("IPv6: %v", err)
	}
}

func TestContactMark(t *testing.T) {
	c := mustParse(t, contactMain)
	if v, ok := c.Mark(); ok || v != 0 {
		t.Errorf("a real peer has mark %d", v)
	}
	marked := mustParse(t, c.WithMark().String())
	if v, ok := marked.Mark(); !ok || v != WeftVersion {
		t.Errorf("Mark() = %d, %v", v, ok)
	}
	for _, a := range []Attr{i32(AtomWeft, 0), i32(AtomWeft, -1), {Atom: AtomWeft, Kind: KindString, Text: "1"}} {
		if v, ok := c.With(a).Mark(); ok || v != 0 {
			t.Errorf("%+v taken as mark %d", a, v)
		}
	}
}

func TestContactDescribe(t *testing.T) {
	got := mustParse(t, contact210).WithMark().Describe()
	want := `IP_PORT=49409 IP_ADDR=127.0.0.1 IP_INTERFACE="lo" WEFT=1`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, part := range []string{"=-2.5", "=(4 bytes)", `="five!"`, "=0xffffffff", "=-9223372036854775808", "=-3"} {
		if !strings.Contains(every().Describe(), part) {
			t.Errorf("%q is missing in %s", part, every().Describe())
		}
	}
}

func TestAttrKindString(t *testing.T) {
	for k, want := range map[AttrKind]string{KindInt32: "int32", KindInt64: "int64", KindString: "string",
		KindOpaque: "opaque", KindAtom: "atom", KindFloat: "float", 6: "kind 6"} {
		if k.String() != want {
			t.Errorf("%d: %s", uint32(k), k)
		}
	}
}

func FuzzContact(f *testing.F) {
	for _, c := range []Contact{mustParse(f, contact210), mustParse(f, contactMain), every()} {
		raw, _ := c.Append(nil)
		f.Add(raw)
		f.Add([]byte(c.String()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkContact(t, string(b))
		checkContact(t, base64.StdEncoding.EncodeToString(b))
	})
}

// checkContact parses anything; what parses has a stable canonical form.
func checkContact(t *testing.T, text string) {
	c, err := ParseContact(text)
	if err != nil {
		if !errors.Is(err, ErrContact) || c != nil {
			t.Fatalf("%v, %v", c, err)
		}
		return
	}
	c.Describe()
	_, _ = c.Addr()
	canonical := c.String()
	if canonical == "" {
		t.Fatalf("parsed but not encodable: %+v", c)
	}
	again, err := ParseContact(canonical)
	if err != nil || again.String() != canonical {
		t.Fatalf("canonical form is not stable: %s, %v", canonical, err)
	}
}
