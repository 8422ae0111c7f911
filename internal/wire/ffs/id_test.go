package ffs

import (
	"errors"
	"testing"
)

func TestID(t *testing.T) {
	const text = "0200008d72b6d67f54032261"
	id, err := ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	if id.String() != text {
		t.Errorf("String() = %q, want %q", id, text)
	}
	for _, bad := range []string{"", "02", text + "0", text[:23], "0200008d72b6d67f5403226x"} {
		if id, err := ParseID(bad); !errors.Is(err, ErrFormat) || id != (ID{}) {
			t.Errorf("ParseID(%q) = %v, %v", bad, id, err)
		}
	}
}

func TestRecordID(t *testing.T) {
	rec := unhex(t, "0200008d72b6d67f54032261 ff")
	if id, ok := RecordID(rec); !ok || id.String() != "0200008d72b6d67f54032261" {
		t.Errorf("RecordID = %v, %v", id, ok)
	}
	for n := range IDLen {
		if id, ok := RecordID(rec[:n]); ok || id != (ID{}) {
			t.Errorf("RecordID of %d bytes = %v, %v", n, id, ok)
		}
	}
}

// The length in an ID is split: bits 2 to 17 in one place, 18 to 25 in another.
func TestIDLength(t *testing.T) {
	for _, n := range []int{0, 4, 100, 1<<18 - 4, 1 << 18, 5<<18 + 12} {
		id := IDOf(make([]byte, n))
		if id[0] != 2 || int(id[1])<<18|int(id[2])<<10|int(id[3])<<2 != n {
			t.Errorf("length %d: ID %v", n, id)
		}
	}
}
