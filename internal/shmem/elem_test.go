package shmem

import (
	"math"
	"slices"
	"testing"
)

type triple [3]uint16

func TestBytes(t *testing.T) {
	s := []uint32{0x04030201, 0x08070605}
	b := Bytes(s)
	if !slices.Equal(b, []byte{1, 2, 3, 4, 5, 6, 7, 8}) || cap(b) != 8 {
		t.Errorf("% x, capacity %d", b, cap(b))
	}
	b[4] = 0xff // the same memory
	if s[1] != 0x080706ff {
		t.Errorf("%08x", s[1])
	}
	if Bytes([]float64(nil)) != nil || Bytes([]float64{}) != nil || len(Bytes([]triple{{}, {}})) != 12 {
		t.Error("lengths")
	}
	if b := Bytes(s[:1:2]); len(b) != 4 || cap(b) != 4 {
		t.Errorf("the bytes reach beyond the slice: %d of %d", len(b), cap(b))
	}
}

func TestAs(t *testing.T) {
	mem := Bytes([]uint64{0, 0, 0, 0}) // aligned to 8
	f, ok := As[float64](mem)
	if !ok || len(f) != 4 || cap(f) != 4 {
		t.Fatalf("%v, %v", f, ok)
	}
	f[1] = math.Inf(1)
	if mem[15] != 0x7f {
		t.Errorf("% x", mem[8:16])
	}
	for off := 1; off < 8; off++ {
		if _, ok := As[uint64](mem[off : off+8]); ok {
			t.Errorf("offset %d is aligned to 8", off)
		}
		if _, ok := As[uint16](mem[off : off+8]); ok != (off%2 == 0) {
			t.Errorf("offset %d: aligned to 2: %v", off, ok)
		}
		if _, ok := As[uint8](mem[off : off+8]); !ok {
			t.Errorf("offset %d: bytes are always aligned", off)
		}
	}
	for n := range 9 {
		if _, ok := As[uint32](mem[:n]); ok != (n%4 == 0) {
			t.Errorf("%d bytes are whole words: %v", n, ok)
		}
		if _, ok := As[triple](mem[:n]); ok != (n%6 == 0) {
			t.Errorf("%d bytes are whole triples: %v", n, ok)
		}
	}
	// No bytes are no elements, of any type and at any address.
	if s, ok := As[uint64](mem[1:1]); !ok || s != nil {
		t.Errorf("%v, %v", s, ok)
	}
	if _, ok := As[struct{}](mem); ok {
		t.Error("elements without a size")
	}
}

// There and back is the same memory.
func TestThereAndBack(t *testing.T) {
	s := []complex64{1, 2i, 3}
	back, ok := As[complex64](Bytes(s))
	if !ok || !slices.Equal(back, s) || &back[0] != &s[0] {
		t.Errorf("%v, %v", back, ok)
	}
}
