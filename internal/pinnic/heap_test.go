package pinnic

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// objectBytes is an object that has pages of its own.
const objectBytes = 256 << 10

// maxReuse is how many objects are made for one that lies where the dead one lay.
const maxReuse = 50

// object is what is known of an object that nobody holds.
type object struct {
	*entry
	where memmon.Range
}

// makeObject makes an object, registers it, and lets go of it.
//
//go:noinline
func makeObject(t *testing.T, w *wired, a *memmon.Arbiter) object {
	t.Helper()
	b := make([]byte, objectBytes)
	fill(b, oldBytes)
	o := object{newEntry(t, w, a, memmon.HeapBytes(b)), memmon.RangeOf(b)}
	if !o.valid() {
		t.Fatal("a living object is not valid")
	}
	return o
}

// another is an object that lies where a dead one lay; nil if there is none.
func another(where memmon.Range) []byte {
	for range maxReuse {
		if b := make([]byte, objectBytes); memmon.RangeOf(b) == where {
			return b
		}
	}
	return nil
}

// collecting runs a test for each number of processors, beside somebody who collects garbage all the time.
func collecting(t *testing.T, test func(*testing.T, *wired)) {
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("GOMAXPROCS=%d", n), func(t *testing.T) {
			w := newWired(t, Config{})
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			stop := make(chan struct{})
			var all sync.WaitGroup
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						runtime.GC()
					}
				}
			})
			defer all.Wait()
			defer close(stop)
			test(t, w)
		})
	}
}

// TestSoakStaleHeap has objects die and their memory used again: whether the runtime has given the pages back meanwhile or not, the
// proof is not valid, and the new object registered anew carries what it holds.
func TestSoakStaleHeap(t *testing.T) {
	testutil.Require(t, has(sys.IOUring))
	for _, row := range []struct {
		name  string
		after func()
		wire  string
	}{
		{"Go object: GC + scavenge + same address reused", func() { runtime.GC(); debug.FreeOSMemory() }, oldBytes},
		{"Go object: GC only + same address reused", runtime.GC, newBytes},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Run("alone", func(t *testing.T) {
				carried := heapRounds(t, newWired(t, Config{}), row.after)
				// The runtime may also give pages back by itself, or keep some that it was told to give back.
				if carried[row.wire] == 0 {
					t.Errorf("never %s", row.wire)
				}
			})
			collecting(t, func(t *testing.T, w *wired) { heapRounds(t, w, row.after) })
		})
	}
}

// heapRounds counts what the wire carried of the dead objects whose memory was used again.
func heapRounds(t *testing.T, w *wired, after func()) map[string]int {
	t.Helper()
	a := newArbiter(t)
	carried := make(map[string]int)
	for range w.rounds(15, 1000) {
		if carries, reused := heapRound(t, w, a, after); reused {
			carried[carries]++
		}
	}
	t.Logf("memory used again: wire carries %v", carried)
	if len(carried) == 0 {
		t.Error("no address was used again: nothing was shown")
	}
	return carried
}

func heapRound(t *testing.T, w *wired, a *memmon.Arbiter, after func()) (carries string, reused bool) {
	t.Helper()
	o := makeObject(t, w, a)
	defer o.drop()
	after()
	b := another(o.where)
	if b == nil {
		return "", false
	}
	if o.valid() {
		t.Fatal("the memory is another object's, and the proof is valid")
	}
	fill(b, newBytes)
	carries = w.carries(o.handle, memoryBytes)
	again := newEntry(t, w, a, memmon.HeapBytes(b))
	defer again.drop()
	if carries := w.carries(again.handle, memoryBytes); carries != newBytes || !again.valid() {
		t.Errorf("registered again: carries %s, valid %v", carries, again.valid())
	}
	runtime.KeepAlive(b)
	return carries, true
}

// TestSoakStaleHeld has an object live on while everything around it dies and is given back: its registration stays right.
func TestSoakStaleHeld(t *testing.T) {
	testutil.Require(t, has(sys.IOUring))
	collecting(t, func(t *testing.T, w *wired) {
		a := newArbiter(t)
		for range w.rounds(5, 300) {
			around := make([][]byte, 0, 8)
			var b []byte
			for i := range cap(around) {
				around = append(around, make([]byte, memoryBytes))
				if i == cap(around)/2 {
					b = make([]byte, memoryBytes)
				}
			}
			fill(b, oldBytes)
			e := newEntry(t, w, a, memmon.HeapBytes(b))
			runtime.KeepAlive(around)
			around = nil
			debug.FreeOSMemory()
			fill(b, newBytes)
			if carries := w.carries(e.handle, memoryBytes); carries != newBytes || !e.valid() {
				t.Fatalf("carries %s, valid %v", carries, e.valid())
			}
			w.receive(e.handle, memoryBytes)
			if shows := contents(b); shows != wireBytes {
				t.Fatalf("received, and shows %s", shows)
			}
			e.drop()
		}
	})
}
