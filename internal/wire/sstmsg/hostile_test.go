package sstmsg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// recordHeader is the header of a record whose struct is followed by more
// (docs/wire/ffs.md §5.1): ID, length, padding.
const recordHeader = 24

// TestTruncated cuts every captured record at every byte.
func TestTruncated(t *testing.T) {
	seen := map[ffs.ID]int{}
	for _, c := range captures(t) {
		if seen[c.format.ID()]++; seen[c.format.ID()] > 2 {
			continue // two of a kind say what there is to say
		}
		for n := range c.record {
			if _, err := Decode(c.format, c.record[:n]); err == nil {
				t.Fatalf("%s: %s cut to %d of %d bytes is accepted", c.file, c.format.Name(), n, len(c.record))
			}
		}
	}
}

// TestTruncatedBody cuts records and mends the length in their header, so that
// only offsets and counts are left to notice.
func TestTruncatedBody(t *testing.T) {
	seen := map[ffs.ID]bool{}
	for _, c := range captures(t) {
		if seen[c.format.ID()] || len(c.record) < recordHeader {
			continue
		}
		seen[c.format.ID()] = true
		if binary.LittleEndian.Uint64(c.record[12:]) != uint64(len(c.record)-recordHeader) {
			continue // a record without a variable part has no length
		}
		for n := recordHeader; n < len(c.record); n++ {
			cut := bytes.Clone(c.record[:n])
			binary.LittleEndian.PutUint64(cut[12:], uint64(n-recordHeader))
			if m, err := Decode(c.format, cut); err == nil && n < recordHeader+8 {
				t.Fatalf("%s: %s of %d bytes is accepted: %+v", c.file, c.format.Name(), n, m)
			}
		}
	}
}

func TestUnknownMessage(t *testing.T) {
	f, err := ffs.New(ffs.Struct{Name: "Surprise", RecordLen: 8, Fields: []ffs.Field{{Name: "n", Type: "integer", Size: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	record, err := f.NewRecord().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(f, record); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// TestNumberTooLarge sends 64 bits where we have 32.
func TestNumberTooLarge(t *testing.T) {
	f, err := ffs.New(ffs.Struct{Name: "PeerSetup", RecordLen: 8, Fields: []ffs.Field{{Name: "WriterRank", Type: "integer", Size: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	for n, good := range map[int64]bool{-1: true, 1<<31 - 1: true, 1 << 31: false, -1 << 31: true, -1<<31 - 1: false} {
		b := f.NewRecord()
		b.SetInt(0, n)
		record, err := b.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(f, record)
		if (err == nil) != good {
			t.Errorf("%d: %+v, %v", n, m, err)
		}
	}
}

// aStep encodes a step with two formats and returns where the Next of the first
// list element stands.
func aStep(t *testing.T) (f *ffs.Format, record []byte, first, next int) {
	t.Helper()
	f, record, err := Append(nil, &TimestepMetadata{
		CohortSize: 1, Formats: []FormatBlock{{ID: ByteBlob([]byte("id"))}, {ID: ByteBlob([]byte("di"))}},
		Metadata: []Block{{}}, Attributes: []Block{{}},
	}, Options{Release: ReleaseMain})
	if err != nil {
		t.Fatal(err)
	}
	first = int(binary.LittleEndian.Uint64(record[recordHeader+24:])) // formats, docs/wire/sst.md §7.1
	return f, record, first, recordHeader + first + 32
}

// TestListCycle points a list at itself: it must end, with an error.
func TestListCycle(t *testing.T) {
	f, record, first, next := aStep(t)
	if m, err := Decode(f, record); err != nil || len(m.(*TimestepMetadata).Formats) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	binary.LittleEndian.PutUint64(record[next:], uint64(first))
	if _, err := Decode(f, record); err == nil {
		t.Error("a circle of one is accepted")
	}
}

// TestSharedTargets makes a few bytes describe a great many structs.
func TestSharedTargets(t *testing.T) {
	const n = 1000
	m := &ReaderRegister{CP: make([]CPReader, n), Evpath: make([]EvpathReader, n)}
	f, record, err := Append(nil, m, Options{Release: ReleaseMain})
	if err != nil {
		t.Fatal(err)
	}
	table := recordHeader + int(binary.LittleEndian.Uint64(record[recordHeader+24:]))
	target := binary.LittleEndian.Uint64(record[table:])
	for i := range n {
		binary.LittleEndian.PutUint64(record[table+8*i:], target)
	}
	if got, err := Decode(f, record); err != nil || len(got.(*ReaderRegister).CP) != n {
		t.Errorf("a table that names one target %d times is legal: %v", n, err)
	}
	binary.LittleEndian.PutUint32(record[recordHeader+12:], 1<<30) // ReaderCohortSize
	if _, err := Decode(f, record); err == nil {
		t.Error("a cohort of 2^30 in a small record is accepted")
	}
	binary.LittleEndian.PutUint32(record[recordHeader+12:], 1<<31)
	if _, err := Decode(f, record); err == nil {
		t.Error("a negative cohort is accepted")
	}
}

// TestNullEntries are pointers that real peers follow without a look.
func TestNullEntries(t *testing.T) {
	f, record, err := Append(nil, &ReaderRegister{CP: make([]CPReader, 2), Evpath: make([]EvpathReader, 2)}, Options{Release: ReleaseMain})
	if err != nil {
		t.Fatal(err)
	}
	table := recordHeader + int(binary.LittleEndian.Uint64(record[recordHeader+24:]))
	binary.LittleEndian.PutUint64(record[table+8:], 0)
	if _, err := Decode(f, record); err == nil {
		t.Error("a NULL entry is accepted")
	}
}

// FuzzDecode feeds records, with the formats of real peers and with formats
// that the input brings along.
func FuzzDecode(f *testing.F) {
	seen := map[ffs.ID]int{}
	for _, c := range captures(f) {
		if seen[c.format.ID()]++; seen[c.format.ID()] < 3 {
			f.Add(c.format.Body(), c.record)
		}
	}
	for format, record := range statRecords(f) {
		f.Add(format.Body(), record)
	}
	for _, c := range nativeSamples {
		format, record := nativeRecord(f, c.m)
		f.Add(format.Body(), record)
	}
	f.Fuzz(func(t *testing.T, body, record []byte) {
		format, _, err := ffs.Parse(body)
		if err != nil {
			return
		}
		if id := format.ID(); len(record) >= len(id) {
			record = append(id[:], record[len(id):]...)
		}
		m, err := Decode(format, record)
		if err != nil {
			return
		}
		// What was understood can be said again, and means the same.
		for _, rel := range []Release{Release210, Release212, ReleaseMain} {
			again, out, err := Append(nil, m, Options{Release: rel})
			if err != nil {
				continue // it does not fit that release
			}
			if _, err := Decode(again, out); err != nil {
				t.Errorf("%s of %v cannot be read back: %v", Name(m), rel, err)
			}
		}
	})
}
