package ffs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"testing"
)

// Every body of the corpus has the ID that came with it, and rebuilding it from
// its description gives the same bytes, in both ways of ordering the structs.
func TestRealBodies(t *testing.T) {
	n := 0
	for _, s := range load(t) {
		for _, b := range s.bodies {
			n++
			f, size, err := Parse(b.bytes)
			if err != nil {
				t.Errorf("%s: format %v: %v", s.name, b.id, err)
				continue
			}
			if f.ID() != b.id || IDOf(b.bytes[:size]) != b.id || !bytes.Equal(f.Body(), b.bytes[:size]) {
				t.Errorf("%s: %q: ID %v, sent as %v", s.name, f.Name(), f.ID(), b.id)
			}
			if len(b.bytes)-size > 7 {
				t.Errorf("%s: %q: %d bytes of padding", s.name, f.Name(), len(b.bytes)-size)
			}
			checkRebuilt(t, s.name, f)
		}
	}
	if n < 100 {
		t.Errorf("only %d format bodies in the corpus", n)
	}
	t.Logf("%d format bodies", n)
}

func checkRebuilt(t *testing.T, where string, f *Format) {
	t.Helper()
	given := f.Structs()
	computed := slices.Clone(given)
	for i := range computed {
		computed[i].Align = 0
	}
	for name, build := range map[string]func() (*Format, error){
		"as given":           func() (*Format, error) { return New(given...) },
		"computed alignment": func() (*Format, error) { return New(computed...) },
		"ordered":            func() (*Format, error) { return Ordered(computed[0], computed[1:]...) },
	} {
		g, err := build()
		if err != nil {
			t.Errorf("%s: %q %s: %v", where, f.Name(), name, err)
		} else if !bytes.Equal(g.Body(), f.Body()) {
			t.Errorf("%s: %q %s: another body", where, f.Name(), name)
		}
	}
}

// Every record of the corpus is decoded and encoded again to the same bytes, in
// one piece and in several.
func TestRealRecords(t *testing.T) {
	n := 0
	for _, s := range load(t) {
		formats := s.formats(t)
		for _, rec := range s.records {
			n++
			id, _ := RecordID(rec.bytes)
			f := formats[id]
			if f == nil {
				t.Fatalf("%s at offset %d: no format %v", s.name, rec.at, id)
			}
			r, size, err := f.Record(rec.bytes)
			if err != nil {
				t.Errorf("%s at offset %d: %v", s.name, rec.at, err)
				continue
			}
			if pad := len(rec.bytes) - size; pad != 0 && (rec.exact || pad > 7) {
				t.Errorf("%s at offset %d: %d bytes left", s.name, rec.at, pad)
			}
			checkEncoded(t, r, rec.bytes[:size])
		}
	}
	if n < 200 {
		t.Errorf("only %d records in the corpus", n)
	}
	t.Logf("%d records", n)
}

func checkEncoded(t *testing.T, r Record, want []byte) {
	t.Helper()
	b, err := r.Builder()
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Append([]byte("front"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, append([]byte("front"), want...)) {
		t.Errorf("%q: encoded again:\n%swant\n%s", r.Format().Name(), hex.Dump(got[5:]), hex.Dump(want))
	}
	if n, err := b.Len(); n != len(want) || err != nil {
		t.Errorf("Len = %d, %v, want %d", n, err, len(want))
	}
	for _, small := range []int{0, 16, 1 << 30} {
		bufs, err := b.Buffers(small)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.Join(bufs, nil), want) {
			t.Errorf("%q: Buffers(%d) gives other bytes", r.Format().Name(), small)
		}
	}
}

// The IDs of docs/wire/ffs.md §3 and its corrections all occur.
func TestKnownIDs(t *testing.T) {
	want := map[string]string{
		"02000023086cf383af9fc397": "DPQuery",
		"02000027d02ddad87f49360d": "DPQueryResponse",
		"0200009a40c4fcb4249a0787": "ReaderRegister",
		"020000a271119b6f29cc3dbc": "ReaderRegister",
		"020001b50c2558a16c326550": "WriterResponse",
		"020001c8d29bf3b2b81b92b8": "WriterResponse",
		"020001f9e9cbcfb0fa973318": "WriterResponse",
		"0200002ab48afd5780b2b510": "PeerSetup",
		"02000019d952f615b60dcc2a": "ReaderActivate",
		"0200001afc2958ba4cbc742f": "ReaderRequestStep",
		"020000bde3fc3837570f06ab": "timestepMetadata",
		"020000bd9b75bb4fda015d21": "timestepMetadata",
		"020000ead45ccac57f5015e8": "timestepMetadata",
		"020000219285bc284493773b": "ReleaseTimestep",
		"020000210ee2118818d8303a": "ReleaseTimestep",
		"0200002389aacf848deb6fdd": "LockReaderDefinitions",
		"020000220f091b77017a918c": "CommPatternLocked",
		"02000021af31a46827532d10": "WriterClose",
		"020000215e744c4d27560f16": "WriterClose",
		"0200001858bdd7b4b95d2179": "ReaderClose",
		"0200004dad3a9da6db8ed1c2": "EvpathReadRequest",
		"0200003de1904eb953f0b3a6": "EvpathReadReply",
		"0200003c65fc5841dfb012e0": "EvpathPreload",
		"0200008d72b6d67f54032261": "GenericAttributes",
		"0200002eb807f4459b36b2af": "MetaData",
	}
	for _, s := range load(t) {
		for id, f := range s.formats(t) {
			if name, ok := want[id.String()]; ok && name == f.Name() {
				delete(want, id.String())
			}
		}
	}
	for id, name := range want {
		t.Errorf("%s %s does not occur", id, name)
	}
}

// Every truncated prefix of every body and record is an error.
func TestRealPrefixes(t *testing.T) {
	bodies, records := map[ID]bool{}, map[ID]int{}
	for _, s := range load(t) {
		formats := s.formats(t)
		for _, b := range s.bodies {
			if bodies[b.id] {
				continue
			}
			bodies[b.id] = true
			whole := formats[b.id].Body()
			for n := range whole {
				if _, _, err := Parse(whole[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("%s: %v: prefix of %d bytes: %v", s.name, b.id, n, err)
				}
			}
		}
		for _, rec := range s.records {
			id, _ := RecordID(rec.bytes)
			if records[id]++; records[id] > 3 {
				continue
			}
			_, size, _ := formats[id].Record(rec.bytes)
			for n := range size {
				if _, _, err := formats[id].Record(rec.bytes[:n]); !errors.Is(err, ErrTruncated) {
					t.Fatalf("%s at offset %d: prefix of %d bytes: %v", s.name, rec.at, n, err)
				}
			}
		}
	}
}

// A record whose own length is shortened is cut in the middle of what it points
// at; that must be noticed too.
func TestRealShortened(t *testing.T) {
	seen := map[ID]int{}
	for _, s := range load(t) {
		formats := s.formats(t)
		for _, rec := range s.records {
			id, _ := RecordID(rec.bytes)
			f := formats[id]
			if seen[id]++; !f.Variant() || seen[id] > 3 {
				continue
			}
			_, size, _ := f.Record(rec.bytes)
			for n := longHeader; n < size; n++ {
				cut := bytes.Clone(rec.bytes[:n])
				putLength(cut)
				if _, _, err := f.Record(cut); !errors.Is(err, ErrRecord) {
					t.Fatalf("%s at offset %d: cut to %d of %d bytes: %v", s.name, rec.at, n, size, err)
				}
			}
		}
	}
}
