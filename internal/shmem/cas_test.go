package shmem

import "testing"

func TestAtomicWords(t *testing.T) {
	b := Bytes(make([]uint64, 2))
	for i := range 16 {
		p, ok := AtomicUint32(b[i:])
		if want := i%4 == 0; ok != want {
			t.Errorf("32 bits at %d: %v", i, ok)
		} else if ok {
			p.Add(1)
		}
		q, ok := AtomicUint64(b[i:])
		if want := i%8 == 0; ok != want {
			t.Errorf("64 bits at %d: %v", i, ok)
		} else if ok {
			q.Add(0)
		}
	}
	for _, i := range []int{0, 4, 8, 12} {
		if p, _ := AtomicUint32(b[i:]); p.Load() != 1 {
			t.Errorf("% x", b)
		}
	}
	if _, ok := AtomicUint32(b[:3]); ok {
		t.Error("three bytes")
	}
	if _, ok := AtomicUint64(nil); ok {
		t.Error("no bytes")
	}
}
