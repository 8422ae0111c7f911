package shm

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func someHello() *hello {
	return &hello{
		kind: kindHello, inc: 0x1122334455667788, want: 9, boot: bootID{1, 2, 3, 15: 16}, net: 4026531840,
		layout: layout{home: 1, lanes: 2, control: 3, data: 4, hazards: 5, table: 6, asks: 7},
		uid:    1000, features: 7, life: 128, from: "a", to: "be", path: "/f",
		segments: []segmentInfo{{index: 1, access: 2, size: 1 << 40}, {index: 3}},
	}
}

var compareHello = cmp.AllowUnexported(hello{}, layout{}, segmentInfo{}, refusal{})

// parse reads any message, as the bootstrap does.
func parse(b []byte) (any, error) {
	kind, body, err := parseHead(b)
	if err != nil {
		return nil, err
	}
	switch kind {
	case kindHello, kindWelcome:
		return parseHello(kind, body)
	case kindRefuse:
		return parseRefusal(body)
	case kindSegments:
		return parseAnnouncement(body)
	case kindDrop:
		return parseDrop(body)
	case kindLane:
		return parseLaneOffer(body)
	}
	return nil, errMessage
}

func messages() []struct {
	value any
	wire  []byte
} {
	welcome := someHello()
	welcome.kind, welcome.segments, welcome.path = kindWelcome, nil, ""
	f := refusal{code: refuseUser, text: "user 7"}
	a := announcement{{index: 9, access: 1, size: 4096}}
	d := drop{1, 2, 0xffffffff}
	return []struct {
		value any
		wire  []byte
	}{
		{someHello(), someHello().Append(nil)}, {welcome, welcome.Append(nil)}, {f, f.Append(nil)}, {a, a.Append(nil)}, {d, d.Append(nil)},
		{laneOffer(1 << 20), laneOffer(1 << 20).Append(nil)},
	}
}

func TestMessages(t *testing.T) {
	for _, m := range messages() {
		got, err := parse(m.wire)
		if err != nil {
			t.Errorf("%T: %v", m.value, err)
			continue
		}
		if diff := cmp.Diff(m.value, got, compareHello); diff != "" {
			t.Errorf("%T: %s", m.value, diff)
		}
		for i := range m.wire {
			if _, err := parse(m.wire[:i]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%T: the first %d bytes of %d: %v", m.value, i, len(m.wire), err)
			}
		}
		if _, err := parse(append(bytes.Clone(m.wire), 0)); !errors.Is(err, errMessage) {
			t.Errorf("%T: with a byte more: %v", m.value, err)
		}
	}
}

// The bytes are these, on every machine.
func TestRefusalOnTheWire(t *testing.T) {
	got := refusal{code: 4, text: "no"}.Append([]byte("x"))
	want := "xWEFTSHM1" + "\x01\x00\x03\x00\x16\x00\x00\x00" + "\x04\x00" + "\x02\x00no"
	if string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBadMessages(t *testing.T) {
	nameless := someHello()
	nameless.from = ""
	unborn := someHello()
	unborn.inc = 0
	long := someHello()
	long.to = strings.Repeat("x", maxName+1)
	many := make(announcement, maxSegments+1)
	for name, wire := range map[string][]byte{
		"no name":           nameless.Append(nil),
		"no incarnation":    unborn.Append(nil),
		"long name":         long.Append(nil),
		"too many segments": many.Append(nil),
		"too many drops":    make(drop, maxSegments+1).Append(nil),
		"magic":             append([]byte("x"), someHello().Append(nil)[1:]...),
		"version":           mutate(someHello().Append(nil), 8, 2),
		"kind":              mutate(someHello().Append(nil), 10, 99),
	} {
		if _, err := parse(wire); !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f := (refusal{text: strings.Repeat("x", 1<<17)}); len(f.Append(nil)) > maxMessage {
		t.Error("a long reason makes a message that is too long")
	}
}

// A hello with everything at its longest is still one packet.
func TestLongestHello(t *testing.T) {
	h := someHello()
	h.from, h.to = strings.Repeat("x", maxName), strings.Repeat("y", maxName)
	h.path = strings.Repeat("p", 1024)
	h.segments = make([]segmentInfo, maxSegments)
	if n := len(h.Append(nil)); n > maxMessage {
		t.Errorf("%d bytes", n)
	}
}

func mutate(b []byte, at int, to byte) []byte {
	b = bytes.Clone(b)
	b[at] = to
	return b
}

func FuzzMessage(f *testing.F) {
	for _, m := range messages() {
		f.Add(m.wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		m, err := parse(wire)
		if err != nil {
			return
		}
		var again []byte
		switch m := m.(type) {
		case *hello:
			again = m.Append(nil)
		case refusal:
			again = m.Append(nil)
		case announcement:
			again = m.Append(nil)
		case drop:
			again = m.Append(nil)
		case laneOffer:
			again = m.Append(nil)
		}
		if !bytes.Equal(again, wire) {
			t.Fatalf("%x is read, and written as %x", wire, again)
		}
	})
}
