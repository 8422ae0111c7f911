package loop

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/provutil"
	"github.com/weft-fabric/weft/memmon"
)

// memory implements provider.Memory: a registration, of an arena or of memory that the program brought.
type memory struct {
	domain *domain
	region *provutil.Region
	arena  *arena // nil of memory that the program brought
	closed bool   // the domain's lock guards it
}

// maxAlloc bounds one arena.
const maxAlloc = 1 << 46

// Alloc gets arena memory.
func (d *domain) Alloc(n int, a provider.Access) (provider.Memory, error) {
	switch {
	case n <= 0:
		return nil, d.fail("allocate", fmt.Errorf("%d bytes: %w", n, provider.ErrInvalid))
	case n > maxAlloc:
		return nil, d.fail("allocate", fmt.Errorf("%d bytes, at most %d: %w", n, maxAlloc, provider.ErrNoMemory))
	}
	if err := d.charge(n); err != nil {
		return nil, d.fail("allocate", err)
	}
	r, err := newArena(n)
	if err != nil {
		d.uncharge(n)
		return nil, d.fail("allocate", err)
	}
	r.end = func() { d.uncharge(n) }
	m, err := d.register(memmon.Mapped(r.bytes, r), a, r)
	if err != nil {
		r.release()
		return nil, d.fail("allocate", err)
	}
	return m, nil
}

// charge counts arena memory against the domain's bound.
func (d *domain) charge(n int) error {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	if d.limit > 0 && uint64(n) > d.limit-min(d.limit, d.memory.bytes) {
		return fmt.Errorf("%d bytes, with %d of %d taken: %w", n, d.memory.bytes, d.limit, provider.ErrNoMemory)
	}
	d.memory.bytes += uint64(n)
	d.memory.most = max(d.memory.most, d.memory.bytes)
	return nil
}

func (d *domain) uncharge(n int) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	d.memory.bytes -= uint64(n)
}

// Register lets peers use the program's memory. They copy from it and to it themselves, in either progress mode.
func (d *domain) Register(k memmon.Kind, a provider.Access) (provider.Memory, error) {
	m, err := d.register(k, a, nil)
	if err != nil {
		return nil, d.fail("register", err)
	}
	return m, nil
}

func (d *domain) register(k memmon.Kind, a provider.Access, r *arena) (*memory, error) {
	if odd := a &^ (provider.PeerRead | provider.PeerWrite); odd != 0 {
		return nil, fmt.Errorf("access %v: %w", odd, provider.ErrInvalid)
	}
	region, err := d.keys.Add(k, a)
	if err != nil {
		return nil, err
	}
	m := &memory{domain: d, region: region, arena: r}
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	if d.memory.closed {
		region.Close()
		return nil, provider.ErrClosed
	}
	d.memory.by[region.Key()] = m
	return m, nil
}

// Bytes is the memory.
func (m *memory) Bytes() []byte { return m.region.Bytes() }

// Key is what peers name it by.
func (m *memory) Key() provider.Key { return m.region.Key() }

// Access is what peers may do.
func (m *memory) Access() provider.Access { return m.region.Access() }

// Refresh has nothing to do.
func (m *memory) Refresh(offset, n uint64) error {
	if size := uint64(len(m.Bytes())); offset > size || n > size-offset {
		return m.domain.fail("refresh", fmt.Errorf("%d bytes from %d of %d: %w", n, offset, size, provider.ErrInvalid))
	}
	return nil
}

// Close takes the memory back. That of an arena goes, and counts no more, when no operation of the domain is posted on it
// and no peer has a view of it any more.
func (m *memory) Close() error {
	d := m.domain
	d.memory.mu.Lock()
	delete(d.memory.by, m.Key())
	d.memory.mu.Unlock()
	first := m.region.Close() // waits for peers that copy, who may hold their own lock
	d.core.Lock()
	defer d.core.Unlock()
	m.closed = true
	if first && m.arena != nil {
		d.held.Close(m.arena.bytes, d.mark(m.arena.bytes), m.arena.release)
	}
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
	for _, ep := range d.endpoints {
		ep.ops.Each(func(_ uint64, o *op) {
			if o.buffer.Uses(memory, o.compare, o.result) {
				o.held = true
				n++
			}
		})
		ep.matcher.EachRecv(add)
	}
	d.transfers.each(func(t *transfer) { add(t.r) }) // which are posted no more, or, with Multi, still
	return n + len(recvs)
}

// Owns says whether a segment may name the memory. Locked.
func (d *domain) Owns(m provider.Memory) bool {
	own, ok := m.(*memory)
	return ok && own.domain == d && !own.closed
}

// freeAll closes all memory of a domain that closes.
func (d *domain) freeAll() {
	d.memory.mu.Lock()
	d.memory.closed = true
	all := make([]*memory, 0, len(d.memory.by))
	for _, m := range d.memory.by {
		all = append(all, m)
	}
	d.memory.mu.Unlock()
	for _, m := range all {
		_ = m.Close()
	}
}

// view implements provider.View.
type view struct {
	domain *domain
	arena  *arena
	bytes  []byte // the lock of the domain's arenas guards it and arena
	held   provutil.HeldView
}

// View maps a peer's arena, read-only.
func (d *domain) View(ctx context.Context, p provider.Peer, k provider.Key, offset uint64, n int) (provider.View, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v, a, err := d.view(p, k, offset, n)
	if err != nil {
		return nil, provutil.OpError("view", Name, a, err)
	}
	return v, nil
}

func (d *domain) view(p provider.Peer, k provider.Key, offset uint64, n int) (*view, provider.Address, error) {
	if n < 0 {
		return nil, "", fmt.Errorf("%d bytes: %w", n, provider.ErrInvalid)
	}
	far, a, err := d.reach(p)
	if err != nil {
		return nil, a, err
	}
	r, err := far.borrow(k, offset, uint64(n))
	if err != nil {
		return nil, a, err
	}
	v := &view{domain: d, arena: r, bytes: r.readable[offset : offset+uint64(n) : offset+uint64(n)]}
	d.memory.mu.Lock()
	d.memory.views.Add(&v.held, uint64(n))
	d.memory.mu.Unlock()
	return v, a, nil
}

// reach connects to a peer from the domain's first endpoint.
func (d *domain) reach(p provider.Peer) (*domain, provider.Address, error) {
	d.core.Lock()
	defer d.core.Unlock()
	st := d.av.Lookup(p)
	switch {
	case d.closed:
		return nil, "", provider.ErrClosed
	case st == nil:
		return nil, "", fmt.Errorf("peer %v was not inserted here, or was removed: %w", p, provider.ErrInvalid)
	case len(d.endpoints) == 0:
		return nil, "", fmt.Errorf("the domain has no endpoint to connect from: %w", provider.ErrInvalid)
	}
	l := d.endpoints[0].linkTo(p, st)
	if err := d.ready(l); err != nil {
		return nil, l.address, err
	}
	if l.why != nil {
		return nil, l.address, l.why
	}
	return l.far().domain, l.address, nil
}

// borrow holds the arena of a key for a view.
func (d *domain) borrow(k provider.Key, offset, n uint64) (*arena, error) {
	_, region, err := d.keys.Use(k, offset, n, provider.PeerRead)
	if err != nil {
		return nil, err
	}
	defer region.Done() // the memory is not closed before
	d.memory.mu.Lock()
	m := d.memory.by[k]
	d.memory.mu.Unlock()
	switch {
	case m == nil:
		return nil, provider.ErrKey
	case m.arena == nil || m.arena.readable == nil:
		return nil, fmt.Errorf("a view of memory that is not in an arena: %w", provider.ErrNotSupported)
	}
	m.arena.retain()
	return m.arena, nil
}

// Bytes is the peer's memory.
func (v *view) Bytes() []byte {
	v.domain.memory.mu.Lock()
	defer v.domain.memory.mu.Unlock()
	return v.bytes
}

// Release gives it back.
func (v *view) Release() {
	d := v.domain
	d.memory.mu.Lock()
	r := v.arena
	v.arena = nil
	if r != nil {
		d.memory.views.Remove(&v.held)
		v.bytes = nil
	}
	d.memory.mu.Unlock()
	if r != nil {
		r.release()
	}
}
