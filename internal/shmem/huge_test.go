package shmem

import (
	"bytes"
	"reflect"
	"testing"
)

func TestMakeHuge(t *testing.T) {
	for _, n := range []int{0, 1, minHuge - 1, minHuge, minHuge + 1, minHuge + 64<<10} {
		b := MakeHuge(n)
		if len(b) != n || cap(b) < n || n >= minHuge && cap(b) != n {
			t.Errorf("%d bytes: %d, room for %d", n, len(b), cap(b))
		}
		if n >= minHuge && reflect.ValueOf(b).Pointer()%hugePage != 0 {
			t.Errorf("%d bytes at %p", n, b)
		}
		if len(bytes.Trim(b, "\x00")) > 0 {
			t.Errorf("%d bytes, not zero", n)
		}
	}
}

func TestRenew(t *testing.T) {
	if !CanRenew {
		t.Skip("this system gives no new pages (madvise), or has pages larger than those of the Go heap")
	}
	b := MakeHuge(minHuge + 64<<10)
	for i := range b {
		b[i] = 1
	}
	if err := Renew(b); err != nil || len(bytes.Trim(b, "\x00")) > 0 {
		t.Errorf("old bytes, or %v", err)
	}
	if Renew(b[1:]) == nil {
		t.Error("part of a page renewed")
	}
}
