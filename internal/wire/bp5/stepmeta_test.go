package bp5

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

func TestStepMetaLiteral(t *testing.T) {
	wire := "\x30\x00\x00\x00\x00\x00\x00\x00" + // 48 bytes follow
		"\x08\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + // metadata of ranks 0 and 1
		"\x00\x00\x00\x00\x00\x00\x00\x00" + "\x08\x00\x00\x00\x00\x00\x00\x00" + // attribute slots
		"record0\x00" + "attr1\x00\x00\x00"
	meta, attrs, err := ParseStepMeta([]byte(wire), 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]byte{[]byte("record0\x00"), nil}, meta); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]byte{nil, []byte("attr1\x00\x00\x00")}, attrs); diff != "" {
		t.Error(diff)
	}
	got := AppendStepMeta(nil, [][]byte{[]byte("record0"), nil}, [][]byte{nil, []byte("attr1")})
	if string(got) != wire {
		t.Errorf("Append = %q", got)
	}
}

// Fewer attribute slots than ranks is what a writer normally has.
func TestAppendStepMetaFillsSlots(t *testing.T) {
	meta := [][]byte{[]byte("12345678"), []byte("abcdefgh"), []byte("ABCDEFGH")}
	b := AppendStepMeta([]byte("front"), meta, nil)[5:]
	gotMeta, gotAttrs, err := ParseStepMeta(b, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][][]byte{meta, {nil, nil, nil}}, [][][]byte{gotMeta, gotAttrs}); diff != "" {
		t.Error(diff)
	}
}

// eachStep calls f with the metadata of each step of each dataset.
func eachStep(t testing.TB, f func(name string, b []byte, writers int)) {
	t.Helper()
	for _, name := range bpfixture.Names() {
		files := bpfixture.Files(t, name)
		steps, _ := parseIndex(t, files["md.idx"])
		for _, s := range steps {
			f(name, files["md.0"][s.MetaPos:s.MetaPos+s.MetaLen], int(s.Map.Writers))
		}
	}
}

func TestStepMetaFixtures(t *testing.T) {
	eachStep(t, func(name string, b []byte, writers int) {
		meta, attrs, err := ParseStepMeta(b, writers)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for w, r := range meta {
			if len(r) < 24 {
				t.Errorf("%s: rank %d: record of %d bytes", name, w, len(r))
			}
		}
		if !bytes.Equal(AppendStepMeta(nil, meta, attrs), b) {
			t.Errorf("%s: Append gives other bytes", name)
		}
	})
}

// Whole steps are in md.0 back to back, so a longer range is as wrong as a shorter one.
func TestStepMetaFixturePrefixes(t *testing.T) {
	eachStep(t, func(name string, b []byte, writers int) {
		for n := range b {
			if _, _, err := ParseStepMeta(b[:n:n], writers); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s: prefix %d: %v", name, n, err)
			}
		}
		if _, _, err := ParseStepMeta(append(bytes.Clone(b), 0), writers); !errors.Is(err, ErrBadFile) {
			t.Fatalf("%s: one byte more: %v", name, err)
		}
	})
}

func TestStepMetaRefuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		in      []byte
		writers int
	}{
		{"no writers", appendWords(nil, 0), 0},
		{"negative writers", appendWords(nil, 0), -1},
		{"no room for the lengths", appendWords(nil, 8, 0), 1},
		{"more writers than bytes", appendWords(nil, 16, 0, 0), math.MaxInt},
		{"record too long", appendWords(nil, 24, 16, 0, 0), 1},
		{"record that wraps", appendWords(nil, 24, math.MaxUint64, 0, 0), 1},
		{"sum that wraps", appendWords(nil, 24, 8, math.MaxUint64-7, 0), 1},
		{"bytes left over", appendWords(nil, 32, 8, 0, 0, 0), 1},
	} {
		if _, _, err := ParseStepMeta(tc.in, tc.writers); !errors.Is(err, ErrBadFile) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, _, err := ParseStepMeta(appendWords(nil, math.MaxUint64, 0, 0), 1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("huge total: %v", err)
	}
}

func FuzzStepMeta(f *testing.F) {
	eachStep(f, func(_ string, b []byte, writers int) { f.Add(b, writers) })
	f.Fuzz(func(t *testing.T, b []byte, writers int) {
		meta, attrs, err := ParseStepMeta(b, writers)
		if err != nil {
			return
		}
		meta2, attrs2, err := ParseStepMeta(AppendStepMeta(nil, meta, attrs), writers)
		if err != nil || len(meta2) != writers || len(attrs2) != writers {
			t.Fatalf("%d and %d records for %d writers, err = %v", len(meta2), len(attrs2), writers, err)
		}
		for i := range meta {
			if !bytes.HasPrefix(meta2[i], meta[i]) || !bytes.HasPrefix(attrs2[i], attrs[i]) {
				t.Fatalf("record %d changed", i)
			}
		}
	})
}
