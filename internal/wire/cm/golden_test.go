package cm

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCapturesAgreeWithOtherDecoder compares what we find in the captures with
// the list that a separate decoder made of them.
func TestCapturesAgreeWithOtherDecoder(t *testing.T) {
	want, err := os.ReadFile("testdata/captures/units.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, c := range captures(t) {
		c.list(t, &got)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Error(diff)
	}
}

// list writes one line for each unit of a capture.
func (c capture) list(t *testing.T, w *strings.Builder) {
	t.Helper()
	fmt.Fprintf(w, "%s %d\n", c.name, len(c.bytes))
	at := 0
	if c.active {
		p, n, err := ParsePreamble(c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(w, "0 PREAMBLE port=%d\n", p.Port)
		at = n
	}
	for at < len(c.bytes) {
		u, n, err := ParseUnit(c.bytes[at:])
		if err != nil {
			t.Fatalf("%s: byte %d: %v", c.name, at, err)
		}
		fmt.Fprintf(w, "%d %s\n", at, line(u, c.bytes[at:]))
		at += n
	}
}

// line describes a unit in the words of the list.
func line(u Unit, wire []byte) string {
	switch u := u.(type) {
	case Handshake:
		id := u.ID
		if u.Answer {
			id |= handshakeAnswer
		}
		return fmt.Sprintf("CMH ver=%d fsid=%08x cmid=%08x", u.Version, u.FormatServer, id)
	case FormatMessage:
		return fmt.Sprintf("PBIO type=%d cond=%d id=%x body=%d", u.Type, u.Condition, u.First, len(u.Second))
	case Data:
		return fmt.Sprintf("CMD len=%d ck=%02x", len(u.Record), wire[0])
	}
	return fmt.Sprintf("%T", u)
}
