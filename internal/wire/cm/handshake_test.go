package cm

import (
	"errors"
	"slices"
	"testing"
)

// TestPreambleEveryPort: the port is big-endian, the only such number here.
func TestPreambleEveryPort(t *testing.T) {
	for port := range 1 << 16 {
		wire := Preamble{Port: uint16(port)}.Append(nil)
		if wire[0] != byte(port>>8) || wire[1] != byte(port) {
			t.Fatalf("port %d: % x", port, wire)
		}
		if p, _, err := ParsePreamble(wire); err != nil || int(p.Port) != port {
			t.Fatalf("port %d: %+v, %v", port, p, err)
		}
	}
}

// TestHandshakeFields moves one field at a time and looks for it on the wire.
func TestHandshakeFields(t *testing.T) {
	base := Handshake{Version: HandshakeVersion, FormatServer: SelfHosted, ID: 0x3e832adc}
	wire := base.Append(nil)
	if len(wire) != HandshakeSize {
		t.Fatalf("%d bytes", len(wire))
	}
	for name, tt := range map[string]struct {
		h  Handshake
		at []int // bytes that may differ
	}{
		"version":       {Handshake{2, SelfHosted, base.ID, false}, []int{7}},
		"format server": {Handshake{1, 0x01020304, base.ID, false}, []int{8, 9, 10, 11}},
		"ID":            {Handshake{1, SelfHosted, 5, false}, []int{12, 13, 14, 15}},
		"answer":        {Handshake{1, SelfHosted, base.ID, true}, []int{15}},
	} {
		other := tt.h.Append(nil)
		for i := range wire {
			if changed := wire[i] != other[i]; changed != slices.Contains(tt.at, i) {
				t.Errorf("%s: byte %d: %#x and %#x", name, i, wire[i], other[i])
			}
		}
		if h, _, err := ParseHandshake(other); err != nil || h != tt.h {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

// TestHandshakeIgnoresTheLastWord: it has no meaning and must not get one.
func TestHandshakeIgnoresTheLastWord(t *testing.T) {
	wire := Handshake{Version: 1, ID: 9}.Append(nil)
	copy(wire[16:], "junk")
	if h, n, err := ParseHandshake(wire); err != nil || n != HandshakeSize || h.ID != 9 {
		t.Errorf("%+v, %d, %v", h, n, err)
	}
	wire[4]++
	if _, _, err := ParseHandshake(wire); !errors.Is(err, ErrMalformed) {
		t.Errorf("length 21: %v", err)
	}
}
