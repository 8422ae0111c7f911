package bp5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/bpfixture"
)

// indexedStep is a step record and the writer map that holds for it.
type indexedStep struct {
	Map WriterMap
	StepIndex
}

// parseIndex parses a whole md.idx and returns the steps and the bytes that are no complete record.
func parseIndex(t testing.TB, idx []byte) (steps []indexedStep, rest []byte) {
	t.Helper()
	if _, err := ParseIndexHeader(idx); err != nil {
		t.Fatal(err)
	}
	var m WriterMap
	for b := idx[IndexHeaderSize:]; ; {
		rec, n, err := ParseIndexRecord(b, int(m.Writers))
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return steps, b
		}
		if err != nil {
			t.Fatal(err)
		}
		b = b[n:]
		switch r := rec.(type) {
		case WriterMap:
			m = r
		case StepIndex:
			steps = append(steps, indexedStep{m, r})
		default:
			t.Fatalf("record %#v", rec)
		}
	}
}

func words(typ byte, w ...uint64) []byte {
	b := append([]byte{typ}, make([]byte, 8)...)
	binary.LittleEndian.PutUint64(b[1:], uint64(8*len(w)))
	return appendWords(b, w...)
}

func TestWriterMapLiteral(t *testing.T) {
	wire := "w\x28\x00\x00\x00\x00\x00\x00\x00" +
		"\x02\x00\x00\x00\x00\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00" + "\x04\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00"
	want := WriterMap{Writers: 2, Aggregators: 3, Subfiles: 4, Subfile: []uint64{1, 0}}
	checkRecord(t, wire, 0, want, want.Append(nil))
}

func TestStepIndexLiteral(t *testing.T) {
	wire := "s\x48\x00\x00\x00\x00\x00\x00\x00" +
		"\x10\x00\x00\x00\x00\x00\x00\x00" + "\x20\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x01\x00\x00\x00\x00\x00\x00" + "\x30\x00\x00\x00\x00\x00\x00\x00" + "\x00\x02\x00\x00\x00\x00\x00\x00" +
		"\x00\x03\x00\x00\x00\x00\x00\x00" + "\x40\x00\x00\x00\x00\x00\x00\x00" + "\x00\x04\x00\x00\x00\x00\x00\x00"
	want := StepIndex{MetaPos: 16, MetaLen: 32, Flushes: 1, Pieces: [][]Piece{
		{{0x100, 0x30}, {0x200, UnknownSize}},
		{{0x300, 0x40}, {0x400, UnknownSize}},
	}}
	checkRecord(t, wire, 2, want, want.Append(nil))
}

func TestSkippedRecordLiteral(t *testing.T) {
	checkRecord(t, "q\x03\x00\x00\x00\x00\x00\x00\x00abc", 0, SkippedRecord{Type: 'q', Size: 3}, []byte("q\x03\x00\x00\x00\x00\x00\x00\x00abc"))
}

// checkRecord checks one record both ways, and that every prefix of it is "not there yet".
func checkRecord(t *testing.T, wire string, writers int, want IndexRecord, appended []byte) {
	t.Helper()
	rec, n, err := ParseIndexRecord([]byte(wire+"next"), writers)
	if err != nil || n != len(wire) {
		t.Fatalf("n = %d of %d, err = %v", n, len(wire), err)
	}
	if diff := cmp.Diff(want, rec); diff != "" {
		t.Error(diff)
	}
	if string(appended) != wire {
		t.Errorf("Append = %q", appended)
	}
	for i := range len(wire) {
		if rec, n, err := ParseIndexRecord([]byte(wire[:i]), writers); rec != nil || n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("prefix %d: %v, n = %d, %v", i, rec, n, err)
		}
	}
}

// The numbers of whole records of every prefix of every index only grow, and the last one is all of it.
func TestIndexRecordsFixturePrefixes(t *testing.T) {
	for _, name := range bpfixture.Names() {
		idx := bpfixture.Files(t, name)["md.idx"]
		all, rest := parseIndex(t, idx)
		if len(rest) != 0 || len(all) == 0 {
			t.Errorf("%s: %d steps, %d bytes left", name, len(all), len(rest))
		}
		for n := IndexHeaderSize; n < len(idx); n++ {
			steps, _ := parseIndex(t, idx[:n:n])
			if len(steps) >= len(all) || len(steps) > 0 && !cmp.Equal(steps, all[:len(steps)]) {
				t.Fatalf("%s: prefix %d has steps %v", name, n, steps)
			}
		}
	}
}

// Append of what was parsed gives the file again.
func TestIndexRecordsFixtureRoundTrip(t *testing.T) {
	for _, name := range bpfixture.Names() {
		idx := bpfixture.Files(t, name)["md.idx"]
		out, writers := slices.Clone(idx[:IndexHeaderSize]), 0
		for b := idx[IndexHeaderSize:]; len(b) > 0; {
			rec, n, err := ParseIndexRecord(b, writers)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			b = b[n:]
			switch r := rec.(type) {
			case WriterMap:
				writers, out = int(r.Writers), r.Append(out)
			case StepIndex:
				out = r.Append(out)
			}
		}
		if !bytes.Equal(out, idx) {
			t.Errorf("%s: other bytes", name)
		}
	}
}

func TestIndexRecordRefuses(t *testing.T) {
	claim := func(typ byte, size uint64, body ...uint64) []byte {
		b := words(typ, body...)
		binary.LittleEndian.PutUint64(b[1:], size)
		return b
	}
	for _, tc := range []struct {
		name    string
		in      []byte
		writers int
	}{
		{"huge w", claim('w', 1<<40), 0},
		{"huge s", claim('s', math.MaxUint64), 1},
		{"huge unknown", claim('x', math.MaxUint64-8), 1},
		{"w not in words", claim('w', 33), 0},
		{"w without writers", words('w', 0, 1, 1), 0},
		{"w too short", words('w', 1, 1), 0},
		{"w other count", words('w', 3, 1, 1, 0, 0), 0},
		{"w other count, seen early", claim('w', 40, 3, 1, 1), 0},
		{"w count that overflows", words('w', 1<<61+1, 1, 1, 0), 0},
		{"w subfile out of range", words('w', 2, 1, 1, 0, 1), 0},
		{"s before w", words('s', 0, 8, 0, 0), 0},
		{"s negative writers", words('s', 0, 8, 0, 0), -1},
		{"s not in words", claim('s', 33), 1},
		{"s too short", words('s', 0, 8, 0), 1},
		{"s for other writers", words('s', 0, 8, 0, 1, 2), 3},
		{"s even number of words", words('s', 0, 8, 0, 1, 2), 1},
		{"s other flush count", words('s', 0, 8, 1, 0), 1},
		{"s other flush count, seen early", claim('s', 48, 0, 8, 0), 1},
		{"s flush count that overflows", words('s', 0, 8, 1<<63, 0), 1},
		{"s length past any file", words('s', 0, 1<<63, 0, 0), 1},
		{"s position past any file", words('s', math.MaxInt64, 8, 0, 0), 1},
		{"s position that wraps", words('s', math.MaxUint64-3, 8, 0, 0), 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if rec, n, err := ParseIndexRecord(tc.in, tc.writers); rec != nil || n != 0 || !errors.Is(err, ErrBadFile) {
				t.Errorf("%v, n = %d, err = %v", rec, n, err)
			}
		})
	}
}

// A file system may show the new size of a file before its data.
func TestIndexRecordZerosAreNotThereYet(t *testing.T) {
	if _, n, err := ParseIndexRecord(make([]byte, 100), 1); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("n = %d, err = %v", n, err)
	}
}

func FuzzIndexRecord(f *testing.F) {
	for _, name := range bpfixture.Names() {
		f.Add(bpfixture.Files(f, name)["md.idx"][IndexHeaderSize:], uint64(16), uint64(8))
	}
	f.Fuzz(func(t *testing.T, b []byte, loc, size uint64) {
		writers := 0
		for len(b) > 0 {
			rec, n, err := ParseIndexRecord(b, writers)
			if err != nil {
				if n != 0 {
					t.Fatalf("n = %d with %v", n, err)
				}
				return
			}
			var again []byte
			switch r := rec.(type) {
			case WriterMap:
				writers, again = int(r.Writers), r.Append(nil)
			case StepIndex:
				again = r.Append(nil)
				checkRanges(t, r.Pieces[writers-1], loc, size)
			case SkippedRecord:
				again = b[:n]
			}
			if !bytes.Equal(again, b[:n]) {
				t.Fatalf("%x came back as %x", b[:n], again)
			}
			b = b[n:]
		}
	})
}
