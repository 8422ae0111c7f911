package memmon

import (
	"errors"
	"runtime"
	"testing"
)

// TestProveLastBytes proves the last byte of objects of all sorts of sizes, tiny ones among them, and what comes after it, which is nothing.
func TestProveLastBytes(t *testing.T) {
	a := testArbiter(t)
	for _, n := range []int{1, 2, 7, 8, 15, 16, 17, 32, 33, 512, 1024, 8192, 32768, 32769, 1 << 20} {
		b := make([]byte, n)
		p, err := a.Prove(HeapBytes(b[n-1:]))
		if err != nil || !p.Valid() {
			t.Fatalf("the last one of %d: %v", n, err)
		}
		p.Close()
		for _, none := range [][]byte{b[n:], b[:0], b[:0:0]} {
			if _, err := a.Prove(HeapBytes(none)); !errors.Is(err, ErrUnanswered) {
				t.Errorf("none of %d: %v", n, err)
			}
		}
		runtime.KeepAlive(b)
	}
}

// TestProveField has a proof of a field live and die with the object around it.
func TestProveField(t *testing.T) {
	a := testArbiter(t)
	o := new(struct {
		before [100]*int
		bytes  [1 << 20]byte
		after  [100]*int
	})
	p, err := a.Prove(HeapBytes(o.bytes[1<<20-1:]))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	after := &o.after
	runtime.KeepAlive(o)
	o = nil
	runtime.GC()
	if !p.Valid() {
		t.Error("dead although another field is held")
	}
	runtime.KeepAlive(after)
	after = nil
	runtime.GC()
	if p.Valid() {
		t.Error("valid although nothing of it is held")
	}
}

// phoenix comes back when it dies.
type phoenix struct {
	bytes [64 << 10]byte
	back  chan *phoenix
}

// TestProveResurrected has a finalizer bring an object back: what was proven before is dead, since nobody could know, and it can be proven anew.
func TestProveResurrected(t *testing.T) {
	a := testArbiter(t)
	o := &phoenix{back: make(chan *phoenix, 1)}
	back := o.back
	runtime.SetFinalizer(o, func(o *phoenix) { o.back <- o })
	before, err := a.Prove(HeapBytes(o.bytes[:]))
	if err != nil || !before.Valid() {
		t.Fatal(err)
	}
	defer before.Close()
	runtime.KeepAlive(o)
	for o = nil; o == nil; {
		runtime.GC()
		select {
		case o = <-back:
		default:
		}
	}
	after, err := a.Prove(HeapBytes(o.bytes[:]))
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	runtime.GC()
	if before.Valid() || !after.Valid() {
		t.Errorf("of before: valid %v; of after: %v", before.Valid(), after.Valid())
	}
	runtime.KeepAlive(o)
	o = nil
	runtime.GC()
	if after.Valid() {
		t.Error("dead, and valid")
	}
}
