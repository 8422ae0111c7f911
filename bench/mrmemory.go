package main

import (
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// mrMemory is the memory of a stand.
type mrMemory struct {
	kept  []memmon.Kind // what the cache is to hold
	spare []memmon.Kind // more of the same kind
	alien []memmon.Kind // memory of which nobody answers, at the same addresses if that can be
	// renew has number i of what is kept become other memory, and returns what is to be registered from then on. It is called with all numbers in turn,
	// by several goroutines.
	renew func(i int) (memmon.Kind, error)
	close func() error
}

// mrSlack is how much more is spare than kept: the cache has long let go what was inserted so long ago.
const mrSlack = 100

// buffers is how many there are of a stand, and how many with the spare ones.
func (s mrStand) buffers() (kept, all int) {
	switch {
	case s.Card:
		return cardKept, cardKept
	case s.Kind == mrNone:
		return tenKept, tenKept
	}
	return s.Entries, 2*s.Entries + mrSlack
}

// newMRMemory makes it.
func newMRMemory(a *memmon.Arbiter, s mrStand) (*mrMemory, error) {
	switch s.Kind {
	case mrHeap:
		return heapMemory(s), nil
	case mrArena:
		return arenaMemory(a, s)
	case mrOwner, mrUserfault, mrNone:
	}
	return mappedMemory(s)
}

// fill makes the buffers, one after the other.
func (m *mrMemory) fill(s mrStand, next func(i int) memmon.Kind) *mrMemory {
	kept, all := s.buffers()
	for i := range all {
		k := next(i)
		if i >= kept {
			m.spare = append(m.spare, k)
			continue
		}
		m.kept = append(m.kept, k)
		m.alien = append(m.alien, memmon.Mapped(k.Bytes(), nil))
	}
	return m
}

// part is the place of buffer i.
func (s mrStand) part(b []byte, i int) []byte { return b[i*s.Size : (i+1)*s.Size] }

// heapMemory is objects. They become other memory when they die, which a collection for each round of them finds out.
func heapMemory(s mrStand) *mrMemory {
	object := func(int) memmon.Kind { return memmon.HeapBytes(make([]byte, s.Size)) }
	m := &mrMemory{close: func() error { return nil }}
	m.renew = func(i int) (memmon.Kind, error) {
		if i == 0 {
			runtime.GC()
		}
		return object(i), nil
	}
	return m.fill(s, object)
}

// arenaMemory is one arena. All of it dies at once.
func arenaMemory(a *memmon.Arbiter, s mrStand) (*mrMemory, error) {
	_, all := s.buffers()
	arena, err := a.NewArena(all * s.Size)
	if err != nil {
		return nil, err
	}
	m := &mrMemory{close: arena.Close}
	var dying atomic.Bool // the others wait: nothing is dead yet for them to find
	m.renew = func(i int) (k memmon.Kind, err error) {
		if i == 0 {
			dying.Store(true)
			err = arena.Discard(0, s.Size)
			dying.Store(false)
		}
		for dying.Load() {
			runtime.Gosched()
		}
		return m.kept[i], err
	}
	return m.fill(s, func(i int) memmon.Kind { return memmon.Mapped(s.part(arena.Bytes(), i), arena) }), nil
}

// mrOwned is an owner of memory.
type mrOwned struct{ n atomic.Uint64 }

func (o *mrOwned) Generation() uint64 { return o.n.Load() }

// mappedMemory is pages, each buffer with an owner of its own, or without one.
func mappedMemory(s mrStand) (*mrMemory, error) {
	_, all := s.buffers()
	pages, err := sys.MapAnonymous(all * s.Size)
	if err != nil {
		return nil, err
	}
	m := &mrMemory{close: pages.Close}
	kind := func(i int) memmon.Kind { return memmon.Mapped(s.part(pages.Bytes(), i), nil) }
	m.renew = func(i int) (memmon.Kind, error) { return m.kept[i], sys.NewPages(m.kept[i].Bytes()) }
	if s.Kind == mrOwner {
		kind = func(i int) memmon.Kind { return memmon.Mapped(s.part(pages.Bytes(), i), new(mrOwned)) }
		m.renew = func(i int) (memmon.Kind, error) {
			memmon.Source(m.kept[i]).(*mrOwned).n.Add(1)
			return m.kept[i], nil
		}
	}
	m.fill(s, kind)
	if s.Kind == mrUserfault {
		m.touch()
		err = m.share(s)
	}
	return m, err
}

// touch has the kernel give pages for what is kept: to ask it about memory that nobody has used yet costs less.
func (m *mrMemory) touch() {
	for _, k := range m.kept {
		b := k.Bytes()
		for i := 0; i < len(b); i += mrPage {
			b[i] = 1
		}
	}
}

// share makes the memory of which nobody answers a memory file: of plain pages the monitor does.
func (m *mrMemory) share(s mrStand) error {
	n := len(m.alien) * s.Size
	fd, err := sys.Memfd(sys.MemfdConfig{Name: "weft-bench", Size: int64(n)})
	var shared *sys.Mapping
	if err == nil {
		shared, err = sys.Map(fd, 0, n, true)
		err = errors.Join(err, fd.Close())
	}
	if err != nil {
		return errors.Join(err, m.close())
	}
	for i := range m.alien {
		m.alien[i] = memmon.Mapped(s.part(shared.Bytes(), i), nil)
	}
	pages := m.close
	m.close = func() error { return errors.Join(shared.Close(), pages()) }
	return nil
}
