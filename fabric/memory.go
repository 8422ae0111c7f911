package fabric

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// Memory is memory that operations name without a copy and, as its access says, that peers read and write.
type Memory struct {
	domain *Domain
	inner  provider.Memory

	closed   atomic.Bool
	closing  sync.Once
	closeErr error
}

// Bytes is the memory, in full; nil after Close, when slices of it must not be touched any more.
func (m *Memory) Bytes() []byte {
	if m.closed.Load() {
		return nil
	}
	return m.inner.Bytes()
}

// Key is what peers name the memory by. Tell it to them, by a message say.
func (m *Memory) Key() Key { return m.inner.Key() }

// Access is what peers may do.
func (m *Memory) Access() Access { return m.inner.Access() }

// Slice makes a segment of n bytes from offset on. One that is not inside the memory is refused by the post that names it.
func (m *Memory) Slice(offset, n int) Segment {
	b := m.Bytes()
	if offset < 0 || n < 0 || offset > len(b) || n > len(b)-offset {
		return Segment{Memory: &outside{Memory: m.inner, why: m.badSlice(offset, n, len(b))}}
	}
	return Segment{Bytes: b[offset : offset+n : offset+n], Memory: m.inner}
}

func (m *Memory) badSlice(offset, n, size int) error {
	if m.closed.Load() {
		return invalid("Slice(%d, %d) of memory that was closed", offset, n)
	}
	return invalid("Slice(%d, %d) of memory of %d bytes", offset, n, size)
}

// outside stands for a slice that is not there, with the reason, until a post asks.
type outside struct {
	provider.Memory
	why error
}

// Refresh tells that pages of the range came to life since the registration; only providers whose Info has MemoryMode.Notify
// have to be told.
func (m *Memory) Refresh(offset, n uint64) error {
	if end, carry := bits.Add64(offset, n, 0); carry != 0 || end > uint64(len(m.Bytes())) {
		return m.domain.fail("refresh", invalid("%d bytes from offset %d on, of %d", n, offset, len(m.Bytes())))
	}
	return m.domain.fail("refresh", m.inner.Refresh(offset, n))
}

// Close takes the memory back, and frees it if Alloc made it: no peer reads or writes it afterwards, new attempts end with
// ErrKey, and posts that name it are refused with ErrInvalid. The program must not touch its bytes any more. It does not wait for
// peers. More than once is harmless.
//
// What is under way goes on, and what Alloc made is freed when the last of it has ended; until then it counts against
// DomainConfig.Memory. Views of it stay readable until they are released. Operations of this domain whose local buffers, or results,
// lie in it complete as if it were open (where libfabric's fi_close would say -FI_EBUSY). Memory of Register is the
// program's to keep until they have completed.
func (m *Memory) Close() error {
	m.closing.Do(func() {
		m.closed.Store(true)
		m.domain.memories.Delete(m.inner)
		m.closeErr = m.domain.fail("close memory", m.inner.Close())
	})
	return m.closeErr
}

// View is a peer's memory, readable in place. It owns it in the sense of memmon.Owner: memmon.Mapped(v.Bytes(), v) is the Kind of a segment that
// sends what a peer's memory holds, and its registration ends with the view.
type View struct {
	inner    provider.View
	released atomic.Bool
	asked    atomic.Bool   // somebody wanted the generation: there may be registrations
	past     atomic.Uint64 // generations since Release
}

// Bytes is the peer's memory. It is valid until Release, and nil afterwards; writing to it is a fault.
func (v *View) Bytes() []byte {
	if v.released.Load() {
		return nil
	}
	return v.inner.Bytes()
}

// Generation changes with Release, and after that with each call: what was viewed cannot be registered any more, neither while it is being unmapped
// nor when something else lies there.
func (v *View) Generation() uint64 {
	if !v.asked.Load() {
		v.asked.Store(true) // before it is looked whether the view is released: one of both sees the other
	}
	if v.released.Load() {
		return v.past.Add(1)
	}
	return 0
}

// Release gives the view back: its bytes must not be touched any more. More than once is harmless.
func (v *View) Release() {
	if v.released.Swap(true) {
		return
	}
	if v.asked.Load() { // else nobody needs to be told, and most views are short
		memmon.Process().Notify(memmon.RangeOf(v.inner.Bytes()))
	}
	v.inner.Release()
}
