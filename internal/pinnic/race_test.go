package pinnic

import (
	"errors"
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
			a := answer.arbiter(t)
			early, n := 0, testutil.Count(t, 200, 20000)
			for range n {
				if remapRound(t, w, a, answer) {
					early++
				}
			}
			t.Logf("registration: %d of %d times the address was mapped again before munmap had returned", early, n)
		})
	}
}

// maxLate is how often the address is asked for when it has to be free.
const maxLate = 10

// remapRound says whether the other thread was faster than the return from munmap.
func remapRound(t *testing.T, w *wired, a *memmon.Arbiter, answer answerer) (early bool) {
	t.Helper()
	m := newMemory(t, false)
	defer m.close()
	fill(m.bytes, oldBytes)
	kind, goes := answer.of(a, m.where)
	x := newEntry(t, w, a, kind(m.bytes))
	defer x.drop()

	m.goes = goes
	u := m.unmapBeside()
	mapped, early := m.takeBack(u)
	if mapped && x.valid() {
		t.Error("valid, although the memory is another")
	}
	if err := u.wait(); err != nil {
		t.Fatal(err)
	}
	if !mapped { // by memory of another thread
		return false
	}
	fill(m.bytes, newBytes)
	if carries := w.carries(x.handle, memoryBytes); carries != oldBytes {
		t.Errorf("the old registration carries %s", carries)
	}
	return early
}

// unmapping is a thread that unmaps.
type unmapping struct {
	returned atomic.Bool
	err      chan error
}

// unmapBeside has another goroutine unmap the memory, after telling whoever is to be told.
func (m *memory) unmapBeside() *unmapping {
	u, old := &unmapping{err: make(chan error, 1)}, m.private
	go func() {
		m.goes()
		err := old.Close()
		u.returned.Store(true)
		u.err <- err
	}()
	return u
}

func (u *unmapping) wait() error { return <-u.err }

// takeBack maps new memory at the address as soon as that is free, and says whether it was faster than the return from munmap. If memory
// of another thread came first, it has not mapped.
func (m *memory) takeBack(u *unmapping) (mapped, early bool) {
	m.t.Helper()
	for late := 0; late < maxLate; {
		if u.returned.Load() {
			late++
		}
		err := m.mapThere()
		switch {
		case err == nil:
			return true, !u.returned.Load()
		case !errors.Is(err, errTaken):
			m.t.Fatal(err)
		}
		runtime.Gosched()
	}
	return false, false
}
