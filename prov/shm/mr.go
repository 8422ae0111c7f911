package shm

import (
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// memory is a block of an arena, or memory of somebody else that was registered (kind is set).
type memory struct {
	domain *domain
	key    provider.Key
	access provider.Access
	bytes  []byte
	extent extent
	kind   memmon.Kind
	gen    uint64       // of kind, at the registration
	pins   atomic.Int32 // own operations that peers copy from
	closed bool         // the domain's lock guards it
}

var _ provider.Memory = (*memory)(nil)

// Bytes is the memory.
func (m *memory) Bytes() []byte {
	if m.kind != nil {
		return m.kind.Bytes()
	}
	return m.bytes
}

// Key is what peers name it by.
func (m *memory) Key() provider.Key { return m.key }

// Access is what peers may do.
func (m *memory) Access() provider.Access { return m.access }

// Refresh checks the range and does nothing else: the provider reads page tables of nobody.
func (m *memory) Refresh(offset, n uint64) error {
	if l := uint64(len(m.Bytes())); offset > l || n > l-offset {
		return fail("refresh", "", fmt.Errorf("%d bytes from %d of %d: %w", n, offset, l, provider.ErrInvalid))
	}
	return nil
}

// Close takes the memory back. A block is used again when no operation of the domain is posted on it any more, and no peer
// uses it.
func (m *memory) Close() error {
	d := m.domain
	d.core.Lock()
	defer d.core.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	if d.closed {
		return nil
	}
	d.home.retract(m.key)
	if m.kind == nil {
		d.held.Close(m.bytes, d.mark(m.bytes), func() {
			d.arena.retire(m)
			d.shed()
		})
		return nil
	}
	d.arena.mu.Lock()
	defer d.arena.mu.Unlock()
	d.arena.unregister(m)
	return nil
}

// mark marks the operations that are posted on memory, and counts them. Locked.
func (d *domain) mark(memory []byte) (n int) {
	recvs := make(map[*recv]bool)
	add := func(r *recv) {
		if r.Buffer.Uses(memory) {
			r.Held, recvs[r] = true, true
		}
	}
	d.ops.Each(func(_ uint64, o *op) {
		if o.local.Uses(memory, o.atomic.compare, o.atomic.result) {
			o.held = true
			n++
		}
		if o.recv != nil { // it is posted no more, or, with Multi, still
			add(o.recv)
		}
	})
	for _, ep := range d.eps {
		ep.matcher.EachRecv(add)
	}
	return n + len(recvs)
}

// ChecksMemory says that begin, sendShort and beginRecv look at the memory of segments.
func (d *domain) ChecksMemory() {}

// Owns says whether a segment may name the memory. Locked.
func (d *domain) Owns(m provider.Memory) bool {
	own, ok := m.(*memory)
	return ok && own.domain == d && !own.closed
}

// slice is the range, for a peer that wants to read or write it. The lock of the domain is held, and the bytes
// are good until it is let go.
func (m *memory) slice(offset, n uint64, need provider.Access) ([]byte, uint16) {
	switch {
	case m == nil || m.closed || !m.access.Has(need):
		return nil, statusKey
	case m.kind != nil && m.kind.Generation() != m.gen:
		return nil, statusKey
	}
	b := m.Bytes()
	if offset > uint64(len(b)) || n > uint64(len(b))-offset {
		return nil, statusKey
	}
	return b[offset : offset+n], statusOK
}

// Alloc gets arena memory.
func (d *domain) Alloc(n int, a provider.Access) (provider.Memory, error) {
	if n < 0 || a&^(provider.PeerRead|provider.PeerWrite) != 0 {
		return nil, fail("allocate", "", fmt.Errorf("%d bytes with access %v: %w", n, a, provider.ErrInvalid))
	}
	m, grown, err := d.arena.alloc(d, uint64(n), a)
	if grown || d.arena.surplus() { // the latter if peers have let go of blocks
		d.core.Lock()
		d.announce()
		d.shed()
		d.core.Unlock()
	}
	if err != nil {
		return nil, fail("allocate", "", err)
	}
	return m, nil
}

// Register lets peers use memory that is not from an arena.
func (d *domain) Register(k memmon.Kind, a provider.Access) (provider.Memory, error) {
	if k == nil || a&^(provider.PeerRead|provider.PeerWrite) != 0 {
		return nil, fail("register", "", fmt.Errorf("memory %T with access %v: %w", k, a, provider.ErrInvalid))
	}
	m := &memory{domain: d, access: a, kind: k, gen: k.Generation()}
	d.arena.mu.Lock()
	defer d.arena.mu.Unlock()
	if err := d.arena.register(m); err != nil {
		return nil, fail("register", "", err)
	}
	d.home.publish(m.key, extent{seg: noSegment, off: d.crossAddress(k)}, uint64(len(k.Bytes())), a)
	return m, nil
}
