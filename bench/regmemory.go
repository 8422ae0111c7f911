package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/sys"
	"github.com/weft-fabric/weft/memmon"
)

// regMemory is buffers of one kind, in no order.
type regMemory struct {
	kinds []memmon.Kind
	goes  func(i int) error // has buffer i become other memory
	owns  []interface{ Close() error }
}

func (m *regMemory) close() error {
	var errs []error
	for _, c := range m.owns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// numberOwner tells of memory by a number.
type numberOwner struct{ n atomic.Uint64 }

func (o *numberOwner) Generation() uint64 { return o.n.Load() }

// newRegMemory makes n buffers of some bytes, whole pages each.
func newRegMemory(a *memmon.Arbiter, kind regKind, n, size int) (*regMemory, error) {
	m := &regMemory{kinds: make([]memmon.Kind, n)}
	switch {
	case kind == regHeap:
		for i := range m.kinds {
			m.kinds[i] = memmon.HeapBytes(make([]byte, size))
		}
		return m, nil
	case kind == regArena && n <= maxArenas:
		return m, m.arenas(a, size)
	case kind == regArena:
		arena, err := a.NewArena(n * size)
		if err != nil {
			return nil, err
		}
		m.owns = append(m.owns, arena)
		m.pieces(arena.Bytes(), size, func(b []byte, _ int) memmon.Kind { return memmon.Mapped(b, arena) })
		return m, nil
	}
	all, err := sys.MapAnonymous(n * size)
	if err != nil {
		return nil, err
	}
	m.owns = append(m.owns, all)
	b := all.Bytes()
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	if kind == regUserfault {
		m.pieces(b, size, func(b []byte, _ int) memmon.Kind { return memmon.Mapped(b, nil) })
		m.goes = func(i int) error { return sys.NewPages(m.kinds[i].Bytes()) }
		return m, nil
	}
	owners := make([]numberOwner, n)
	m.pieces(b, size, func(b []byte, i int) memmon.Kind { return memmon.Mapped(b, &owners[i]) })
	m.goes = func(i int) error { owners[i].n.Add(1); return nil }
	return m, nil
}

// arenas makes an arena of each buffer.
func (m *regMemory) arenas(a *memmon.Arbiter, size int) error {
	list := make([]*memmon.Arena, len(m.kinds))
	for i := range list {
		arena, err := a.NewArena(size)
		if err != nil {
			return errors.Join(err, m.close())
		}
		arena.Bytes()[0] = 1
		list[i], m.kinds[i] = arena, arena
		m.owns = append(m.owns, arena)
	}
	m.goes = func(i int) error { return list[i].Discard(0, size) }
	return nil
}

// pieces makes the buffers of one piece of memory.
func (m *regMemory) pieces(b []byte, size int, kind func(b []byte, i int) memmon.Kind) {
	for i, at := range rand.Perm(len(m.kinds)) {
		m.kinds[i] = kind(b[at*size:(at+1)*size:(at+1)*size], i)
	}
}
