package memmon

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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

// TestNothingIsNotProven: what has no bytes, or none any more, has nobody who could say that it changed.
func TestNothingIsNotProven(t *testing.T) {
	a := testArbiter(t)
	closed, err := a.NewArena(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for what, k := range map[string]Kind{
		"nil": nil, "heap": HeapBytes(nil), "owned": Mapped(nil, closed), "nobody's": Mapped([]byte{}, nil), "a closed arena": closed,
	} {
		if p, err := a.Prove(k); !errors.Is(err, ErrUnanswered) {
			t.Errorf("%s: %v, %v", what, p, err)
		}
	}
	if err := closed.Discard(0, 0); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("discard: %v", err)
	}
}

// TestWhyNobodyAnswers: who hears that nobody answers for his memory hears why.
func TestWhyNobodyAnswers(t *testing.T) {
	a, f := testArbiter(t), newFake()
	b := pages(t, 1).Bytes()
	why := func(want string) {
		t.Helper()
		_, err := a.Prove(Mapped(b, nil))
		if !errors.Is(err, ErrUnanswered) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, without %q", err, want)
		}
	}
	why("without an owner, and no monitor")
	if err := a.Import(f); err != nil {
		t.Fatal(err)
	}
	why("the monitor fake is idle")
	defer a.Attach(ignore, nil)()
	own := b
	b = shared(t)
	why("fake does not watch shared memory")
	b = own
	f.proveErr = errFake
	defer a.Attach(nil, nil)()
	why("the monitor fake has failed")
	why(errFake.Error())
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

// halting is a watch that cannot tell each other time.
type halting struct{ asked atomic.Uint64 }

func (h *halting) ask() answer {
	if h.asked.Add(1)%2 == 1 {
		return unsure
	}
	return same
}

func (h *halting) Valid() bool { return h.ask() == same }

func (*halting) Close() {}

// TestDoubtIsNoChange has several ask the same watch at once, of which one is told nothing and the others that all is well: to nobody it is a change.
func TestDoubtIsNoChange(t *testing.T) {
	a := testArbiter(t)
	for range 1000 {
		p := &observed{a: a, s: &serving{}, watch: new(halting), r: Range{1 << 20, 1 << 12}}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if !p.Valid() && p.Changed() {
					t.Error("nothing has changed")
				}
			})
		}
		all.Wait()
	}
}
