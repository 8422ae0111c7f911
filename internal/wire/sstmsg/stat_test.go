package sstmsg

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// The messages that ask a writer for its statistics are Weft's own, so their
// layout is pinned here: two releases of Weft must agree on it.
func TestStatLayout(t *testing.T) {
	type field struct {
		Name, Type string
		Size, At   int
	}
	for _, c := range []struct {
		m    Message
		name string
		want []field
	}{
		{&StatQuery{}, "weft_stat_query", []field{{"writer_ID", "integer", 8, 0}, {"condition", "integer", 4, 8}, {"what", "integer", 4, 12}}},
		{&StatReply{}, "weft_stat_reply", []field{{"condition", "integer", 4, 0}, {"length", "integer", 8, 8}, {"text", "char[length]", 1, 16}}},
	} {
		for _, o := range []Options{{}, {Release: ReleaseMain, Weft: true}} {
			f, _, err := Append(nil, c.m, o)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name() != c.name || Name(c.m) != c.name {
				t.Errorf("called %s and %s, want %s", f.Name(), Name(c.m), c.name)
			}
			var got []field
			for _, w := range f.Structs()[0].Fields {
				got = append(got, field{w.Name, w.Type, w.Size, w.Offset})
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, d)
			}
		}
	}
}

func statRecords(t testing.TB) map[*ffs.Format][]byte {
	t.Helper()
	records := map[*ffs.Format][]byte{}
	for _, m := range []Message{
		&StatQuery{WriterID: 1, Condition: 2, What: StatAll},
		&StatReply{Condition: 2, Text: ByteBlob([]byte(`{"next_step":3}`))},
	} {
		f, b, err := Append(nil, m, Options{Weft: true})
		if err != nil {
			t.Fatal(err)
		}
		records[f] = b
	}
	return records
}

func TestStatTruncated(t *testing.T) {
	for f, b := range statRecords(t) {
		for n := range b {
			if m, err := Decode(f, b[:n]); err == nil {
				t.Errorf("%s cut to %d of %d bytes is accepted: %+v", f.Name(), n, len(b), m)
			}
		}
	}
}

// TestStatLength claims more text than there is, and less than nothing.
func TestStatLength(t *testing.T) {
	for f, b := range statRecords(t) {
		if f.Name() != "weft_stat_reply" {
			continue
		}
		for _, n := range []int64{1 << 40, -1, 1<<63 - 1, 200} {
			binary.LittleEndian.PutUint64(b[recordHeader+8:], uint64(n))
			if m, err := Decode(f, b); err == nil {
				t.Errorf("length %d is accepted: %+v", n, m)
			}
		}
	}
}
