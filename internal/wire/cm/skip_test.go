package cm

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// strangers holds one attribute of every kind under atoms that nobody knows.
func strangers() []Attr {
	return []Attr{
		i32(Atom("stranger 1"), -1),
		{Atom: Atom("stranger 2"), Kind: KindInt64, Int: -1},
		{Atom: Atom("stranger 3"), Kind: KindString, Text: "x"},
		{Atom: Atom("stranger 4"), Kind: KindString, Text: "four"},
		{Atom: Atom("stranger 5"), Kind: KindOpaque, Bytes: []byte{1, 2, 3}},
		{Atom: Atom("stranger 6"), Kind: KindAtom, Int: 7},
		{Atom: Atom("stranger 7"), Kind: KindFloat, Float: 1},
	}
}

// TestUnknownAtomsAreSkipped puts strangers of every kind before, between and
// behind what we look for.
func TestUnknownAtomsAreSkipped(t *testing.T) {
	known := mustParse(t, contactMain).WithMark().With(Attr{Atom: AtomTransport, Kind: KindString, Text: TransportSockets})
	for _, s := range strangers() {
		for at := range len(known) + 1 {
			c := mustParse(t, slices.Insert(slices.Clone(known), at, s).String())
			if a, err := c.Addr(); err != nil || a.String() != "127.0.0.1:38419" {
				t.Errorf("%v at %d: %v, %v", s.Kind, at, a, err)
			}
			if id, ok := c.CMID(); !ok || id != 0x3e832adc {
				t.Errorf("%v at %d: ID %#x", s.Kind, at, id)
			}
			if v, ok := c.Mark(); !ok || v != WeftVersion {
				t.Errorf("%v at %d: mark %d", s.Kind, at, v)
			}
			if a, ok := c.Lookup(s.Atom); !ok || a.Kind != s.Kind {
				t.Errorf("%v at %d: lost", s.Kind, at)
			}
		}
	}
}

// TestKnownAtomsOfAnotherKind are not taken for what they are not.
func TestKnownAtomsOfAnotherKind(t *testing.T) {
	base := mustParse(t, contactMain).WithMark()
	for _, s := range strangers()[1:] {
		odd := s
		odd.Atom = AtomCMID
		if id, ok := base.With(odd).CMID(); ok {
			t.Errorf("%v as ID %#x", s.Kind, id)
		}
		odd.Atom = AtomWeft
		if v, ok := base.With(odd).Mark(); ok {
			t.Errorf("%v as mark %d", s.Kind, v)
		}
		for _, atom := range []uint32{AtomIPAddr, AtomIPPort} {
			odd.Atom = atom
			if a, err := base.With(odd).Addr(); err == nil {
				t.Errorf("%v under %#x as %v", s.Kind, atom, a)
			}
		}
	}
	if _, err := base.With(i32(AtomTransport, 1)).Addr(); err == nil {
		t.Error("an integer as transport")
	}
}

// TestManyIntegersInAnyOrder: 254 integers in descending order were accepted by
// every real peer (cm.md §2.5); so they are here, and the first of two counts.
func TestManyIntegersInAnyOrder(t *testing.T) {
	raw := []byte{0, 254, 0, 0}
	for i := range 252 {
		atom := uint32(0x7fffffff - i)
		raw = append(raw, byte(atom), byte(atom>>8), byte(atom>>16), byte(atom>>24), byte(i), 0, 0, 0)
	}
	raw = append(raw, unhex(t, "01390298 0200007f 94c9f28d 01c10000")...)
	c, err := ParseAttrs(raw)
	if err != nil || len(c) != 254 {
		t.Fatalf("%d, %v", len(c), err)
	}
	if a, err := c.Addr(); err != nil || a.String() != "127.0.0.2:49409" {
		t.Errorf("%v, %v", a, err)
	}
	twice := append(Contact{i32(AtomIPPort, 1)}, c...)
	if a, err := twice.Addr(); err != nil || a.Port() != 1 {
		t.Errorf("%v, %v", a, err)
	}
	if once := twice.With(i32(AtomIPPort, 2)); len(once) != 254 {
		t.Errorf("%d attributes after replacing both", len(once))
	}
}

// TestEveryAddress sends corner addresses and ports there and back.
func TestEveryAddress(t *testing.T) {
	for _, ip := range []string{"1.0.0.0", "127.0.0.1", "128.0.0.1", "192.168.255.254", "223.255.255.255", "255.255.255.254"} {
		for _, port := range []uint16{1, 255, 256, 32767, 32768, 65535} {
			want := netip.AddrPortFrom(netip.MustParseAddr(ip), port)
			for _, id := range []uint32{0, 1, 1<<31 - 1} {
				c, err := NewContact(want, id)
				if err != nil {
					t.Fatal(err)
				}
				c = mustParse(t, c.String())
				got, err := c.Addr()
				if err != nil || got != want {
					t.Errorf("%v became %v, %v", want, got, err)
				}
				if back, ok := c.CMID(); back != id || ok != (id != 0) {
					t.Errorf("ID %#x became %#x, %v", id, back, ok)
				}
				if text := fmt.Sprintf("IP_ADDR=%s", ip); !slices.Contains(words(c), text) {
					t.Errorf("%v does not say %s", words(c), text)
				}
			}
		}
	}
}

func words(c Contact) []string {
	var out []string
	for _, a := range c {
		out = append(out, Contact{a}.Describe())
	}
	return out
}
