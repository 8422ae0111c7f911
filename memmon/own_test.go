package memmon

import (
	"errors"
	"runtime"
	"testing"
)

// TestProveKindsOfPrograms has programs wrap kinds, which embedding allows: what is wrapped decides.
func TestProveKindsOfPrograms(t *testing.T) {
	a := testArbiter(t)
	if _, err := a.Prove(named{Mapped(pages(t, 1).Bytes(), nil)}); !errors.Is(err, ErrUnanswered) {
		t.Errorf("memory of which nobody knows: %v", err)
	}
	if _, err := a.Prove(named{HeapBytes(pages(t, 1).Bytes())}); !errors.Is(err, ErrNotHeap) {
		t.Errorf("a mapping as heap: %v", err)
	}
	own := owner(1)
	p, err := a.Prove(named{Mapped(pages(t, 1).Bytes(), &own)})
	if err != nil || !p.Valid() {
		t.Fatal(err)
	}
	if own = 2; p.Valid() {
		t.Error("valid although its owner has changed")
	}
	b := make([]byte, 1<<20)
	if p, err = a.Prove(named{HeapBytes(b)}); err != nil || !p.Valid() {
		t.Fatal(err)
	}
	defer p.Close()
	runtime.KeepAlive(b)
	b = nil
	runtime.GC()
	if p.Valid() {
		t.Error("valid although the object is dead")
	}
}

// TestHeapIsNotTheMonitors has memory of the heap passed off as mapped, which no monitor can answer for.
func TestHeapIsNotTheMonitors(t *testing.T) {
	a, f := testArbiter(t), newFake()
	if err := a.Import(f); err != nil {
		t.Fatal(err)
	}
	defer a.Attach(ignore, nil)()
	b := make([]byte, 1<<20)
	for i := range b { // all of it is there
		b[i] = 1
	}
	if _, err := a.Prove(Mapped(b, nil)); !errors.Is(err, ErrUnanswered) || f.open != 0 {
		t.Errorf("%v; %d watches are open", err, f.open)
	}
}
