package sst

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/internal/shmem"
	"github.com/weft-fabric/weft/sst/internal/cp"
	"github.com/weft-fabric/weft/sst/internal/dp"
	"github.com/weft-fabric/weft/sst/internal/native"
	"github.com/weft-fabric/weft/step"
)

// This file is what a writer does for readers of its node, which look at its memory
// (docs/native.md).

// openArena gets the session's shared memory ready, if readers may have it.
func (w *Writer) openArena(ctx context.Context) error {
	if w.planes = w.cfg.Params.planes(); !slices.Contains(w.planes, cp.PlaneNative) {
		return nil
	}
	near, err := w.session.near(ctx)
	switch {
	case err == nil:
		w.near = near
		w.memory.arena = step.NewMemoryPool(0, func(n int) (step.StoreMemory, error) { return w.segment(near.Fabric, n) })
	case len(w.planes) == 1:
		return fmt.Errorf("%w: DataTransport=%s: %w", ErrPlane, w.cfg.Params.DataTransport, err)
	default:
		w.planes = []string{cp.PlaneEvpath}
	}
	return nil
}

// segment gets memory for a step: on the heap, if no more can be shared. What lies there
// readers ask for.
func (w *Writer) segment(f *native.Fabric, n int) (step.StoreMemory, error) {
	m, err := f.Alloc(n)
	switch {
	case err == nil:
		return m, nil
	case w.onlyNative():
		return nil, err
	}
	w.noArena.Do(func() {
		w.say("no shared memory for a step; what it has no room for goes through sockets", "stream", w.path, "bytes", n, "error", err)
	})
	return heapSegment(shmem.MakeHuge(n)), nil
}

// heapSegment is memory of a step that readers cannot look at.
type heapSegment []byte

func (h heapSegment) Bytes() []byte { return h }
func (h heapSegment) Free()         {}
func (h heapSegment) Makeshift()    {} // the next step may be luckier

// onlyNative reports whether no other plane is served: the user has said so.
func (w *Writer) onlyNative() bool { return len(w.planes) == 1 && w.planes[0] == cp.PlaneNative }

// servesNative reports whether there is a reader that looks at our memory, or there will
// be no others. The caller holds mu.
func (w *Writer) servesNative() bool {
	if w.onlyNative() {
		return true
	}
	for _, r := range w.readers {
		if r.native() {
			return true
		}
	}
	return false
}

// isWatched reports whether there is an observer that looks at our memory: the end of the
// stream does not wait for it. The caller holds mu.
func (w *Writer) isWatched() bool {
	for _, r := range w.readers {
		if r.observer && r.native() {
			return true
		}
	}
	return false
}

// native reports whether the reader may look at our memory.
func (r *attached) native() bool { return r.plane == cp.PlaneNative || r.plane == cp.PlaneMixed }

// appendShared appends where what of a store lies in shared memory does, for readers of
// this node.
func appendShared(b []byte, s *step.HeapStore) []byte {
	for _, e := range s.Extents() {
		if m, ok := e.Memory.(*native.Memory); ok {
			b = dp.Extent{Offset: e.Offset, Length: e.Length, Key: m.Key(), At: e.At}.Append(b)
		}
	}
	return b
}
