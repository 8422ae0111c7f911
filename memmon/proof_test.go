package memmon

import (
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
)

func testArbiter(t *testing.T) *Arbiter {
	t.Helper()
	a, err := NewArbiter()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func TestArena(t *testing.T) {
	a := testArbiter(t)
	var told []Range
	detach := a.Attach(func(r Range) { told = append(told, r) }, nil)
	defer detach()
	m, err := a.NewArena(pageSize + 1)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Bytes()
	if len(b) != 2*pageSize {
		t.Errorf("%d bytes", len(b))
	}
	p, err := a.Prove(m)
	if err != nil || !p.Valid() {
		t.Fatal(err)
	}
	b[0] = 1
	if err := m.Discard(0, pageSize); err != nil || b[0] != 0 || p.Valid() {
		t.Errorf("after a discard: %v, %d, valid %v", err, b[0], p.Valid())
	}
	again, err := a.Prove(m)
	if err != nil || !again.Valid() {
		t.Fatal(err)
	}
	for _, bad := range [][2]int{{-1, 1}, {1, pageSize}, {0, 1}, {0, 3 * pageSize}, {3 * pageSize, 0}} {
		if m.Discard(bad[0], bad[1]) == nil {
			t.Errorf("discarded %v", bad)
		}
	}
	where := RangeOf(b)
	if err := m.Close(); err != nil || again.Valid() || m.Bytes() != nil {
		t.Errorf("after Close: %v, valid %v", err, again.Valid())
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if p, err := a.Prove(Mapped(b, m)); err != nil || p.Valid() {
		t.Errorf("what lies where it lay is valid: %v", err)
	}
	if len(told) != 2 || told[0] != where || told[1] != where {
		t.Errorf("told of %v, not of %v", told, where)
	}
	if _, err := a.NewArena(0); err == nil {
		t.Error("an arena of nothing")
	}
}

// TestArenaProvenInTheMiddle makes a proof while an arena is about to drop its pages: it is of the old ones, and dead afterwards. One that is about to
// unmap them has none any more.
func TestArenaProvenInTheMiddle(t *testing.T) {
	a := testArbiter(t)
	m, err := a.NewArena(pageSize)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Bytes()
	var middle []Proof
	defer a.Attach(func(Range) {
		if p, err := a.Prove(m); m.Bytes() != nil && err != nil || m.Bytes() == nil && !errors.Is(err, ErrUnanswered) {
			t.Errorf("%v", err)
		} else if err == nil {
			middle = append(middle, p)
		}
		p, err := a.Prove(Mapped(b, m))
		if err != nil {
			t.Error(err)
		}
		middle = append(middle, p)
	}, nil)()
	if err := m.Discard(0, pageSize); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if len(middle) != 3 || slices.ContainsFunc(middle, Proof.Valid) {
		t.Errorf("%d proofs of pages that have gone, or one of them is valid", len(middle))
	}
}

// global is memory of the program, not of the heap.
var global [100]byte

func TestProveRefusesWhatIsNotHeap(t *testing.T) {
	a := testArbiter(t)
	m, err := sys.MapAnonymous(pageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for what, b := range map[string][]byte{"mapped": m.Bytes(), "inside a mapping": m.Bytes()[100:200], "global": global[:]} {
		if _, err := a.Prove(HeapBytes(b)); !errors.Is(err, ErrNotHeap) {
			t.Errorf("%s memory: %v", what, err)
		}
	}
	for what, k := range map[string]Kind{"none": nil, "empty": HeapBytes(nil), "nobody's": Mapped(m.Bytes(), nil)} {
		if _, err := a.Prove(k); !errors.Is(err, ErrUnanswered) {
			t.Errorf("%s memory: %v", what, err)
		}
	}
}

// TestProveHeap has objects die and their memory used again, over and over: the proof of the dead one is never valid then. Pieces of an object live
// with it.
func TestProveHeap(t *testing.T) {
	a := testArbiter(t)
	reused := 0
	for range testutil.Count(t, 60, 2000) {
		b := make([]byte, 256<<10)
		whole, err := a.Prove(HeapBytes(b))
		if err != nil {
			t.Fatal(err)
		}
		piece, err := a.Prove(HeapBytes(b[1000:2000]))
		if err != nil {
			t.Fatal(err)
		}
		held, ok := piece.Hold()
		if !whole.Valid() || !ok {
			t.Fatal("a living object is not valid")
		}
		at := RangeOf(b).Addr
		b = nil
		runtime.GC()
		if !whole.Valid() { // the piece is held
			t.Fatal("an object of which a piece is held is dead")
		}
		runtime.KeepAlive(held)
		held = nil
		debug.FreeOSMemory()
		for range 20 {
			again := make([]byte, 256<<10)
			if RangeOf(again).Addr == at {
				reused++
				if whole.Valid() || piece.Valid() {
					t.Fatal("the memory is another object's, and the proof is valid")
				}
				break
			}
		}
		whole.Close()
		piece.Close()
	}
	if reused == 0 {
		t.Error("no address was used again: the test has shown nothing")
	}
}

// TestHeapTellsWhoDied waits for what the runtime says of an object that nobody holds.
func TestHeapTellsWhoDied(t *testing.T) {
	a := testArbiter(t)
	told := make(chan Range, 10)
	detach := a.Attach(func(r Range) { told <- r }, nil)
	defer detach()
	b := make([]byte, 100, 1<<20)
	where := RangeOf(b[:cap(b)])
	p, err := a.Prove(HeapBytes(b))
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(b)
	b = nil
	for p.Valid() {
		runtime.GC()
	}
	if r := <-told; r != where {
		t.Errorf("told of %v, not of %v", r, where)
	}
	p.Close()
}
