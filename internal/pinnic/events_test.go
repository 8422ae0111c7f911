package pinnic

import (
	"errors"
	"os"
	"testing"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/internal/testutil"
	"github.com/weft-fabric/weft/memmon"
)

// memoryBytes is how much memory a row is about: some pages, and less than a wire holds.
var memoryBytes = 4 * os.Getpagesize()

// memory is mapped memory, at an address that outlives it.
type memory struct {
	t     *testing.T
	where memmon.Range
	bytes []byte // what can be touched at the address now
	goes  func() // told before the memory goes
	owns  []interface{ Close() error }

	private *sys.Anonymous // one of the two
	file    *sys.FD
}

func newMemory(t *testing.T, shared bool) *memory {
	t.Helper()
	m := &memory{t: t, goes: func() {}}
	if shared {
		m.mapFile()
	} else {
		a, err := sys.MapAnonymous(memoryBytes)
		if err != nil {
			t.Fatal(err)
		}
		m.private, m.bytes = a, a.Bytes()
		m.owns = append(m.owns, a)
	}
	m.where = memmon.RangeOf(m.bytes)
	return m
}

func (m *memory) mapFile() {
	m.t.Helper()
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "of a test", Size: int64(memoryBytes)})
	if err != nil {
		m.t.Fatal(err)
	}
	m.owns = append(m.owns, fd)
	view, err := sys.Map(fd, 0, memoryBytes, true)
	if err != nil {
		m.t.Fatal(err)
	}
	m.owns = append(m.owns, view)
	m.file, m.bytes = fd, view.Bytes()
}

func (m *memory) close() {
	for _, c := range m.owns {
		if err := c.Close(); err != nil {
			m.t.Error(err)
		}
	}
}

// errTaken says that another thread got the address first: the row is to be played again.
var errTaken = errors.New("something else lies there by now")

// mapThere maps new memory where the old one was.
func (m *memory) mapThere() error {
	a, taken, err := sys.MapAnonymousAt(m.where.Addr, memoryBytes)
	switch {
	case err != nil:
		return err
	case taken:
		return errTaken
	}
	m.owns = append(m.owns, a)
	m.bytes = a.Bytes()
	return nil
}

// event is a row of the table: something that happens to memory that is registered.
type event struct {
	name   string
	do     func(*memory) error
	shared bool   // it is memory of a file
	keeps  bool   // the memory stays what it is, so that nobody is told
	wire   string // what the old registration carries when the memory was filled again
	blind  bool   // it cannot be touched afterwards
	costly bool   // fewer rounds
}

// events are the rows of mapped memory.
var events = []event{
	{name: "nothing", keeps: true, wire: newBytes, do: func(*memory) error { return nil }},
	{name: "munmap + mmap same address", wire: oldBytes, do: func(m *memory) error {
		m.goes()
		return errors.Join(m.private.Close(), m.mapThere())
	}},
	{name: "mmap MAP_FIXED over", wire: oldBytes, do: func(m *memory) error {
		m.goes()
		return m.private.MapOver()
	}},
	{name: "madvise DONTNEED", wire: oldBytes, do: func(m *memory) error {
		m.goes()
		return sys.NewPages(m.bytes)
	}},
	{name: "madvise FREE", wire: newBytes, do: func(m *memory) error {
		m.goes()
		return m.private.Free()
	}},
	{name: "mremap away + mmap at old address", wire: oldBytes, do: func(m *memory) error {
		m.goes()
		return errors.Join(m.private.Move(), m.mapThere())
	}},
	{name: "memfd: ftruncate 0 and back", shared: true, wire: oldBytes, do: func(m *memory) error {
		m.goes()
		return errors.Join(sys.Truncate(m.file, 0), sys.Truncate(m.file, int64(memoryBytes)))
	}},
	{name: "memfd: hole punched", shared: true, wire: oldBytes, do: func(m *memory) error {
		m.goes()
		return sys.Discard(m.file, 0, int64(memoryBytes))
	}},
	{name: "munmap only", wire: oldBytes, blind: true, do: func(m *memory) error {
		m.goes()
		m.bytes = nil
		return m.private.Close()
	}},
	{name: "mprotect NONE", keeps: true, wire: newBytes, blind: true, do: func(m *memory) error {
		fill(m.bytes, newBytes)
		m.bytes = nil
		return m.private.Forbid()
	}},
	{name: "fork/exec", keeps: true, wire: newBytes, costly: true, do: func(m *memory) error {
		return testutil.Child(m.t, "nothing").Wait()
	}},
}

// rounds is how often a row is played.
func (e event) rounds(w *wired) int {
	if e.costly {
		return w.rounds(1, 50)
	}
	return w.rounds(10, 1000)
}

// happens plays an event, again with other memory if the address is lost, and fills what can be filled. made is called with the memory before.
func (e event) happens(t *testing.T, made func(*memory)) *memory {
	t.Helper()
	for {
		m := newMemory(t, e.shared)
		fill(m.bytes, oldBytes)
		made(m)
		err := e.do(m)
		if err == nil {
			fill(m.bytes, newBytes)
			return m
		}
		m.close()
		if !errors.Is(err, errTaken) {
			t.Fatal(e.name, err)
		}
	}
}

// eachEvent runs a test for each row, with each way of sending.
func eachEvent(t *testing.T, test func(*testing.T, *wired, event)) {
	eachWay(t, func(t *testing.T, w *wired) {
		for _, e := range events {
			t.Run(e.name, func(t *testing.T) {
				test(t, w.in(t), e)
			})
		}
	})
}
