package shmem

import "testing"

func TestOffset(t *testing.T) {
	b := make([]byte, 100)
	for _, c := range []struct {
		outer, inner []byte
		want         uint64
		ok           bool
	}{
		{b, b, 0, true}, {b, b[10:20:20], 10, true}, {b, b[99:], 99, true}, {b[:50], b[49:50], 49, true},
		{b, b[100:], 0, false}, {b[10:], b[9:20], 0, false}, {b[:50], b[49:51], 0, false}, {b, make([]byte, 10), 0, false}, {nil, nil, 0, false},
		{b[:5], b, 0, false},
	} {
		if got, ok := Offset(c.outer, c.inner); ok != c.ok || ok && got != c.want {
			t.Errorf("%d bytes in %d: %d, %v, want %d, %v", len(c.inner), len(c.outer), got, ok, c.want, c.ok)
		}
	}
}
