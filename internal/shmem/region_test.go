package shmem

import (
	"errors"
	"math"
	"sync"
	"testing"
)

func TestRegionBounds(t *testing.T) {
	r := private(t, 64)
	huge := uint64(math.MaxUint64)
	for _, c := range []struct {
		off, n uint64
		ok     bool
	}{
		{0, 64, true}, {64, 0, true}, {63, 1, true}, {0, 0, true},
		{0, 65, false}, {64, 1, false}, {65, 0, false}, {1, huge, false}, {huge, 1, false}, {huge, huge, false}, {huge - 7, 8, false},
	} {
		b, err := r.Bytes(c.off, c.n)
		if (err == nil) != c.ok || c.ok && (uint64(len(b)) != c.n || uint64(cap(b)) != c.n) || !c.ok && !errors.Is(err, ErrBounds) {
			t.Errorf("%d bytes from %d: %d, %v", c.n, c.off, len(b), err)
		}
	}
	for off := range uint64(80) {
		_, err64 := r.Word64(off)
		if ok := off%8 == 0 && off <= 56; (err64 == nil) != ok {
			t.Errorf("word of 64 bits at %d: %v", off, err64)
		}
		_, err32 := r.Word32(off)
		if ok := off%4 == 0 && off <= 60; (err32 == nil) != ok {
			t.Errorf("word of 32 bits at %d: %v", off, err32)
		}
		_, errSub := r.Sub(off, 8)
		if ok := off%8 == 0 && off <= 56; (errSub == nil) != ok {
			t.Errorf("part at %d: %v", off, errSub)
		}
	}
	if _, err := r.Word64(huge - 3); !errors.Is(err, ErrBounds) {
		t.Error(err)
	}
	b := Bytes(make([]uint64, 2))
	if _, err := NewRegion(b[1:]); !errors.Is(err, ErrBounds) {
		t.Error(err)
	}
	if (Region{}).Len() != 0 || (Region{}).Writable() {
		t.Error("the zero value")
	}
}

func TestRegionShared(t *testing.T) {
	rw, ro := shared(t, 4096)
	if !rw.Writable() || ro.Writable() || ro.Len() != 4096 {
		t.Error("writable")
	}
	if err := rw.CopyIn(100, []byte("weft")); err != nil {
		t.Error(err)
	}
	got := make([]byte, 4)
	if err := ro.CopyOut(got, 100); string(got) != "weft" || err != nil {
		t.Error(string(got), err)
	}
	if err := ro.CopyIn(0, got); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	if err := rw.CopyIn(4093, got); !errors.Is(err, ErrBounds) {
		t.Error(err)
	}
	if err := ro.CopyOut(got, 4093); !errors.Is(err, ErrBounds) {
		t.Error(err)
	}
	part, err := ro.Sub(96, 16)
	if err != nil || part.Writable() {
		t.Fatal(err)
	}
	if err := part.CopyOut(got, 4); string(got) != "weft" || err != nil {
		t.Error(string(got), err)
	}
	// Words are the same through both mappings, and atomic.
	w64, err := rw.Word64(512)
	if err != nil {
		t.Fatal(err)
	}
	w32, err := rw.Word32(516)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				w64.Add(1)
				w32.Add(1)
			}
		})
	}
	wg.Wait()
	view, err := ro.Word64(512)
	if err != nil {
		t.Fatal(err)
	}
	// The upper half of the one is the other: added to by both, on a machine that is little-endian.
	if view.Load() != 4000<<32+4000 {
		t.Errorf("%#x", view.Load())
	}
}
