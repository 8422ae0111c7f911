package pinnic

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// TestSoakStaleRemapRace has one thread unmap memory while another maps the address again as soon as it can, and asks: also while the
// first one is still inside of its call, the old registration carries old bytes and is not valid.
func TestSoakStaleRemapRace(t *testing.T) {
	for who, answer := range answers {
		t.Run(who, func(t *testing.T) {
			w := newWired(t, Config{})
			a := newArbiter(t)
			early, n := 0, testutil.Count(t, 200, 20000)
			for range n {
				if remapRound(t, w, a, answer) {
					early++
				}
			}
			t.Logf("%d of %d times the address was mapped again before munmap had returned", early, n)
		})
	}
}

// maxLate is how often the address is asked for when it has to be free.
const maxLate = 10

// remapRound says whether the other thread was faster than the return from munmap.
func remapRound(t *testing.T, w *wired, a *memmon.Arbiter, answer func(*memmon.Arbiter, memmon.Range) (func([]byte) memmon.Kind, func())) (early bool) {
	t.Helper()
	m := newMemory(t, false)
	defer m.close()
	fill(m.bytes, oldBytes)
	kind, goes := answer(a, m.where)
	x := newEntry(t, w, a, kind(m.bytes))
	defer x.drop()

	var returned atomic.Bool
	unmapped, old := make(chan error, 1), m.private
	go func() {
		goes()
		err := old.Close()
		returned.Store(true)
		unmapped <- err
	}()
	err := errTaken
	for late := 0; err == errTaken && late < maxLate; {
		if returned.Load() {
			late++
		}
		err = m.mapThere()
		early = !returned.Load()
		runtime.Gosched()
	}
	if err == nil && x.valid() {
		t.Error("valid, although the memory is another")
	}
	if unmapErr := <-unmapped; unmapErr != nil {
		t.Fatal(unmapErr)
	}
	switch err {
	case nil:
	case errTaken: // by memory of another thread
		return false
	default:
		t.Fatal(err)
	}
	fill(m.bytes, newBytes)
	if carries := w.carries(x.handle, memoryBytes); carries != oldBytes {
		t.Errorf("the old registration carries %s", carries)
	}
	return early
}
