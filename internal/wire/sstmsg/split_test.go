package sstmsg

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// splitAll reads a record in two parts and compares with reading it whole.
func splitAll(t *testing.T, c capture) (split bool) {
	t.Helper()
	m, offset, ok := Head(c.format, c.record, len(c.record))
	if !ok {
		return false
	}
	whole, err := Decode(c.format, c.record)
	if err != nil {
		t.Fatalf("%s: %s: split, but not whole: %v", c.file, c.format.Name(), err)
	}
	head, data := c.record[:offset], c.record[offset:]
	got, err := DecodeSplit(c.format, head, data)
	if err != nil {
		t.Fatalf("%s: %s: %v", c.file, c.format.Name(), err)
	}
	if diff := cmp.Diff(whole, got); diff != "" {
		t.Errorf("%s: %s (-whole +split):\n%s", c.file, c.format.Name(), diff)
	}
	switch whole := whole.(type) {
	case *ReadReply:
		whole.Data = nil
	case *Preload:
		whole.Data = nil
	default:
		t.Errorf("%s: %s was split", c.file, c.format.Name())
	}
	if diff := cmp.Diff(whole, m); diff != "" {
		t.Errorf("%s: %s (-whole +head):\n%s", c.file, c.format.Name(), diff)
	}
	return true
}

// TestSplitCaptures: the replies and preloaded blocks of real peers, of every
// release, end in their data.
func TestSplitCaptures(t *testing.T) {
	split, not := map[string]int{}, map[string]int{}
	for _, c := range captures(t) {
		if splitAll(t, c) {
			split[c.format.Name()]++
		} else {
			not[c.format.Name()]++
		}
	}
	for _, name := range []string{"EvpathReadReply", "EvpathPreload"} {
		if split[name] == 0 || not[name] != 0 {
			t.Errorf("%s: %d split, %d not", name, split[name], not[name])
		}
	}
}

func TestSplitOwn(t *testing.T) {
	data := bytes.Repeat([]byte("weft"), 5000)
	for _, m := range []Message{
		&ReadReply{Step: 3, ReaderID: 4, Condition: 5, Data: Blob{data[:7], data[7:]}},
		&Preload{Step: 3, WriterRank: 4, ReaderID: 5, Data: ByteBlob(data)},
	} {
		f, rec, err := Append(nil, m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !splitAll(t, capture{"own", f, rec}) {
			t.Errorf("%s was not split", Name(m))
		}
		_, offset, _ := Head(f, rec, len(rec))
		for n := range offset + 10 {
			_, at, ok := Head(f, rec[:n], len(rec))
			if ok != (n >= recordHeader+40) || ok && at != offset {
				t.Fatalf("%s, %d bytes: %v, offset %d of %d", Name(m), n, ok, at, offset)
			}
		}
		if _, err := DecodeSplit(f, rec[:offset+1], rec[offset+1:]); err == nil {
			t.Error("cut at another place")
		}
	}
}

func TestSplitRefused(t *testing.T) {
	for name, m := range stepMessages() {
		f, rec, err := Append(nil, m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, _, ok := Head(f, rec, len(rec))
		if ok != (name == "preload" || name == "reply") {
			t.Errorf("%s: %v", name, ok)
		}
	}
	f, rec, err := Append(nil, &ReadReply{Step: 1}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := Head(f, rec, len(rec)); ok {
		t.Error("a reply without data")
	}
}

// FuzzSplit: what can be read in two parts can be read whole, with one result.
func FuzzSplit(f *testing.F) {
	format, rec, err := Append(nil, &ReadReply{Step: 3, Condition: 5, Data: ByteBlob(make([]byte, 100))}, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rec)
	f.Fuzz(func(t *testing.T, rec []byte) {
		id := format.ID()
		if len(rec) >= len(id) {
			copy(rec, id[:])
		}
		splitAll(t, capture{"fuzz", format, rec})
	})
}
