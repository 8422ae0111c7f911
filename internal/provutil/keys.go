package provutil

import (
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/memmon"
)

// Keys are the registrations of a domain, by the key that peers name them by. A key holds a place and a generation:
// that of closed memory names nothing, and neither does that of a program that was restarted.
//
// Keys is safe for concurrent use, without the lock of the domain: peers of the same process ask it as well.
type Keys struct {
	mu    sync.RWMutex
	table []*Region
	free  []uint32
	gen   uint32
}

// Region is one registration.
type Region struct {
	keys   *Keys
	key    provider.Key
	access provider.Access
	kind   memmon.Kind
	gen    uint64 // of kind, at the registration

	// busy is read-locked while somebody copies from or to the memory. Close takes it to wait for them.
	busy   sync.RWMutex
	closed bool
}

// Add registers memory. Memory that changes from now on gives no access any more.
func (k *Keys) Add(kind memmon.Kind, access provider.Access) (*Region, error) {
	if kind == nil {
		return nil, fmt.Errorf("register nothing: %w", provider.ErrInvalid)
	}
	r := &Region{keys: k, access: access, kind: kind, gen: kind.Generation()}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gen == 0 {
		k.gen = randomGeneration()
	}
	k.gen++
	if k.gen == 0 {
		k.gen = 1
	}
	var place uint32
	if n := len(k.free); n > 0 {
		place = k.free[n-1]
		k.free = k.free[:n-1]
		k.table[place] = r
	} else {
		place = uint32(len(k.table))
		k.table = append(k.table, r)
	}
	r.key = provider.Key(uint64(k.gen)<<32 | uint64(place))
	return r, nil
}

// find gives the registration of a key.
func (k *Keys) find(key provider.Key) *Region {
	k.mu.RLock()
	defer k.mu.RUnlock()
	place := uint64(uint32(key))
	if place >= uint64(len(k.table)) {
		return nil
	}
	r := k.table[place]
	if r == nil || r.key != key {
		return nil
	}
	return r
}

// Why a key gave no access. They wrap provider.ErrKey.
var (
	errNoKey    = fmt.Errorf("no memory has this key, or it was closed: %w", provider.ErrKey)
	errNoRight  = fmt.Errorf("the memory was registered without this access: %w", provider.ErrKey)
	errVanished = fmt.Errorf("the memory was unmapped or given back while registered: %w", provider.ErrKey)
)

// Use gives n bytes of the memory of a key, from offset on, if the registration grants the access. Unless
// it fails, Done of the region must follow soon: Close waits for it. All arguments may come from a peer.
func (k *Keys) Use(key provider.Key, offset, n uint64, need provider.Access) ([]byte, *Region, error) {
	r := k.find(key)
	if r == nil {
		return nil, nil, errNoKey
	}
	r.busy.RLock()
	b, err := r.slice(offset, n, need)
	if err != nil {
		r.busy.RUnlock()
		return nil, nil, err
	}
	return b, r, nil
}

// Check is Use for who only wants to know.
func (k *Keys) Check(key provider.Key, offset, n uint64, need provider.Access) error {
	_, r, err := k.Use(key, offset, n, need)
	if err == nil {
		r.Done()
	}
	return err
}

// slice is called with busy held.
func (r *Region) slice(offset, n uint64, need provider.Access) ([]byte, error) {
	switch {
	case r.closed:
		return nil, errNoKey
	case !r.access.Has(need):
		return nil, errNoRight
	case r.kind.Generation() != r.gen:
		return nil, errVanished
	}
	b := r.kind.Bytes()
	if offset > uint64(len(b)) || n > uint64(len(b))-offset {
		return nil, fmt.Errorf("%d bytes from %d of %d: outside of the memory: %w", n, offset, len(b), provider.ErrKey)
	}
	return b[offset : offset+n : offset+n], nil
}

// Done ends Use.
func (r *Region) Done() { r.busy.RUnlock() }

// Key is what peers name the memory by.
func (r *Region) Key() provider.Key { return r.key }

// Access is what peers may do.
func (r *Region) Access() provider.Access { return r.access }

// Bytes is the memory.
func (r *Region) Bytes() []byte { return r.kind.Bytes() }

// Close takes the key back. At return nobody of this process uses the memory through it. More than once is
// harmless. It says whether this call was the first.
func (r *Region) Close() bool {
	k := r.keys
	k.mu.Lock()
	place := uint32(r.key)
	first := k.table[place] == r
	if first {
		k.table[place] = nil
		k.free = append(k.free, place)
	}
	k.mu.Unlock()
	r.busy.Lock() // waits for who copies now
	r.closed = true
	r.busy.Unlock()
	return first
}
