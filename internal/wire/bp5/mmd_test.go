package bp5

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// entryOf makes an entry with a description of n bytes that begins with its length.
func entryOf(id byte, n int) FormatEntry {
	e := FormatEntry{ID: [12]byte{2, 0, 0, 11: id}, Description: bytes.Repeat([]byte{id}, n)}
	copy(e.Description, []byte{byte(n >> 8), byte(n), 0, 2, 0, 0, byte(n >> 24), byte(n >> 16)})
	return e
}

func TestFormatEntryLiteral(t *testing.T) {
	wire := "\x0c\x00\x00\x00\x00\x00\x00\x00" + "\x10\x00\x00\x00\x00\x00\x00\x00" +
		"\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" +
		"\x00\x0c\x00\x02\x00\x00\x00\x00\x07\x07\x07\x07" + "\x00\x00\x00\x00"
	want := entryOf(7, 12)
	entries, n, err := ParseMMD([]byte(wire))
	if err != nil || n != len(wire) {
		t.Fatalf("n = %d, err = %v", n, err)
	}
	if diff := cmp.Diff([]FormatEntry{want}, entries); diff != "" {
		t.Error(diff)
	}
	if got := string(want.Append(nil)); got != wire {
		t.Errorf("Append = %q", got)
	}
}

// Every prefix gives the entries that are whole in it, and no error: the rest is not there yet.
func TestMMDFixturePrefixes(t *testing.T) {
	for _, name := range bpfixture.Names() {
		mmd := bpfixture.Files(t, name)["mmd.0"]
		all, n, err := ParseMMD(mmd)
		if err != nil || n != len(mmd) || len(all) == 0 {
			t.Fatalf("%s: %d entries, n = %d of %d, err = %v", name, len(all), n, len(mmd), err)
		}
		for i := range mmd {
			entries, n, err := ParseMMD(mmd[:i:i])
			if err != nil || n > i || len(entries) >= len(all) {
				t.Fatalf("%s: prefix %d: %d entries, n = %d, err = %v", name, i, len(entries), n, err)
			}
			more, m, err := ParseMMD(mmd[n:])
			if err != nil || n+m != len(mmd) || len(entries)+len(more) != len(all) {
				t.Fatalf("%s: going on at %d: %d and %d entries of %d, err = %v", name, n, len(entries), len(more), len(all), err)
			}
		}
	}
}

// ADIOS2 main pads with zeros just as Append does, so the files come back byte for byte; 2.10.2 does not pad.
func TestMMDFixtureRoundTrip(t *testing.T) {
	for _, name := range bpfixture.Names() {
		mmd := bpfixture.Files(t, name)["mmd.0"]
		entries, _, err := ParseMMD(mmd)
		if err != nil {
			t.Fatal(err)
		}
		var out []byte
		for _, e := range entries {
			out = e.Append(out)
		}
		if strings.HasPrefix(name, "main-") && !bytes.Equal(out, mmd) {
			t.Errorf("%s: other bytes", name)
		}
		again, n, err := ParseMMD(out)
		if diff := cmp.Diff(entries, again); err != nil || n != len(out) || diff != "" {
			t.Errorf("%s: n = %d, err = %v\n%s", name, n, err, diff)
		}
	}
}

func TestMMDZerosAreNotThereYet(t *testing.T) {
	e := entryOf(1, 20)
	b := appendZeros(e.Append(nil), 50)
	entries, n, err := ParseMMD(b)
	if err != nil || len(entries) != 1 || n != len(b)-50 {
		t.Errorf("%d entries, n = %d, err = %v", len(entries), n, err)
	}
}

func TestMMDRefuses(t *testing.T) {
	good := entryOf(1, 20).Append(nil)
	entry := func(idLen, descLen uint64, desc string) []byte {
		return append(append(appendWords(nil, idLen, descLen), make([]byte, 12)...), desc...)
	}
	for name, bad := range map[string][]byte{
		"id length":               entry(8, 16, "\x00\x10\x00\x02\x00\x00\x00\x0089abcdef"),
		"id length 0":             entry(0, 16, ""),
		"huge id":                 entry(1<<60, 16, ""),
		"huge description":        entry(12, 1<<60, ""),
		"wrapping description":    entry(12, 1<<64-1, ""),
		"description of 7":        entry(12, 7, "1234567"),
		"no description":          entry(12, 0, ""),
		"inner length too long":   entry(12, 8, "\x00\x09\x00\x02\x00\x00\x00\x00"),
		"inner length, high half": entry(12, 8, "\x00\x08\x00\x02\x00\x00\x00\x01"),
		"inner length too short":  entry(12, 8, "\x00\x07\x00\x02\x00\x00\x00\x00"),
	} {
		entries, n, err := ParseMMD(append(bytes.Clone(good), bad...))
		if !errors.Is(err, ErrBadFile) || len(entries) != 1 || n != len(good) {
			t.Errorf("%s: %d entries, n = %d, err = %v", name, len(entries), n, err)
		}
	}
}

func FuzzMMD(f *testing.F) {
	for _, name := range bpfixture.Names() {
		f.Add(bpfixture.Files(f, name)["mmd.0"])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, n, err := ParseMMD(b)
		if n < 0 || n > len(b) {
			t.Fatalf("n = %d of %d", n, len(b))
		}
		if err != nil && !errors.Is(err, ErrBadFile) {
			t.Fatal(err)
		}
		var out []byte
		for _, e := range entries {
			out = e.Append(out)
		}
		again, n, err := ParseMMD(out)
		if diff := cmp.Diff(entries, again); err != nil || n != len(out) || diff != "" {
			t.Fatal(n, err, diff)
		}
	})
}
