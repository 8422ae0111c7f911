package pinnic

import (
	"testing"

	"github.com/weft-fabric/weft/memmon"
)

// arenaEvents are what happens to memory of an arena.
var arenaEvents = []struct {
	name string
	do   func(*memory, *memmon.Arena) error
	gone bool // the arena has no memory any more
}{
	{"Discard of all", func(_ *memory, a *memmon.Arena) error { return a.Discard(0, memoryBytes) }, false},
	{"Close", func(m *memory, a *memmon.Arena) error {
		m.bytes = nil
		return a.Close()
	}, true},
	{"Close + mmap same address", func(m *memory, a *memmon.Arena) error {
		if err := a.Close(); err != nil {
			return err
		}
		return m.mapThere()
	}, true},
}

// TestSoakStaleArena plays what an arena does to its memory: the old registration carries old bytes, and is not valid.
func TestSoakStaleArena(t *testing.T) {
	arbiter := newArbiter(t)
	eachWay(t, func(t *testing.T, w *wired) {
		for _, e := range arenaEvents {
			t.Run(e.name, func(t *testing.T) {
				w := w.in(t)
				for range w.rounds(10, 1000) {
					a, err := arbiter.NewArena(memoryBytes)
					if err != nil {
						t.Fatal(err)
					}
					arenaRound(t, w, arbiter, a, e.do, e.gone)
					a.Close()
				}
			})
		}
	})
}

func arenaRound(t *testing.T, w *wired, arbiter *memmon.Arbiter, a *memmon.Arena, do func(*memory, *memmon.Arena) error, gone bool) {
	t.Helper()
	m := &memory{t: t, bytes: a.Bytes(), where: memmon.RangeOf(a.Bytes())}
	defer m.close()
	fill(m.bytes, oldBytes)
	x := newEntry(t, w, arbiter, a)
	defer func() { x.drop() }()
	if carries := w.carries(x.handle, memoryBytes); !x.valid() || carries != oldBytes {
		t.Fatalf("valid: %v, carries %s", x.valid(), carries)
	}
	switch err := do(m, a); err {
	case nil:
	case errTaken:
		return
	default:
		t.Fatal(err)
	}
	fill(m.bytes, newBytes)
	if carries := w.carries(x.handle, memoryBytes); x.valid() || carries != oldBytes {
		t.Fatalf("valid: %v, carries %s", x.valid(), carries)
	}
	if gone {
		return
	}
	x.drop()
	x = newEntry(t, w, arbiter, a)
	if carries := w.carries(x.handle, memoryBytes); !x.valid() || carries != newBytes {
		t.Errorf("registered again: valid %v, carries %s", x.valid(), carries)
	}
}
